"""Section: a titled part of the inspector that opens and closes.

Closed, it shows a summary on the right. The header is a button: Space, Return or a click toggles it; Left
closes, Right opens.
"""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QLabel, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons import Button, themed_icon
from app.controls.text_label import TextLabel
from app.panels import strings
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_width,
    set_margins,
    set_maximum_width,
    set_spacing,
)
from app.theme.sheet import set_ground

PADDING_PX = 16
_HEADER_PX = 38
_SUMMARY_MAX_PX = 180


class Section(QWidget):
    """Add the contents to `body`. A hairline is below. `flush`: the contents are sections themselves."""

    def __init__(
        self,
        title: str,
        opened: bool = True,
        parent: QWidget | None = None,
        *,
        flush: bool = False,
    ) -> None:
        super().__init__(parent)
        set_ground(self, "", "bottom")
        self.header = _Header(title)
        self._holder = QWidget()
        self.body = QVBoxLayout(self._holder)
        if flush:
            self.body.setContentsMargins(0, 0, 0, 0)
            self.body.setSpacing(0)
        else:
            set_margins(self.body, PADDING_PX, 0, PADDING_PX, 14)
            set_spacing(self.body, 8)
        column_of(self.header, self._holder, margins=(0, 0, 0, 1), parent=self)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Maximum)
        self.header.setChecked(opened)
        self._holder.setVisible(opened)
        self.header.toggled.connect(self._holder.setVisible)

    @property
    def title(self) -> str:
        return self.header.text()

    @property
    def is_open(self) -> bool:
        return self.header.isChecked()

    def set_open(self, opened: bool) -> None:
        self.header.setChecked(opened)

    def set_summary(self, summary: str) -> None:
        """Set the text on the right of the closed section."""
        self.header.set_summary(summary)

    @property
    def is_own(self) -> bool:
        """Whether the section is marked."""
        return self.header.is_own

    def set_own(self, own: bool) -> None:
        """Mark that a setting in it applies to this chat only."""
        self.header.set_own(own)


class _Header(Button):
    """Chevron, title, and the summary while closed."""

    def __init__(self, title: str) -> None:
        super().__init__(title, "section")
        self.setIcon(themed_icon("right", name_on="down"))
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        set_fixed_height(self, _HEADER_PX)
        self._summary = TextLabel("", 12, 16, tabular=True, align=Qt.AlignmentFlag.AlignRight)
        set_maximum_width(self._summary, _SUMMARY_MAX_PX)
        self._dot = QLabel()
        self._dot.setProperty("dot", "own")
        set_fixed_height(self._dot, 8)
        set_fixed_width(self._dot, 8)
        self._dot.hide()
        for part in (self._summary, self._dot):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        margins = (PADDING_PX, 0, PADDING_PX, 0)
        row_of(STRETCH, self._dot, self._summary, gap=8, margins=margins, parent=self)
        self.toggled.connect(self._describe)
        self._describe()

    @property
    def summary(self) -> str:
        return self._summary.text()

    def set_summary(self, summary: str) -> None:
        self._summary.setText(summary)
        self._describe()

    @property
    def is_own(self) -> bool:
        return not self._dot.isHidden()

    def set_own(self, own: bool) -> None:
        self._dot.setVisible(own)
        self._describe()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key = event.key()
        if key in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.setChecked(key == Qt.Key.Key_Right)
        else:
            super().keyPressEvent(event)

    def _describe(self) -> None:
        self._summary.setVisible(not self.isChecked())
        state = strings.OPEN_SECTION if self.isChecked() else strings.CLOSED_SECTION
        summary = "" if self.isChecked() else self.summary
        own = strings.OWN_SETTINGS if self.is_own else ""
        self.setAccessibleDescription(", ".join(filter(None, (state, own, summary))))
        self.setToolTip(own)
