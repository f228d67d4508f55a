"""A save that is killed at any of its system calls leaves the old table or the new one, whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def test_a_killed_save_leaves_the_old_or_the_new_table(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.core.tables.crashing", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    killed = [json.loads(line) for line in done.stdout.splitlines()]
    assert {one["call"] for one in killed} >= {"open", "write", "fsync", "close", "replace"}
    assert len(killed) >= 24
    assert {one["found"] for one in killed} == {"old", "new"}
    for one in killed:
        assert one["notes"] == "", one
        assert one["went_on"], one
    # Once the new file has its name it is the one that is found.
    last_replace = max(i for i, one in enumerate(killed) if one["call"] == "replace")
    assert killed[last_replace]["moment"] == "after"
    assert {one["found"] for one in killed[last_replace:]} == {"new"}
    assert {one["found"] for one in killed[: last_replace - 1]} == {"old"}
