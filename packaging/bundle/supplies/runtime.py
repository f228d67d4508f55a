"""What Briefcase downloads from outside the package index: CPython and its launcher, by checksum.

Their revisions stand in the template's briefcase.toml, and so do their checksums, against which
Briefcase holds what it downloads, and what it has kept from before, each time; anything else ends the
build. A checksum that is not there yet is written by the first build that downloads: compare it with
the publisher's and commit it.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from bundle.project import BUILD, PACKAGING

TOML = PACKAGING / "template" / "{{ cookiecutter.format }}" / "briefcase.toml"
# Where Briefcase keeps them: its data folder, which the build moves here.
DOWNLOADS = BUILD / "downloads"
_KEPT_IN = {"support_package_hash": "support", "stub_binary_hash": "stub"}
_AFTER = {"support_package_hash": "support_revision", "stub_binary_hash": "stub_binary_revision"}


class DownloadsError(Exception):
    """What was downloaded is not what was expected to be."""


def unpinned(toml: Path = TOML) -> list[str]:
    """The checksums that are not there yet."""
    text = toml.read_text("utf-8")
    return [
        key for key in _KEPT_IN if not re.search(rf'^{key} = "sha256:[0-9a-f]{{64}}"$', text, re.MULTILINE)
    ]


def pin(downloads: Path = DOWNLOADS, toml: Path = TOML) -> list[str]:
    """Write the checksums that are not there yet; returns the lines that were written.

    Raises `DownloadsError` if it is not clear which file is meant.
    """
    written = []
    for key in unpinned(toml):
        files = [path for path in (downloads / _KEPT_IN[key]).glob("*") if path.is_file()]
        if len(files) != 1:
            names = ", ".join(path.name for path in files) or "nothing"
            raise DownloadsError(f"{downloads / _KEPT_IN[key]} holds {names}, and should hold one file.")
        digest = hashlib.sha256(files[0].read_bytes()).hexdigest()
        line = f'{key} = "sha256:{digest}"'
        text = toml.read_text("utf-8")
        text, found = re.subn(rf"^({_AFTER[key]} = .+)$", rf"\1\n{line}", text, flags=re.MULTILINE)
        if found != 1:
            raise DownloadsError(f"{toml.name} names no {_AFTER[key]}.")
        toml.write_text(text, "utf-8")
        written.append(f"{line}  # {files[0].name}")
    return written
