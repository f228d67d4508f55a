"""A bundle's seal: `_CodeSignature/CodeResources` names every file with its digest, and the main
executable's signature names that list, Info.plist and how the app may run. Read here to the end, so
that a seal is known to hold before codesign says so, and where there is no codesign.
"""

from __future__ import annotations

import hashlib
import plistlib
from pathlib import Path
from typing import Any

from bundle.signing.macho import MachOError, is_macho
from bundle.signing.signature import INFO_PLIST, RESOURCES, RUNTIME, changed, code_directories

LIST = Path("_CodeSignature") / "CodeResources"
# Sealed by the executable's signature itself, or by nothing because they say nothing.
_APART = {"Info.plist", "PkgInfo"}


def seal_problems(contents: Path) -> list[str]:
    """What of the sealed folder `Contents` is not as its seal says; empty if all of it is."""
    with (contents / "Info.plist").open("rb") as file:
        executable = contents / "MacOS" / plistlib.load(file)["CFBundleExecutable"]
    try:
        return [*_executable(contents, executable), *_files(contents, executable)]
    except (OSError, KeyError, plistlib.InvalidFileException, MachOError) as error:
        return [f"the seal cannot be read: {type(error).__name__}: {error}"]


def _executable(contents: Path, executable: Path) -> list[str]:
    image = executable.read_bytes()
    if problem := changed(image):
        return [f"{executable.name} {problem}"]
    strongest = code_directories(image)[-1]
    problems = [] if strongest.flags & RUNTIME else ["the hardened runtime is off"]
    for slot, path in ((INFO_PLIST, contents / "Info.plist"), (RESOURCES, contents / LIST)):
        if strongest.parts.get(slot) != strongest.of(path.read_bytes()):
            problems.append(f"{path.name} is not the one that was sealed")
    return problems


def _files(contents: Path, executable: Path) -> list[str]:
    with (contents / LIST).open("rb") as file:
        listed: dict[str, Any] = plistlib.load(file)["files2"]
    problems = [
        f"{name} {why}" for name, entry in sorted(listed.items()) if (why := _entry(contents / name, entry))
    ]
    bundles = tuple(f"{name}/" for name in listed if (contents / name).is_dir())
    for path in sorted(contents.rglob("*")):
        name = path.relative_to(contents).as_posix()
        if (
            name in listed
            or name in _APART
            or path == executable
            or name.startswith((f"{LIST.parent}/", *bundles))
        ):
            continue
        if path.is_symlink() or path.is_file():
            problems.append(f"{name} is not sealed")
    return problems


def _entry(path: Path, entry: Any) -> str:
    """What is wrong with one listed file. Nested code is sealed by its own signature, not by its bytes."""
    entry = entry if isinstance(entry, dict) else {"hash": entry}
    if "symlink" in entry:
        return "" if path.is_symlink() and str(path.readlink()) == entry["symlink"] else "links elsewhere"
    if not path.exists():
        return "" if entry.get("optional") else "is missing"
    if "cdhash" in entry:
        # A bundle within: its own seal is looked at by codesign.
        return changed(path.read_bytes()) if path.is_file() and is_macho(path) else ""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").digest()
    return "" if digest == entry.get("hash2") else "was changed after it was sealed"
