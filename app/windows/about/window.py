"""The About window: icon, version, and every licence inside; Escape closes it."""

from __future__ import annotations

import importlib.metadata

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QIcon
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout, QWidget

from app.controls.buttons.button import Button
from app.controls.scroll_bar import OverlayScrollBar
from app.controls.text_label import TextLabel
from app.session import strings as app_strings
from app.theme.icons import APP_ICON
from app.theme.measures import set_font, set_margins, set_spacing, start_at
from app.theme.theme import Theme
from app.windows.about import strings
from app.windows.about.licences import Licence, collect, encoder_licences, font_licences
from app.windows.about.updates import Release, UpdateLook

_ICON_PX = 72
_SIZE = (520, 480)


class AboutWindow(QDialog):
    """Deletes itself when closed. `releases` is where to ask for a newer version; empty: no button."""

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, releases: str = "") -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(strings.TITLE)
        start_at(self, QSize(*_SIZE))
        number = importlib.metadata.version("draftlight")
        column = QVBoxLayout(self)
        set_margins(column, 24, 24, 24, 16)
        set_spacing(column, 8)
        icon = QLabel(self)
        icon.setPixmap(QIcon(str(APP_ICON)).pixmap(_ICON_PX, _ICON_PX))
        icon.setAlignment(Qt.AlignmentFlag.AlignHCenter)
        column.addWidget(icon)
        middle = Qt.AlignmentFlag.AlignHCenter
        column.addWidget(TextLabel(theme, app_strings.APP_NAME, 15, 20, "text", weight=600, align=middle))
        column.addWidget(TextLabel(theme, strings.version(number), 11, 15, "text2", align=middle))
        column.addWidget(TextLabel(theme, strings.CLAIM, 12, 16, "text2", align=middle))
        self.answer = TextLabel(theme, "", 11, 15, "text2", wrap=True, align=middle)
        self.answer.hide()
        column.addWidget(self.answer)
        self.licences = QPlainTextEdit(
            licence_text([*collect(), *font_licences(), *encoder_licences()]), self
        )
        self.licences.setReadOnly(True)
        set_font(self.licences, 11)
        self.licences.setTabChangesFocus(True)
        self.licences.setFrameShape(QFrame.Shape.NoFrame)
        OverlayScrollBar(theme, self.licences)
        self.licences.setAccessibleName(strings.LICENCES)
        column.addWidget(self.licences, 1)
        column.addLayout(self._buttons(theme, number, releases))

    def _buttons(self, theme: Theme, number: str, releases: str) -> QHBoxLayout:
        row = QHBoxLayout()
        if releases:
            self._look = UpdateLook(releases, number, self)
            self._look.found.connect(self._show_release)
            self._look.failed.connect(lambda reason: self._say(strings.not_found_out(reason)))
            self.look = Button(theme, strings.LOOK_FOR_UPDATE)
            self.look.clicked.connect(self._start)
            row.addWidget(self.look)
        row.addStretch(1)
        close = Button(theme, strings.CLOSE, "primary")
        close.clicked.connect(self.close)
        row.addWidget(close)
        return row

    def _start(self) -> None:
        self._say(strings.LOOKING)
        self._look.start()

    def _show_release(self, release: Release | None) -> None:
        self._say(strings.newer(release.version, release.html_url) if release else strings.NEWEST)

    def _say(self, text: str) -> None:
        self.answer.setText(text)
        self.answer.show()


def licence_text(licences: list[Licence]) -> str:
    """One line a package, then the texts."""
    others = [licence for licence in licences if licence.package.lower() != "draftlight"]
    lines = [f"{strings.LICENCES}:", ""]
    lines += [strings.package(one.package, one.version, one.name_of_licence) for one in others]
    for one in others:
        for text in one.texts:
            lines += ["", f"— {one.package} —", "", text.strip()]
    return "\n".join(lines)
