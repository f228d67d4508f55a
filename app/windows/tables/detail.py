"""Detail: one table: its state, its history and its teachers; or what one learned beforehand is."""

from __future__ import annotations

from datetime import datetime

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFormLayout, QHBoxLayout, QStackedWidget, QVBoxLayout, QWidget

from app.controls.text_label import TextLabel
from app.session.worker.families import recognised
from app.theme.measures import set_margins, set_spacing, set_spacings
from app.theme.theme import Theme
from app.windows.tables import strings
from app.windows.tables.history import accepted_line, entries_line
from app.windows.tables.history_chart import HistoryChart
from app.windows.tables.rows import kind_of, size_text, state_line
from app.windows.tables.teachers import Teachers
from core.events import LearnedTable, TableInfo

_MARGIN_PX = 26
_GAP_PX = 26


class TableDetail(QWidget):
    """The part under the list. Knows no worker."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self.title = TextLabel(theme, "", 15, 20, "text", weight=600)
        self.state = TextLabel(theme, "", 12, 16, tabular=True)
        self.entries = HistoryChart(theme, strings.ENTRIES, "series_blue", filled=True)
        self.accepted = HistoryChart(theme, strings.ACCEPTED_DAILY, "series_green")
        self.teachers = Teachers(theme)
        self.facts: dict[str, TextLabel] = {}
        self._pages = QStackedWidget()
        self._pages.addWidget(self._make_history())
        self._pages.addWidget(self._make_facts())
        head = QHBoxLayout()
        set_spacing(head, 10)
        head.addWidget(self.title)
        head.addWidget(self.state, 1, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        set_margins(column, _MARGIN_PX, 14, _GAP_PX, 14)
        set_spacing(column, 14)
        column.addLayout(head)
        column.addWidget(self._pages, 1)
        self.show_nothing(listed=False)

    def show_table(self, info: TableInfo, now: datetime) -> None:
        """A table that chats teach."""
        self._head(recognised(info.family_name), state_line(info, now))
        self.entries.show_line(entries_line(info.days, now.date()))
        self.accepted.show_line(accepted_line(info.days, now.date()))
        self.teachers.show_teachers(info.learned_from)
        self._pages.setCurrentIndex(0)
        self._pages.show()

    def show_learned(self, table: LearnedTable) -> None:
        """One that was learned beforehand."""
        self._head(recognised(table.family_name), kind_of(table))
        facts = {
            strings.LEARNED_FROM: table.learned_from,
            strings.USED_BY: strings.DRAFTERS[table.drafter],
            strings.ENTRIES: strings.contexts(table.entries),
            strings.SIZE: size_text(table.size_bytes),
            strings.FILE: table.file,
            strings.FINGERPRINT: table.family,
        }
        for name, value in facts.items():
            self.facts[name].setText(value)
            self.facts[name].setToolTip(value)
        self._pages.setCurrentIndex(1)
        self._pages.show()

    def show_nothing(self, *, listed: bool) -> None:
        """No table is chosen, or there is none."""
        self._head(strings.NONE_YET if listed else "", strings.NONE_YET_HINT if listed else "")
        self._pages.hide()

    def _head(self, title: str, state: str) -> None:
        self.title.setText(title)
        self.state.setText(state)
        for label in (self.title, self.state):
            label.updateGeometry()

    def _make_history(self) -> QWidget:
        page = QWidget()
        charts = QHBoxLayout()
        set_spacing(charts, _GAP_PX)
        charts.addWidget(self.entries)
        charts.addWidget(self.accepted)
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        set_spacing(column, 14)
        column.addLayout(charts)
        column.addWidget(self.teachers)
        column.addStretch(1)
        return page

    def _make_facts(self) -> QWidget:
        page = QWidget()
        form = QFormLayout(page)
        form.setContentsMargins(0, 0, 0, 0)
        set_spacings(form, 16, 8)
        for name in (
            strings.LEARNED_FROM,
            strings.USED_BY,
            strings.ENTRIES,
            strings.SIZE,
            strings.FILE,
            strings.FINGERPRINT,
        ):
            value = TextLabel(self._theme, "", 12, 18, "text", tabular=True)
            value.setTextInteractionFlags(Qt.TextInteractionFlag.NoTextInteraction)
            form.addRow(TextLabel(self._theme, name, 12, 18), value)
            self.facts[name] = value
        form.addRow(TextLabel(self._theme, strings.READ_ONLY_TABLE, 12, 18))
        return page
