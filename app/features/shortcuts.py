"""ShortcutsWindow: all keyboard shortcuts by menu, on one sheet."""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QGridLayout, QVBoxLayout, QWidget

from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.side_window import SideWindow
from app.theme.measures import (
    add_gap,
    lay_beside,
    set_margins,
    set_minimum_width,
    set_spacing,
    set_spacings,
)
from app.theme.theme import Theme
from app.theme.zoom import px

TITLE = "Keyboard Shortcuts"
WRITING = "Writing"
# What the fields do by themselves and no menu shows.
WRITING_KEYS = (
    ("Send", "Return"),
    ("Break the line", "Shift+Return"),
    ("Edit the last message", "Up"),
    ("Other versions", "Left, Right"),
)


_SIZE = QSize(760, 780)
_KEYS_PX = 120
_PAD_PX = 24
_GROUP_GAP_PX = 24

# A heading, and pairs of a command and its keys.
Sheet = Sequence[tuple[str, Sequence[tuple[str, str]]]]


class ShortcutsWindow(SideWindow):
    """`sheet` has headings with rows of a command and its keys."""

    def __init__(self, theme: Theme, sheet: Sheet, parent: QWidget | None = None) -> None:
        super().__init__(theme, TITLE, _SIZE, parent=parent)
        self.sheet = tuple(sheet)
        page = QWidget()
        columns = self._columns = QBoxLayout(QBoxLayout.Direction.LeftToRight, page)
        set_margins(columns, _PAD_PX, _PAD_PX, _PAD_PX, _PAD_PX)
        set_spacing(columns, 2 * _PAD_PX)
        sides = (QVBoxLayout(), QVBoxLayout())
        for side in sides:
            side.setSpacing(0)
            columns.addLayout(side, 1)
        # Balances the columns to within one group.
        lengths = [0, 0]
        for heading, rows in self.sheet:
            place = lengths.index(min(lengths))
            lengths[place] += len(rows) + 2
            sides[place].addLayout(self._group(heading, rows))
            add_gap(sides[place], _GROUP_GAP_PX)
        for side in sides:
            side.addStretch(1)
        self._sides = sides
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(ScrollPage(theme, page))

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Lays the sheet out in two columns if they fit."""
        super().resizeEvent(event)
        widest = max(side.sizeHint().width() for side in self._sides)
        beside = 2 * (widest + px(2 * _PAD_PX)) <= self.width()
        lay_beside(self._columns, beside)

    def _group(self, heading: str, rows: Sequence[tuple[str, str]]) -> QGridLayout:
        grid = QGridLayout()
        set_spacings(grid, 12, 6)
        grid.setAlignment(Qt.AlignmentFlag.AlignTop)
        grid.setColumnStretch(0, 1)
        grid.addWidget(TextLabel(self._theme, heading, 12, 16, "text", weight=600), 0, 0, 1, 2)
        for number, (title, keys) in enumerate(rows, start=1):
            grid.addWidget(TextLabel(self._theme, title, 13, 18, "text"), number, 0)
            written = TextLabel(self._theme, keys, 13, 18, "text2", tabular=True)
            set_minimum_width(written, _KEYS_PX)
            grid.addWidget(written, number, 1)
        return grid
