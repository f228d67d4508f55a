"""What every build needs first: wheels, icons, the packager's configuration, the packager itself."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from bundle.config import write_config
from bundle.icons.icon import write_icons
from bundle.project import BUILD, PACKAGING, PYTHON, Project, source_date
from bundle.supplies.lock import Target
from bundle.supplies.runtime import DOWNLOADS
from bundle.supplies.wheels import build_own, download, pinned


def prepare(project: Project, target: Target, name: str, *, template: str = "") -> Path:
    """The folder `name` under the build folder, ready for the packager to be run in it.

    Raises `WrongPythonError`, before anything is downloaded, if this Python has another version than the
    bundle's, which would not read its bytecode.
    """
    require_python()
    folder = BUILD / name
    wheels = folder / "wheels"
    say(f"Wheels for {target.system} {target.machine}, from the lock")
    paths = [*download(project, target, wheels), build_own(wheels)]
    say(f"{len(paths)} wheels, {sum(path.stat().st_size for path in paths) / 1e6:,.0f} MB")
    write_icons(folder / "icon")
    write_config(project, folder, wheels, [pinned(path) for path in paths], template=template)
    return folder


class WrongPythonError(Exception):
    """This Python cannot make the bundle."""


def require_python(running: tuple[int, int] = sys.version_info[:2]) -> None:
    """Raises `WrongPythonError` if `running` is not the bundle's version."""
    found = f"{running[0]}.{running[1]}"
    if found != PYTHON:
        raise WrongPythonError(
            f"The app contains Python {PYTHON}, so only Python {PYTHON} can build it. This is Python {found}."
            f" Run: make clean && make PYTHON=python{PYTHON} setup"
        )


def packager(python: str = sys.executable) -> Path:
    """The interpreter of the packager's own environment, made from its lock by `python` if it is
    not there or the lock has changed."""
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    environment = BUILD / f"packager-{Path(python).name}"
    interpreter = environment / "bin" / "python"
    lock = PACKAGING / "packager.lock"
    stamp = environment / "installed"
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text("ascii") != digest:
        say("The packager's environment (once)")
        subprocess.run([python, "-m", "venv", "--clear", str(environment)], check=True)
        pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "--no-deps", "--require-hashes", "-r", str(lock)], check=True)
        stamp.write_text(digest, "ascii")
    return interpreter


def packager_environment(environment: dict[str, str]) -> dict[str, str]:
    """For the packager's processes: this package to import, fixed times, a place for downloads,
    nothing of the caller's venv."""
    kept = {name: value for name, value in environment.items() if name not in ("VIRTUAL_ENV", "PYTHONHOME")}
    own = {"PYTHONPATH": str(PACKAGING), "SOURCE_DATE_EPOCH": source_date(), "BRIEFCASE_HOME": str(DOWNLOADS)}
    return {**kept, **own}


def say(text: str) -> None:
    """One line of progress."""
    print(f"· {text}", flush=True)
