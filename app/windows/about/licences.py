"""Licences of the installed packages, from their metadata, and of the shipped fonts and sentence encoder.

A package names its licence in one of three places, the newest first: `License-Expression`,
`License`, a trove classifier. Its licence texts are in its metadata folder. Packages that ship
no text are listed with the licence's name alone.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from app.theme.fonts import FONTS, shipped_fonts
from core.system.paths import resources_dir

_FREE_TEXT_MOST = 80
_UNSAID = {"", "UNKNOWN", "DUAL LICENSE"}
_TEXT_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")


@dataclass(frozen=True)
class Licence:
    """One package. `name_of_licence` is as the package says it; `texts` are whole files."""

    package: str
    version: str
    name_of_licence: str
    texts: tuple[str, ...]


def collect(paths: Iterable[str] | None = None) -> list[Licence]:
    """Every package on `paths` (None: on the import path), by name, each once."""
    found = (
        importlib.metadata.distributions()
        if paths is None
        else importlib.metadata.distributions(path=list(paths))
    )
    by_name: dict[str, Licence] = {}
    for distribution in found:
        licence = _read(distribution)
        by_name.setdefault(licence.package.lower(), licence)
    return [by_name[name] for name in sorted(by_name)]


def font_licences(folder: Path = FONTS) -> list[Licence]:
    """The fonts in `folder`, each with the text of its licence."""
    return [
        Licence(font.family, font.version, font.licence, ((folder / font.licence_file).read_text("utf-8"),))
        for font in shipped_fonts(folder)
    ]


def encoder_licences(folder: Path | None = None) -> list[Licence]:
    """The sentence encoder's in `folder` (None: the one that ships); empty if it is missing."""
    try:
        text = ((folder or resources_dir() / "encoder") / "LICENSE.txt").read_text("utf-8")
    except FileNotFoundError:
        return []
    return [Licence("all-MiniLM-L6-v2", "0.1.2", "Apache-2.0", (text,))]


def _read(distribution: importlib.metadata.Distribution) -> Licence:
    meta = distribution.metadata
    return Licence(meta["Name"], distribution.version, _name(meta), tuple(_texts(distribution)))


def _name(meta: importlib.metadata.PackageMetadata) -> str:
    expression = _field(meta, "License-Expression")
    if expression:
        return expression
    stated = _field(meta, "License")
    if stated.upper() not in _UNSAID and "\n" not in stated and len(stated) <= _FREE_TEXT_MOST:
        return stated
    classifiers = [
        line.rpartition("::")[2].strip()
        for line in meta.get_all("Classifier") or []
        if line.startswith("License ::") and line.count("::") >= 2
    ]
    if classifiers:
        return ", ".join(classifiers)
    return stated.splitlines()[0].strip() if stated else ""


def _field(meta: importlib.metadata.PackageMetadata, name: str) -> str:
    values = meta.get_all(name)
    return str(values[0]).strip() if values else ""


def _texts(distribution: importlib.metadata.Distribution) -> Iterable[str]:
    for file in sorted(distribution.files or [], key=str):
        in_metadata = ".dist-info" in str(file.parent)
        if in_metadata and any(word in file.name.upper() for word in _TEXT_NAMES):
            try:
                yield Path(str(distribution.locate_file(file))).read_text("utf-8")
            except (OSError, UnicodeDecodeError):
                continue
