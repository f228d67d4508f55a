"""NOTICE.txt: what is inside the bundle, under which licence, with the texts that came along."""

from __future__ import annotations

from pathlib import Path

from app.features.about import Licence, collect, encoder_licences, font_licences
from bundle.project import FORMAL_NAME

NOTICE = "NOTICE.txt"
# What the bundle carries beside Python packages.
_CPYTHON = Licence(
    "CPython",
    "",
    "PSF-2.0",
    ("Copyright Python Software Foundation. Its licence lies in its own folder in this bundle.",),
)
_LAUNCHER = Licence("Briefcase's launcher", "", "BSD-3-Clause", ())
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
    """Packages of the bundle without the project itself, the fonts and the encoder that the project ships."""
    packages = resources / "app_packages"
    found = collect([str(packages)])
    others = [licence for licence in found if licence.package.lower() != FORMAL_NAME.lower()]
    shipped = packages / "resources"
    return [*others, *font_licences(shipped / "fonts"), *encoder_licences(shipped / "encoder")]


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
