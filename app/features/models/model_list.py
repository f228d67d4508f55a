"""The list of models under one header: installed, downloads, and hub results.

A row widget lives as long as its model or download, so that focus and hover survive updates.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from PySide6.QtCore import QRectF, Qt, Signal
from PySide6.QtGui import QPainter
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import PaintedRow, draw_text
from app.controls.text_label import TextLabel
from app.features.models import strings
from app.features.models.facts import RowFacts
from app.features.models.row import (
    HEADER_PX,
    INSET_PX,
    LEFT,
    PADDING_PX,
    DownloadRow,
    HubRow,
    KeyedRow,
    ModelRow,
    columns,
)
from app.theme.fonts import ui_font
from app.theme.measures import set_fixed_height, set_margins
from app.theme.theme import Theme
from app.theme.zoom import width_of
from core.events import DownloadProgress

_GROUP_PX = 30


class ModelListView(QWidget):
    """Shows the rows it is given and emits commands."""

    commanded = Signal(str, str)  # a command of `ModelsWindow`; reference, hub name or text of the search

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._chosen = ""
        self.models: dict[str, ModelRow] = {}
        self.downloads: dict[str, DownloadRow] = {}
        self.hub: list[HubRow] = []
        self.suggested: dict[str, ModelRow] = {}
        self._page = QWidget()
        self._here = _Group(theme, strings.ON_THIS_MACHINE, self._page)
        self._coming = _Group(theme, strings.DOWNLOADING, self._page)
        self._there = _Group(theme, strings.ON_THE_HUB, self._page)
        self._worth = _Group(theme, "", self._page)
        self._note = TextLabel(theme, "", 12, 16, wrap=True)
        self._rows = QVBoxLayout(self._page)
        set_margins(self._rows, 0, 0, 0, 12)
        self._rows.setSpacing(0)
        self._area = ScrollPage(theme, self._page)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        layout.addWidget(_Header(theme))
        layout.addWidget(self._area, 1)
        note = QWidget()
        line = QHBoxLayout(note)
        set_margins(line, INSET_PX + PADDING_PX, 8, INSET_PX + PADDING_PX, 8)
        line.addWidget(self._note)
        self._empty = note
        self._lay_out()
        self.setAccessibleName(strings.MODEL_LIST)

    def show_models(self, facts: Sequence[RowFacts], chosen: str, *, can_load: bool, limit_note: str) -> None:
        """Show the installed models, with `chosen` (a reference) selected."""
        self._chosen = chosen
        self._here.note.setText(limit_note)
        wanted = {each.reference: each for each in facts}
        changed = list(self.models) != list(wanted)
        for reference in [reference for reference in self.models if reference not in wanted]:
            _drop(self.models.pop(reference))
        for reference, each in wanted.items():
            if reference in self.models:
                self.models[reference].show_facts(each, can_load)
            else:
                self.models[reference] = self._new_model(each, can_load)
        if changed:
            self.models = {reference: self.models[reference] for reference in wanted}
            self._lay_out()
        self._mark()

    def show_downloads(self, downloads: Sequence[DownloadProgress], alive: bool) -> None:
        """Show the unfinished downloads."""
        wanted = {each.model: each for each in downloads}
        changed = list(self.downloads) != list(wanted)
        for model in [model for model in self.downloads if model not in wanted]:
            _drop(self.downloads.pop(model))
        for model, each in wanted.items():
            if model in self.downloads:
                self.downloads[model].show_progress(each, alive)
            else:
                self.downloads[model] = self._new_download(each, alive)
        if changed:
            self.downloads = {model: self.downloads[model] for model in wanted}
            self._lay_out()

    def show_hub(self, rows: Sequence[HubRow], note: str) -> None:
        """Show results of the hub, and take ownership of the rows. `note` is shown on the right of the
        group's title.
        """
        for row in self.hub:
            _drop(row)
        self.hub = list(rows)
        for row in self.hub:
            self._listen(row)
        self._there.note.setText(note)
        self._lay_out()

    def show_suggested(self, facts: Sequence[RowFacts], title: str, alive: bool) -> None:
        """Show suggested downloads; none hides the group."""
        self._worth.title.setText(title)
        if list(self.suggested) != [each.reference for each in facts]:
            for row in self.suggested.values():
                _drop(row)
            self.suggested = {each.reference: self._new_suggestion(each) for each in facts}
            self._lay_out()
        for each in facts:
            self.suggested[each.reference].show_facts(each, alive)

    def say(self, text: str) -> None:
        """Show a text instead of models."""
        self._note.setText(text)
        self._empty.setVisible(bool(text))

    def choose(self, reference: str) -> None:
        """Select a row and scroll to it."""
        self._chosen = reference
        self._mark()
        if row := self.models.get(reference):
            self._area.ensureWidgetVisible(row, 0, 0)

    # ---- inside

    def _new_model(self, facts: RowFacts, can_load: bool) -> ModelRow:
        row = ModelRow(self._theme, facts)
        row.show_facts(facts, can_load)
        self._listen(row)
        return row

    def _new_download(self, progress: DownloadProgress, alive: bool) -> DownloadRow:
        row = DownloadRow(self._theme, progress)
        row.show_progress(progress, alive)
        self._listen(row)
        return row

    def _new_suggestion(self, facts: RowFacts) -> ModelRow:
        row = ModelRow(self._theme, facts)
        self._listen(row)
        return row

    def _listen(self, row: KeyedRow) -> None:
        row.commanded.connect(self.commanded)
        row.moved.connect(self._step)

    def _all_rows(self) -> list[KeyedRow]:
        return [*self.models.values(), *self.downloads.values(), *self.hub, *self.suggested.values()]

    def _step(self, key: str, steps: int) -> None:
        rows = self._all_rows()
        at = next((at for at, row in enumerate(rows) if row.hasFocus()), None)
        if at is None or not 0 <= at + steps < len(rows):
            return
        row = rows[at + steps]
        row.setFocus(Qt.FocusReason.TabFocusReason)
        row.commanded.emit("select", row.key)
        self._area.ensureWidgetVisible(row, 0, 0)

    def _mark(self) -> None:
        before: KeyedRow | None = None
        for row in self._all_rows():
            group = self._group_of(row)
            first = before is None or self._group_of(before) is not group
            chosen = row.key == self._chosen and group is self._here
            row.set_look(selected=chosen, ruled=not first and not (before and before.selected))
            before = row

    def _group_of(self, row: KeyedRow) -> _Group:
        if isinstance(row, DownloadRow):
            return self._coming
        if isinstance(row, HubRow):
            return self._there
        return self._worth if row.key in self.suggested else self._here

    def _lay_out(self) -> None:
        while self._rows.takeAt(0):
            pass
        for group in (self._here, self._coming, self._there, self._worth):
            group.hide()
        order: list[QWidget] = [self._here, self._empty, *self.models.values()]
        if self.downloads:
            order += [self._coming, *self.downloads.values()]
        if self.hub or self._there.note.text():
            order += [self._there, *self.hub]
        if self.suggested:
            order += [self._worth, *self.suggested.values()]
        for widget in order:
            self._rows.addWidget(widget)
            widget.setVisible(widget is not self._empty or bool(self._note.text()))
        self._rows.addStretch(1)
        rows = self._all_rows()
        for before, after in pairwise(rows):
            QWidget.setTabOrder(before, after)
        self._mark()


class _Header(PaintedRow):
    """The column titles, with a hairline below."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        set_fixed_height(self, HEADER_PX)

    def paint_row(self, painter: QPainter) -> None:
        at = columns(width_of(self))
        for box, name in zip((at.name, at.family, at.fit, at.drafts, at.action), strings.COLUMNS):
            if box is None:
                continue
            place = QRectF(box.left(), 0, box.width(), HEADER_PX)
            draw_text(painter, place, name, ui_font(11), self._theme.color("text2"), LEFT)
        painter.fillRect(QRectF(0, HEADER_PX - 1, width_of(self), 1), self._theme.color("hair"))


class _Group(QWidget):
    """A group's title, with a note on the right."""

    def __init__(self, theme: Theme, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_fixed_height(self, _GROUP_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.note = TextLabel(theme, "", 11, 15, align=Qt.AlignmentFlag.AlignRight)
        row = QHBoxLayout(self)
        set_margins(row, INSET_PX + PADDING_PX, 6, INSET_PX + PADDING_PX, 0)
        self.title = TextLabel(theme, title, 11, 15, weight=600)
        row.addWidget(self.title)
        row.addWidget(self.note, 1)


def _drop(row: QWidget) -> None:
    row.hide()
    row.setParent(None)
    row.deleteLater()
