"""Processes in tests on every machine: without `ps` and `pgrep`, and where /tmp runs no programs."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from core.models.runtime import index_file

_PROC = Path("/proc/self/stat")


def children(parent: int) -> list[int]:
    """The ids of the processes that `parent` started and that have not ended."""
    if not _PROC.exists():
        if not shutil.which("pgrep"):
            pytest.skip("processes cannot be listed: no /proc, and pgrep is not installed")
        found = subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, text=True, check=False)
        return [int(word) for word in found.stdout.split()]
    return sorted(pid for pid in _all() if _parent(pid) == parent)


def set_home(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Sets DRAFTLIGHT_HOME to `folder` for one test and the processes that it starts.

    The index of transformers' modules is copied there: making it takes each worker 0.2 s of CPU time.
    """
    made = index_file()
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(folder))
    if made.exists():
        index_file().parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(made, index_file())


def needs_programs_in(folder: Path) -> None:
    """Skips the test where the system runs no programs from `folder`."""
    if os.statvfs(folder).f_flag & getattr(os, "ST_NOEXEC", 0):
        pytest.skip(f"{folder} is mounted noexec, and the test runs a script from there")


def command_line(pid: int) -> str:
    """The arguments of a process, joined by spaces; empty if it has ended."""
    try:
        if _PROC.exists():
            return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        return subprocess.run(
            ["ps", "-o", "args=", "-p", str(pid)], capture_output=True, text=True, check=False
        ).stdout
    except OSError:
        return ""


def _all() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _parent(pid: int) -> int:
    """The parent's id, or 0 if the process has ended. The command's name may hold spaces and parentheses."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[:2]
    except OSError:
        return 0
    return 0 if state == "Z" else int(parent)
