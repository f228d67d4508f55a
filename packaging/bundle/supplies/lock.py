"""The lock file: which version of a package, under which marker, with which hashes.

Written by `uv pip compile --universal --generate-hashes`; every entry is
`name==version ; marker \\` and its hashes, one a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from packaging.markers import Marker
from packaging.utils import canonicalize_name

_ENTRY = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>[^\s;\\]+)\s*(?:;\s*(?P<marker>[^\\]+?))?\s*\\?$"
)
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")


@dataclass(frozen=True)
class Target:
    """Who the bundle is for, in the words of dependency markers and of wheel tags."""

    sys_platform: str
    machine: str
    system: str
    python: str
    wheel_platform: str

    @property
    def environment(self) -> dict[str, str]:
        """For evaluating markers."""
        return {
            "sys_platform": self.sys_platform,
            "platform_machine": self.machine,
            "platform_system": self.system,
            "python_version": self.python,
            "python_full_version": f"{self.python}.0",
            "os_name": "posix",
            "implementation_name": "cpython",
            "platform_python_implementation": "CPython",
            "extra": "",
        }


@dataclass(frozen=True)
class Locked:
    """One package of the lock, for one target."""

    name: str
    version: str
    hashes: frozenset[str]

    @property
    def requirement(self) -> str:
        """As pip reads it, with hashes."""
        return " ".join(
            [f"{self.name}=={self.version}", *(f"--hash=sha256:{h}" for h in sorted(self.hashes))]
        )


class LockError(Exception):
    """The lock does not hold what is needed."""


def read_lock(path: Path, target: Target) -> dict[str, Locked]:
    """The entries that apply to `target`, by canonical name.

    Raises `LockError` if a line cannot be read, an entry has no hash, or two versions apply.
    """
    found: dict[str, Locked] = {}
    environment = target.environment
    name, version, applies = "", "", False
    hashes: dict[str, set[str]] = {}
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if entry := _ENTRY.match(line):
            name, version = canonicalize_name(entry["name"]), entry["version"]
            applies = entry["marker"] is None or Marker(entry["marker"].strip()).evaluate(environment)
            if applies:
                if name in found:
                    raise LockError(
                        f"{path.name}:{number}: two versions of {name} apply to {target.wheel_platform}."
                    )
                hashes[name] = set()
                found[name] = Locked(name, version, frozenset())
        elif digest := _HASH.search(line):
            if applies:
                hashes[name].add(digest.group(1))
        elif line.strip() and not line.lstrip().startswith("#"):
            raise LockError(f"{path.name}:{number}: “{line}” is neither a package nor a hash.")
    if bare := [name for name, digests in hashes.items() if not digests]:
        raise LockError(f"{path.name}: no hash for {', '.join(bare)}.")
    return {name: Locked(name, entry.version, frozenset(hashes[name])) for name, entry in found.items()}
