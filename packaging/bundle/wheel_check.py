"""`make wheel-check`: the project's wheel in an empty environment starts and passes its smoke test.

The environment gets the locked wheels of what the app needs and nothing else: no test tools, no
checkout. Works on Linux x86-64 and on macOS arm64.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from bundle.prepare import say
from bundle.project import BUILD, read_project
from bundle.supplies.wheels import LINUX, MACOS, build_own, download
from bundle.trial import try_out

FOLDER = BUILD / "wheel-check"


def main() -> int:
    """Exit status."""
    series = f"{sys.version_info.major}.{sys.version_info.minor}"
    target = replace(MACOS if sys.platform == "darwin" else LINUX, python=series)
    wheels = FOLDER / "wheels"
    say("Wheels from the lock")
    paths = [*download(read_project(), target, wheels), build_own(wheels)]
    environment = FOLDER / "environment"
    say(f"An empty environment with {len(paths)} wheels")
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(environment)], check=True)
    pip = [
        str(environment / "bin" / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
    ]
    subprocess.run([*pip, "--no-deps", "--no-index", *map(str, paths)], check=True)
    (packages,) = Path(environment).glob("lib/python*/site-packages")
    return try_out([str(environment / "bin" / "draftlight")], packages)


if __name__ == "__main__":
    sys.exit(main())
