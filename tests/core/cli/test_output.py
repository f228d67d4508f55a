"""Outputs that end early: a pipe whose reader left, a full disk, closed descriptors."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.thinned import thinned

_FULL = Path("/dev/full")
COMMANDS = thinned(
    (["doctor"], ["models", "list"], ["tables", "list"], ["--version"], ["bench", "--help"]),
    keep=[["models", "list"], ["--version"]],
)


def draftlight(arguments: list[str], redirected: str) -> subprocess.CompletedProcess[str]:
    """`arguments` with what a shell's `redirected` makes of its output; its status is the pipe's."""
    script = f'set -o pipefail; "$0" -m core.cli "$@" {redirected}'
    return subprocess.run(
        ["bash", "-c", script, sys.executable, *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env=os.environ | {"LC_ALL": "C.UTF-8"},  # under LC_ALL=C Qt writes to stderr that it uses this one
    )


@pytest.mark.sweep
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_reader_that_left_is_no_failure_to_tell_of(arguments: list[str]) -> None:
    # `exec <&-` closes the pipe before anything is written to it.
    done = draftlight(arguments, "| (exec <&-; true; sleep 0)")
    assert done.returncode in (0, 141)
    assert done.stderr == ""


@pytest.mark.skipif(not _FULL.exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("arguments", COMMANDS, ids=" ".join)
def test_a_full_disk_is_said_in_a_sentence(arguments: list[str]) -> None:
    done = draftlight(arguments, "> /dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("draftlight: The output cannot be written: No space left")
    assert "Traceback" not in done.stderr


@pytest.mark.sweep
def test_a_reader_that_left_while_answering(toy_folder: Path) -> None:
    arguments = ["generate", "--model", str(toy_folder), "--prompt", "x", "--max-tokens", "400"]
    done = draftlight(arguments, "2>&1 | head -c 1")
    assert done.returncode in (0, 141)
    assert "Traceback" not in done.stdout


@pytest.mark.parametrize("closed", thinned([">&-", "2>&-", "<&-", ">&- 2>&- <&-"], keep=[">&- 2>&- <&-"]))
def test_closed_descriptors_are_no_traceback(closed: str) -> None:
    done = draftlight(["tables", "list"], closed)
    assert done.returncode == 0
    assert done.stderr == ""
