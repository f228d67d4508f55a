"""Joining ends in time where nobody comes, although MLX lets no other thread run meanwhile."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from core.system.children import child_environment
from tests.core.cluster.machines import free_port

_JOIN = """
import sys
from core.models.runtime import prepare
prepare()
from core.cluster import this_machine as joining
from core.cluster.wire import Place
from core.errors import ClusterError
joining._JOIN_S, joining._GRACE_S = 1.0, 1.0
try:
    joining.join("ring", int(sys.argv[1]), [Place(f"127.0.0.1:{port}") for port in sys.argv[2:]])
except ClusterError as error:
    print(error)
try:
    joining.check_free()
except ClusterError as error:
    print(error)
"""


def _join(rank: int) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _JOIN, str(rank), str(free_port()), str(free_port())],
        cwd=Path(__file__).parents[4],
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_waiting_for_a_connection_is_broken_off_with_words() -> None:
    done = _join(0)
    assert done.returncode == 0, done.stderr
    assert "could not be connected with ring" in done.stdout
    assert "Restart the worker" in done.stdout  # MLX joins once


@pytest.mark.skipif(sys.platform != "linux", reason="how the ring connects is MLX's own on each system")
def test_trying_for_ever_ends_the_process() -> None:
    done = _join(1)
    assert done.returncode == 1
    assert "without an answer this ends after" in done.stderr
