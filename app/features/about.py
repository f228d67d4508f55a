"""AboutWindow: icon, version and licences."""

from __future__ import annotations

import asyncio
import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QHBoxLayout, QLabel, QWidget

from app.controls.buttons import Button
from app.controls.text_label import TextLabel
from app.features.side_window import TextView
from app.features.updates import Release, UpdateLook
from app.session import strings as app_strings
from app.theme.fonts import FONTS, shipped_fonts
from app.theme.icons import APP_ICON
from app.theme.measures import column_of, row_of, start_at
from app.theme.theme import Theme
from core.system.paths import resources_dir

TITLE = "About Draftlight"
CLAIM = "Chat with models that run on this machine. Nothing you write leaves it."
LICENCES = "Third-party software"
NO_LICENCE = "license not stated"
CLOSE = "Close"
LOOK_FOR_UPDATE = "Check for Updates"
LOOKING = "Checking…"
NEWEST = "You have the latest version."


def version(number: str) -> str:
    return f"Version {number}, Apache-2.0"


def package_line(name: str, number: str, licence: str) -> str:
    return f"{name} {number}: {licence or NO_LICENCE}"


def newer(number: str, address: str) -> str:
    return f"Version {number} is available: {address}"


def not_found_out(reason: str) -> str:
    return f"The check failed: {reason}"


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


def collect(paths: Iterable[str] | None = None) -> list[Licence]:
    """Returns the licence of every package on `paths` (None: the import path), by name."""
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
    """Returns the licences of the fonts in `folder`."""
    return [
        Licence(font.family, font.version, font.licence, ((folder / font.licence_file).read_text("utf-8"),))
        for font in shipped_fonts(folder)
    ]


def encoder_licences(folder: Path | None = None) -> list[Licence]:
    """Returns the sentence encoder's licence in `folder` (None: the shipped one); empty if missing."""
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


_ICON_PX = 72
_SIZE = (520, 480)


class AboutWindow(QDialog):
    """Deletes itself when closed. `releases` is the address of newer versions; empty hides the button.

    The licences are empty until `read_licences()`.
    """

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, releases: str = "") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(TITLE)
        start_at(self, QSize(*_SIZE))
        number = importlib.metadata.version("draftlight")
        icon = QLabel(self)
        icon.setPixmap(QIcon(str(APP_ICON)).pixmap(_ICON_PX, _ICON_PX))
        icon.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        middle = Qt.AlignmentFlag.AlignHCenter
        name = TextLabel(theme, app_strings.APP_NAME, 15, 20, "text", weight=600, align=middle)
        number_label = TextLabel(theme, version(number), 11, 15, "text2", align=middle)
        claim = TextLabel(theme, CLAIM, 12, 16, "text2", align=middle)
        self.answer = TextLabel(theme, "", 11, 15, "text2", wrap=True, align=middle)
        self.answer.hide()
        self.licences = TextView(theme, LICENCES, 11)
        buttons = self._buttons(theme, number, releases)
        column_of(
            *(icon, name, number_label, claim, self.answer, (self.licences, 1), buttons),
            gap=8,
            margins=(24, 24, 24, 16),
            parent=self,
        )
        self.close_button.setFocus()  # the text would show a caret

    async def read_licences(self) -> None:
        """Read and show the licences. Reading takes about 0.2 s, so a thread does it."""
        self.licences.setPlainText(await asyncio.to_thread(_all_licences))

    def _buttons(self, theme: Theme, number: str, releases: str) -> QHBoxLayout:
        row = row_of(gap=6)
        if releases:
            self._look = UpdateLook(releases, number, self)
            self._look.found.connect(self._show_release)
            self._look.failed.connect(lambda reason: self._say(not_found_out(reason)))
            self.look = Button(theme, LOOK_FOR_UPDATE)
            self.look.clicked.connect(self._start)
            row.addWidget(self.look)
        row.addStretch(1)
        self.close_button = Button(theme, CLOSE, "primary")
        self.close_button.clicked.connect(self.close)
        row.addWidget(self.close_button)
        return row

    def _start(self) -> None:
        self._say(LOOKING)
        self._look.start()

    def _show_release(self, release: Release | None) -> None:
        self._say(newer(release.version, release.html_url) if release else NEWEST)

    def _say(self, text: str) -> None:
        self.answer.setText(text)
        self.answer.show()


def _all_licences() -> str:
    return licence_text([*collect(), *font_licences(), *encoder_licences()])


def licence_text(licences: list[Licence]) -> str:
    """Returns a line for each package, then the texts."""
    others = [licence for licence in licences if licence.package.lower() != "draftlight"]
    lines = [f"{LICENCES}:", ""]
    lines += [package_line(one.package, one.version, one.name_of_licence) for one in others]
    for one in others:
        for text in one.texts:
            lines += ["", f"— {one.package} —", "", text.strip()]
    return "\n".join(lines)
