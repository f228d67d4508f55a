"""FactsPanel: the facts of one request as names and values, in a column that scrolls."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QGridLayout, QVBoxLayout, QWidget

from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.theme.measures import set_fixed_width, set_margins, set_spacings
from app.theme.theme import Theme
from app.windows.server import strings
from app.windows.server.facts import Facts

WIDTH_PX = 304
_PAD_PX = 16
_NAME_PX = 104
_GAP_PX = 10
_VALUE_PX = WIDTH_PX - 1 - 2 * _PAD_PX - _NAME_PX - _GAP_PX


class FactsPanel(QWidget):
    """Rebuilds its rows only if the facts change."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._shown = Facts()
        self._values: dict[tuple[int, str], TextLabel] = {}
        self._page = QWidget()
        self._column = QVBoxLayout(self._page)
        set_margins(self._column, _PAD_PX, 12, _PAD_PX, 16)
        self._body = QWidget()
        self._column.addWidget(self._body)
        self._column.addStretch(1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(ScrollPage(theme, self._page))
        set_fixed_width(self, WIDTH_PX)
        self.setAccessibleName(strings.REQUEST)

    @property
    def facts(self) -> Facts:
        """The facts shown."""
        return self._shown

    def show_facts(self, facts: Facts) -> None:
        """Show these."""
        if facts == self._shown:
            return
        before, self._shown = self._shown, facts
        if _names(facts) == _names(before):
            for number, (_, pairs) in enumerate(facts.sections):
                for name, value in pairs:
                    self._values[number, name].setText(value)
            return
        self._build(facts)

    def _build(self, facts: Facts) -> None:
        body = QWidget()
        grid = QGridLayout(body)
        grid.setContentsMargins(0, 0, 0, 0)
        set_spacings(grid, _GAP_PX, 6)
        grid.setColumnStretch(1, 1)
        self._values.clear()
        row = 0
        top = Qt.AlignmentFlag.AlignTop
        for number, (title, pairs) in enumerate(facts.sections):
            heading = TextLabel(self._theme, title, 13, 24, "text", weight=600)
            grid.addWidget(heading, row, 0, 1, 2)
            row += 1
            for name, value in pairs:
                label = TextLabel(self._theme, name, 12, 16, wrap=True, width_px=_NAME_PX)
                shown = TextLabel(
                    self._theme, "", 12, 16, "text", wrap=True, width_px=_VALUE_PX, tabular=True
                )
                shown.setText(value)
                self._values[number, name] = shown
                grid.addWidget(label, row, 0, top)
                grid.addWidget(shown, row, 1, top)
                row += 1
        self._column.replaceWidget(self._body, body)
        self._body.hide()
        self._body.deleteLater()
        self._body = body


def _names(facts: Facts) -> tuple[tuple[str, tuple[str, ...]], ...]:
    return tuple((title, tuple(name for name, _ in pairs)) for title, pairs in facts.sections)
