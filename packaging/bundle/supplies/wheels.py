"""The wheels of one target, downloaded by pip and checked against the lock.

Starts at the project's own dependencies and follows each wheel's metadata, so that of the locked
packages only those come along that the app needs. No code of a package is run: wheels only.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable
from email.parser import HeaderParser
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from bundle.project import ARCHITECTURE, LOCK, MINIMUM_MACOS, PYTHON, ROOT, Project, source_date
from bundle.supplies.lock import Locked, LockError, Target, read_lock

MACOS = Target(
    "darwin", ARCHITECTURE, "Darwin", PYTHON, f"macosx_{MINIMUM_MACOS.replace('.', '_')}_{ARCHITECTURE}"
)
LINUX = Target("linux", "x86_64", "Linux", PYTHON, "manylinux_2_28_x86_64")
# pip takes no range of glibc versions: each tag that a locked wheel may carry is named.
_LINUX_TAGS = (
    *(f"manylinux_2_{minor}_x86_64" for minor in (5, 12, 17, 24, 26, 27, 28, 31, 34, 35, 36)),
    *("manylinux1_x86_64", "manylinux2010_x86_64", "manylinux2014_x86_64", "linux_x86_64"),
)


def download(project: Project, target: Target, folder: Path, lock: Path = LOCK) -> list[Path]:
    """All wheels that `project` needs on `target`, in `folder`, which then holds nothing else.

    Raises `LockError` if the lock lacks one of them, CalledProcessError if pip fails.
    """
    folder.mkdir(parents=True, exist_ok=True)
    locked = read_lock(lock, target)
    wanted: dict[str, set[str]] = {}
    wheels: dict[str, Path] = {}
    todo = _applying(map(Requirement, project.requirements), target, {""})
    while todo:
        new: list[Requirement] = []
        for requirement in todo:
            name = canonicalize_name(requirement.name)
            if name not in wanted or not requirement.extras <= wanted[name]:
                wanted.setdefault(name, set()).update(requirement.extras)
                new.append(requirement)
        entries = [_entry(locked, requirement) for requirement in new]
        _fetch([entry for entry in entries if entry.name not in wheels], target, folder, wheels)
        todo = []
        for entry in entries:
            replaced = project.replaced_requirements.get(entry.name)
            lines = _requires(wheels[entry.name]) if replaced is None else list(replaced)
            todo += _applying(map(Requirement, lines), target, {"", *wanted[entry.name]})
    for path in set(folder.iterdir()) - set(wheels.values()):
        path.unlink()
    return sorted(wheels.values())


def build_own(folder: Path) -> Path:
    """The project's own wheel, in `folder`; the same bytes for the same files."""
    for old in folder.glob("draftlight-*.whl"):
        old.unlink()
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"),
            *("--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)),
        ],
        check=True,
        env={**os.environ, "SOURCE_DATE_EPOCH": source_date()},
    )
    (wheel,) = folder.glob("draftlight-*.whl")
    return wheel


def pinned(wheel: Path) -> str:
    """`name==version` of a wheel file."""
    name, version, _, _ = parse_wheel_filename(wheel.name)
    return f"{name}=={version}"


def _applying(requirements: Iterable[Requirement], target: Target, extras: set[str]) -> list[Requirement]:
    environment = target.environment
    return [
        requirement
        for requirement in requirements
        if requirement.marker is None
        or any(requirement.marker.evaluate({**environment, "extra": extra}) for extra in extras)
    ]


def _entry(locked: dict[str, Locked], requirement: Requirement) -> Locked:
    entry = locked.get(canonicalize_name(requirement.name))
    if entry is None:
        raise LockError(f"{requirement} is needed and not in the lock. Run “make lock”.")
    if not requirement.specifier.contains(entry.version, prereleases=True):
        raise LockError(f"{requirement} is needed, and the lock has {entry.version}. Run “make lock”.")
    return entry


def _fetch(entries: list[Locked], target: Target, folder: Path, wheels: dict[str, Path]) -> None:
    """Download what is not there yet, with hashes required, and note all of it in `wheels`."""
    missing = [entry for entry in entries if _there(entry, folder) is None]
    if missing:
        tags = _LINUX_TAGS if target.sys_platform == "linux" else (target.wheel_platform,)
        with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as listed:
            listed.write("\n".join(entry.requirement for entry in missing))
            listed.flush()
            subprocess.run(
                [
                    *(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"),
                    *(
                        "--no-deps",
                        "--require-hashes",
                        "--only-binary=:all:",
                        "--python-version",
                        target.python,
                    ),
                    *(argument for tag in tags for argument in ("--platform", tag)),
                    *("--dest", str(folder), "--requirement", listed.name),
                ],
                check=True,
            )
    for entry in entries:
        path = _there(entry, folder)
        if path is None:
            raise LockError(f"pip downloaded no wheel of {entry.name} {entry.version} with a locked hash.")
        wheels[entry.name] = path


def _there(entry: Locked, folder: Path) -> Path | None:
    for path in folder.glob("*.whl"):
        name, version, _, _ = parse_wheel_filename(path.name)
        if (name, str(version)) == (entry.name, entry.version):
            with path.open("rb") as file:
                if hashlib.file_digest(file, "sha256").hexdigest() in entry.hashes:
                    return path
            path.unlink()  # cut off, or of another lock
    return None


def _requires(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [n for n in archive.namelist() if n.count("/") == 1 and n.endswith(".dist-info/METADATA")]
        headers = HeaderParser().parsestr(archive.read(name).decode("utf-8"))
    return headers.get_all("Requires-Dist") or []
