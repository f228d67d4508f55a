"""NOTICE.txt: what is inside the bundle, under which licence, with the texts that came along."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from ziafont.font import Font

from app.theme.fonts import shipped_fonts
from bundle.project import FORMAL_NAME

NOTICE = "NOTICE.txt"
_FREE_TEXT_MOST = 80
_UNSAID = {"", "UNKNOWN", "DUAL LICENSE"}
_TEXT_NAMES = ("LICENSE", "LICENCE", "COPYING", "NOTICE", "AUTHORS")


@dataclass(frozen=True)
class Licence:
    """The licence of a package: `name_of_licence` from its metadata, `texts` are whole files."""

    package: str
    version: str
    name_of_licence: str
    texts: tuple[str, ...]


# What the bundle carries beside Python packages.
_CPYTHON = Licence(
    "CPython",
    "",
    "PSF-2.0",
    ("Copyright Python Software Foundation. Its licence lies in its own folder in this bundle.",),
)
_LAUNCHER = Licence("Briefcase's launcher", "", "BSD-3-Clause", ())
# Fonts in packages whose own licence is MIT.
_FONTS_IN_PACKAGES = {
    "ziafont/fonts/DejaVuSans.ttf": "Bitstream-Vera",
    "ziamath/fonts/STIXTwoMath-Regular.ttf": "OFL-1.1",
}
_LINE = "-" * 78
_ABOUT_QT = (
    "Qt and PySide6 are used under the LGPL, version 3. They are separate files under\n"
    "Contents/Resources/app_packages/PySide6 and shiboken6 and may be replaced by other builds of\n"
    "the same version; their sources are offered by the Qt Company with each release.\n"
)


def write_notice(resources: Path) -> None:
    """`NOTICE.txt` in a bundle's Resources folder, from the packages that are in it."""
    (resources / NOTICE).write_text(notice(licences_in(resources)), encoding="utf-8")


def licences_in(resources: Path) -> list[Licence]:
    """Packages of the bundle without the project itself, the fonts in them, and what the project ships."""
    packages = resources / "app_packages"
    found = collect([str(packages)])
    others = [licence for licence in found if licence.package.lower() != FORMAL_NAME.lower()]
    shipped = packages / "resources"
    fonts = fonts_in_packages(packages)
    return [*others, *fonts, *font_licences(shipped / "fonts"), *encoder_licences(shipped / "encoder")]


def notice(licences: list[Licence]) -> str:
    """The file's text."""
    everything = [_CPYTHON, _LAUNCHER, *licences]
    lines = [
        f"{FORMAL_NAME} is licensed under the Apache License, version 2.0.",
        "It comes with these works of others:",
        "",
        *(f"  {licence.package} {licence.version}: {licence.name_of_licence}" for licence in everything),
        "",
        _ABOUT_QT,
    ]
    for licence in everything:
        for text in licence.texts:
            lines += [_LINE, f"{licence.package} {licence.version}".strip(), "", text.strip(), ""]
    return "\n".join(lines) + "\n"


def collect(paths: Iterable[str]) -> list[Licence]:
    """Returns the licence of every package on `paths`, by name."""
    by_name: dict[str, Licence] = {}
    for distribution in importlib.metadata.distributions(path=list(paths)):
        licence = _read(distribution)
        by_name.setdefault(licence.package.lower(), licence)
    return [by_name[name] for name in sorted(by_name)]


def font_licences(folder: Path) -> list[Licence]:
    """Returns the licences of the fonts in `folder`."""
    return [
        Licence(font.family, font.version, font.licence, ((folder / font.licence_file).read_text("utf-8"),))
        for font in shipped_fonts(folder)
    ]


def fonts_in_packages(packages: Path) -> list[Licence]:
    """Returns the licences of the fonts in installed `packages`, with the texts inside the fonts."""
    return [
        Licence(
            names.family, names.nameversion.split()[1], licence, (f"{names.copyright}\n\n{names.license}",)
        )
        for file, licence in _FONTS_IN_PACKAGES.items()
        if (packages / file).is_file()
        for names in [Font(packages / file).info.names]
    ]


def encoder_licences(folder: Path) -> list[Licence]:
    """Returns the sentence encoder's licence in `folder`; empty if missing."""
    try:
        text = (folder / "LICENSE.txt").read_text("utf-8")
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
