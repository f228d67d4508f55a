"""Trying out an installation: version, doctor, smoke, from an empty folder, with a home of its own.

The environment is empty but for what a desktop session sets, so that neither the checkout nor the
caller's Python settings can help. Afterwards the installation must be as it was.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from bundle.prepare import say

_TIMEOUT_S = 600


def try_out(command: Sequence[str], inside: Path, *, screen: Sequence[str] = ()) -> int:
    """0 if `command` passes all of it and nothing under `inside` changed.

    `screen` is put before each command and brings a display, or more; without one Qt draws nowhere.
    """
    with tempfile.TemporaryDirectory(prefix="draftlight-trial-") as folder:
        home, elsewhere = Path(folder) / "home", Path(folder) / "elsewhere"
        home.mkdir()
        elsewhere.mkdir()
        # `screen` may make another user of whoever tries it out.
        Path(folder).chmod(0o755)
        home.chmod(0o777)
        environment = {"HOME": str(home), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}
        if sys.platform == "linux":
            environment["QT_QPA_PLATFORM"] = "xcb" if screen else "offscreen"
        before = _files(inside)
        for arguments in (["--version"], ["doctor"], ["--smoke"]):
            say(f"{Path(command[0]).name} {' '.join(arguments)}")
            done = subprocess.run(
                [*screen, *command, *arguments], cwd=elsewhere, env=environment, timeout=_TIMEOUT_S
            )
            if done.returncode:
                return done.returncode
        if changed := sorted(set(_files(inside).items()) ^ before.items()):
            print(f"Written inside: {changed[0][0]}", file=sys.stderr)
            return 1
        say(f"Nothing was written inside; what was written is under {', '.join(_written(home))}")
    return 0


def _files(tree: Path) -> dict[str, tuple[int, int]]:
    """Size and time of change of each file."""
    found = {}
    for path in tree.rglob("*"):
        if path.is_file():
            stat = path.stat()
            found[str(path.relative_to(tree))] = (stat.st_size, stat.st_mtime_ns)
    return found


def _written(home: Path) -> list[str]:
    return sorted({"/".join(path.relative_to(home).parts[:3]) for path in home.rglob("*") if path.is_file()})
