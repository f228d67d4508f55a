"""The list of models under one header: installed, downloads, and hub results.

A row widget lives as long as its model or download, so that focus and hover survive updates. Rows are 52 px
high, with buttons, and focusable for keyboard and screen readers. Up and Down select the neighbours, Return
and Space select the row; focus alone selects nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct
from PySide6.QtCore import QPointF, QRectF, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QResizeEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.buttons import Button, IconButton
from app.controls.focus_ring import FocusRing
from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import PaintedRow, draw_box, draw_text
from app.controls.text_label import TextLabel
from app.features.models import strings
from app.features.models.facts import FitFacts, RowFacts
from app.theme.fonts import ui_font
from app.theme.icons import icon_pixmap
from app.theme.measures import column_of, row_of, set_fixed_height
from app.theme.theme import color, theme
from app.theme.zoom import area_of, design_size, place, width_of, zoom
from core.events import DownloadProgress, HubModel

_RIGHT = Qt.AlignmentFlag.AlignRight
_STATE_DOT_PX = 8
_PROGRESS_PX = 5


class KeyedRow(PaintedRow):
    """`key` identifies the row among its kind. `ruled` draws the hairline above it."""

    commanded = Signal(str, str)  # a command of `ModelsWindow`, the row's key
    moved = Signal(str, int)  # the row's key, one step up or down
    button: QWidget

    def __init__(self, key: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.key = key
        self.ruled = False
        self.selected = False
        set_fixed_height(self, ROW_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, 7, inset_px=INSET_PX)
        theme.zoomed.connect(self._place)

    def set_look(self, *, selected: bool, ruled: bool) -> None:
        """Set whether it is selected, and whether there is a hairline above it."""
        if (selected, ruled) != (self.selected, self.ruled):
            self.selected, self.ruled = selected, ruled
            self.update()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.commanded.emit("select", self.key)
        super().mousePressEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        steps = {Qt.Key.Key_Up: -1, Qt.Key.Key_Down: 1}.get(Qt.Key(event.key()))
        if steps:
            self.moved.emit(self.key, steps)
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.commanded.emit("select", self.key)
        else:
            super().keyPressEvent(event)

    def paint_row(self, painter: QPainter) -> None:
        if self.selected:
            inside = area_of(self).adjusted(INSET_PX, 0, -INSET_PX, 0)
            draw_box(painter, inside, 7, color("sel"))
        elif self.ruled:
            left = INSET_PX + PADDING_PX
            painter.fillRect(QRectF(left, 0, width_of(self) - 2 * left, 1), color("hair"))
        self._paint(painter)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()

    def _place(self) -> None:
        """Position the button, or buttons, in the last column."""
        action = columns(width_of(self)).action
        size = design_size(self.button.sizeHint())
        top = (ROW_PX - size.height()) // 2
        place(self.button, action.right() - size.width(), top, size.width(), size.height())

    def _paint(self, painter: QPainter) -> None:
        raise NotImplementedError

    def _two_lines(self, painter: QPainter, box: QRectF, title: str, detail: str) -> None:
        upper = QRectF(box.left(), box.center().y() - 17, box.width() - 12, 18)
        lower = QRectF(box.left(), upper.bottom(), box.width() - 12, 15)
        draw_text(painter, upper, title, ui_font(13, 500), color("text"), LEFT)
        draw_text(painter, lower, detail, ui_font(11, tabular=True), color("text2"), LEFT)


class ModelRow(KeyedRow):
    """A model, with a button that loads or downloads it, or the reason why there is none."""

    def __init__(self, facts: RowFacts, parent: QWidget | None = None) -> None:
        super().__init__(facts.reference, parent)
        self._facts = facts
        on_the_hub = facts.standing == "on-the-hub"
        words, icon = (strings.GET, "download") if on_the_hub else (strings.LOAD, "")
        self.button = Button(words, small=True, parent=self, icon_name=icon)
        command = "get" if on_the_hub else "load"
        self.button.clicked.connect(lambda: self.commanded.emit(command, self.key))
        self.show_facts(facts, True)

    @property
    def facts(self) -> RowFacts:
        return self._facts

    def show_facts(self, facts: RowFacts, can_load: bool) -> None:
        """Show `facts`; the button is enabled if a model can be loaded now."""
        self._facts = facts
        on_the_hub = facts.standing == "on-the-hub"
        self.button.setVisible(on_the_hub or facts.standing == "loadable")
        self.button.setEnabled(can_load)
        self.button.setAccessibleName((strings.get_of if on_the_hub else strings.load_of)(facts.name))
        self.button.setToolTip("" if can_load or on_the_hub else strings.WAIT_FOR_ANSWER)
        self.setAccessibleName(facts.name)
        self.setAccessibleDescription(facts.spoken)
        self.setToolTip(facts.problem or (facts.drafts if on_the_hub else ""))
        self.update()

    def _paint(self, painter: QPainter) -> None:
        facts = self._facts
        at = columns(width_of(self))
        wide = QRectF(at.fit.left(), 0, at.action.left() - at.fit.left() - 12, ROW_PX)
        self._two_lines(painter, at.name, facts.name, facts.detail)
        if facts.family and at.family:
            fill = "window" if self.selected else "fill1"
            draw_chip(painter, at.family, facts.family, facts.family_color, fill)
        if facts.problem and not (facts.fit and facts.fit.fit == "too-large"):
            draw_text(painter, wide, facts.problem, ui_font(12), color("danger"), LEFT)
        elif facts.fit:
            draw_fit(painter, at.fit, facts.fit)
            if at.drafts:
                words = at.drafts.adjusted(0, 0, -12, 0)
                draw_text(painter, words, facts.drafts, ui_font(12), color("text2"), LEFT)
        else:
            draw_text(painter, wide, strings.UNKNOWN_FIT, ui_font(12), color("text2"), LEFT)
        if facts.state:
            ink = color("danger" if facts.standing == "unusable" else "text")
            draw_text(painter, at.action, facts.state, ui_font(12), ink, _RIGHT)
            if facts.standing == "loaded":
                width = painter.fontMetrics().horizontalAdvance(facts.state)
                left = at.action.right() - width - 6 - _STATE_DOT_PX
                dot = QRectF(left, at.action.center().y() - _STATE_DOT_PX / 2, _STATE_DOT_PX, _STATE_DOT_PX)
                draw_box(painter, dot, _STATE_DOT_PX / 2, color("series_blue"))


class DownloadRow(KeyedRow):
    """A running, paused or failed download: its progress and buttons."""

    def __init__(self, progress: DownloadProgress, parent: QWidget | None = None) -> None:
        super().__init__(progress.model, parent)
        self._progress = progress
        name = progress.model.rpartition("/")[2]
        self.pause = IconButton("pause", strings.pause_of(name), parent=self)
        self.resume = IconButton("play", strings.resume_of(name), parent=self)
        self.cancel = IconButton("x", strings.cancel_of(name), parent=self)
        for button, command in ((self.pause, "pause"), (self.resume, "resume"), (self.cancel, "cancel")):
            button.clicked.connect(lambda _, command=command: self.commanded.emit(command, self.key))
        self.show_progress(progress, True)

    @property
    def progress(self) -> DownloadProgress:
        return self._progress

    @property
    def figures(self) -> tuple[str, str]:
        """The texts below the bar: received data on the left, speed or state on the right. A reason uses the
        full width.
        """
        told = self._progress
        left = strings.arrived(told.done_bytes, told.total_bytes) if told.total_bytes else ""
        if told.state == "paused":
            return left, strings.PAUSED
        if told.state == "failed":
            return "", told.problem
        if not told.bytes_per_s:
            return left, strings.STARTING
        return left, strings.pace(told.bytes_per_s, told.seconds_left)

    def show_progress(self, progress: DownloadProgress, alive: bool) -> None:
        """Show the progress; the buttons are enabled while there is a worker."""
        had_focus = self.pause.hasFocus() or self.resume.hasFocus()
        self._progress = progress
        runs = progress.state == "running"
        self.pause.setVisible(runs)
        self.resume.setVisible(not runs)
        if had_focus:
            (self.pause if runs else self.resume).setFocus()
        for button in (self.pause, self.resume, self.cancel):
            button.setEnabled(alive)
        self.setAccessibleName(progress.model)
        self.setAccessibleDescription(", ".join(part for part in self.figures if part))
        failed = " ".join(part for part in (progress.problem, progress.hint) if part)
        self.setToolTip(failed or ", ".join(part for part in self.figures if part))
        self.update()

    def _place(self) -> None:
        right = int(columns(width_of(self)).action.right())
        size = design_size(self.cancel.sizeHint())
        top = (ROW_PX - size.height()) // 2
        place(self.cancel, right - 28, top, size.width(), size.height())
        for button in (self.pause, self.resume):
            place(button, right - 58, top, size.width(), size.height())

    def _paint(self, painter: QPainter) -> None:
        told = self._progress
        at = columns(width_of(self))
        owner, _, model = told.model.rpartition("/")
        size = strings.size(told.total_bytes) if told.total_bytes else ""
        if told.state == "failed" and size:
            size = strings.arrived(told.done_bytes, told.total_bytes)
        detail = strings.joined((size, owner))
        # Its tokenizer is unknown so far.
        start = at.fit.left() if at.drafts else at.name.right()
        self._two_lines(painter, QRectF(at.name.left(), 0, start - at.name.left(), ROW_PX), model, detail)
        track = QRectF(start, ROW_PX / 2 - 12, at.action.left() - start - 20, _PROGRESS_PX)
        draw_box(painter, track, _PROGRESS_PX / 2, color("fill2"))
        share = told.done_bytes / told.total_bytes if told.total_bytes else 0.0
        if share:
            done = QRectF(track)
            done.setWidth(max(_PROGRESS_PX, track.width() * min(1.0, share)))
            draw_box(
                painter, done, _PROGRESS_PX / 2, color("accent_fill" if told.state == "running" else "text3")
            )
        left, right = self.figures
        line = QRectF(track.left(), track.bottom() + 5, track.width(), 15)
        font = ui_font(11, tabular=True)
        if told.state == "failed":
            draw_text(painter, line, right, font, color("danger"), LEFT)
            return
        draw_text(painter, line, left, font, color("text2"), LEFT)
        advance = painter.fontMetrics().horizontalAdvance
        room = line.adjusted(advance(left) + 16, 0, 0, 0)
        if advance(right) <= room.width():  # else it is in the tooltip
            draw_text(painter, room, right, font, color("text2"), _RIGHT)


class HubRow(KeyedRow):
    """A model that can be downloaded, or the command to search the hub."""

    def __init__(self, key: str, title: str, detail: str, button: str, icon_name: str = "") -> None:
        super().__init__(key, None)
        self._title, self._detail = title, detail
        icon_name = icon_name or ("download" if key == title else "search")
        self.button = Button(button, small=True, parent=self, icon_name=icon_name)
        self.button.setAccessibleName(strings.get_of(title) if key == title else title)
        self.button.clicked.connect(lambda: self.commanded.emit("get", self.key))
        self.setAccessibleName(title)
        self.setAccessibleDescription(detail)

    @classmethod
    def of_model(cls, model: HubModel) -> HubRow:
        detail = strings.joined((strings.downloads(model.downloads), strings.GATED if model.gated else ""))
        return cls(model.model, model.model, detail, strings.GET)

    @property
    def title(self) -> str:
        """The first line."""
        return self._title

    def _paint(self, painter: QPainter) -> None:
        at = columns(width_of(self))
        box = QRectF(at.name.left(), 0, at.action.left() - at.name.left(), ROW_PX)
        self._two_lines(painter, box, self._title, self._detail)


_CHIP_PX = 18
_DOT_PX = 8
_BAR_PX = 150
# Position of the limit on the bar; the space after it shows the excess.
LIMIT_AT = 0.794
_ICON_PX = 13
LEFT = Qt.AlignmentFlag.AlignLeft


def chip_width(text: str) -> float:
    return 6 + _DOT_PX + 5 + QFontMetricsF(ui_font(11, 500)).horizontalAdvance(text) + 6


def draw_chip(painter: QPainter, box: QRectF, text: str, color: str, fill: str = "fill1") -> None:
    """Draw a family's chip on the left of `box`, centred vertically and clipped to it."""
    width = min(chip_width(text), box.width() - 6)
    chip = QRectF(box.left(), box.center().y() - _CHIP_PX / 2, width, _CHIP_PX)
    draw_box(painter, chip, 4, theme.color(fill))
    dot = QRectF(chip.left() + 6, chip.center().y() - _DOT_PX / 2, _DOT_PX, _DOT_PX)
    draw_box(painter, dot, 2, theme.color(color))
    words = chip.adjusted(6 + _DOT_PX + 5, 0, -4, 0)
    draw_text(painter, words, text, ui_font(11, 500), theme.color("text"), LEFT)


def draw_fit(painter: QPainter, box: QRectF, fit: FitFacts) -> None:
    """Draw the fit: a word, the free memory, and a bar with a mark at the limit."""
    word, top = strings.FIT_WORDS[fit.fit], box.center().y() - 15
    icon = icon_pixmap(
        strings.FIT_ICONS[fit.fit],
        color("text2"),
        _ICON_PX,
        painter.device().devicePixelRatioF() * zoom(),
    )
    painter.drawPixmap(QPointF(box.left(), top + 1.5), icon)
    line = QRectF(box.left() + _ICON_PX + 5, top, box.width() - _ICON_PX - 5, 16)
    draw_text(painter, line, word, ui_font(12, 500), color("text"), LEFT)
    past = QFontMetricsF(ui_font(12, 500)).horizontalAdvance(word) + 5
    font = ui_font(12, tabular=True)
    draw_text(painter, line.adjusted(past, 0, 0, 0), fit.text, font, color("text2"), LEFT)
    track = QRectF(box.left(), top + 22, _BAR_PX, 4)
    draw_box(painter, track, 2, color("fill2"))
    filled = QRectF(track)
    filled.setWidth(max(4.0, min(1.0, fit.share * LIMIT_AT) * _BAR_PX))
    draw_box(painter, filled, 2, color("series_vermilion" if fit.fit == "too-large" else "series_blue"))
    mark = QRectF(track.left() + _BAR_PX * LIMIT_AT - 0.75, track.top() - 3, 1.5, 10)
    painter.fillRect(mark, color("text"))


ROW_PX = 52
HEADER_PX = 28
INSET_PX = 8
PADDING_PX = 12
_NAME_PX, _FAMILY_PX, _FIT_PX, _ACTION_PX = 246, 92, 176, 96
_LEAST_NAME_PX, _LEAST_DRAFTS_PX = 200, 150
# Name, fit and action are always shown.
LEAST_WIDTH_PX = 2 * (INSET_PX + PADDING_PX) + _LEAST_NAME_PX + _FIT_PX + _ACTION_PX


class Columns(Struct, frozen=True):
    """Rectangles of full height in design pixels; None if there is no space. The action's begins after all
    others.
    """

    name: QRectF
    family: QRectF | None
    fit: QRectF
    drafts: QRectF | None
    action: QRectF


def columns(width_px: float) -> Columns:
    """Returns the columns of a row of that width: model, tokenizer, memory fit, draft model and action.

    In a narrow row the draft models are left out first, then the tokenizer family. The details show both.
    """
    left = float(INSET_PX + PADDING_PX)
    room = max(0.0, width_px - 2 * left)
    others = float(_FIT_PX + _ACTION_PX)
    family_px = drafts_px = 0.0
    if room >= _LEAST_NAME_PX + others + _FAMILY_PX:
        family_px = float(_FAMILY_PX)
    if room >= _LEAST_NAME_PX + others + family_px + _LEAST_DRAFTS_PX:
        drafts_px = max(float(_LEAST_DRAFTS_PX), room - _NAME_PX - others - family_px)
    name_px = max(0.0, room - others - family_px - drafts_px)
    boxes: list[QRectF] = []
    for width in (name_px, family_px, float(_FIT_PX), drafts_px, float(_ACTION_PX)):
        boxes.append(QRectF(left, 0, width, ROW_PX))
        left += width
    name, family, fit, drafts, action = boxes
    return Columns(name, family if family_px else None, fit, drafts if drafts_px else None, action)


_GROUP_PX = 30


_Row = TypeVar("_Row", bound=KeyedRow)


class ModelListView(QWidget):
    """Shows the rows it is given and emits commands."""

    commanded = Signal(str, str)  # a command of `ModelsWindow`; reference, hub name or text of the search

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._chosen = ""
        self.models: dict[str, ModelRow] = {}
        self.downloads: dict[str, DownloadRow] = {}
        self.hub: list[HubRow] = []
        self.suggested: dict[str, ModelRow] = {}
        self._page = QWidget()
        self._here = _Group(strings.ON_THIS_MACHINE, self._page)
        self._coming = _Group(strings.DOWNLOADING, self._page)
        self._there = _Group(strings.ON_THE_HUB, self._page)
        self._worth = _Group("", self._page)
        self._note = TextLabel("", 12, 16, wrap=True)
        self._rows = column_of(margins=(0, 0, 0, 12), parent=self._page)
        self._area = ScrollPage(self._page)
        column_of(_Header(), (self._area, 1), parent=self)
        self._empty = QWidget()
        row_of(self._note, margins=(INSET_PX + PADDING_PX, 8, INSET_PX + PADDING_PX, 8), parent=self._empty)
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
            if reference not in self.models:
                self.models[reference] = self._listening(ModelRow(each))
            self.models[reference].show_facts(each, can_load)
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
            if model not in self.downloads:
                self.downloads[model] = self._listening(DownloadRow(each))
            self.downloads[model].show_progress(each, alive)
        if changed:
            self.downloads = {model: self.downloads[model] for model in wanted}
            self._lay_out()

    def show_hub(self, rows: Sequence[HubRow], note: str) -> None:
        """Show results of the hub, and take ownership of the rows. `note` is shown on the right of the
        group's title.
        """
        for row in self.hub:
            _drop(row)
        self.hub = [self._listening(row) for row in rows]
        self._there.note.setText(note)
        self._lay_out()

    def show_suggested(self, facts: Sequence[RowFacts], title: str, alive: bool) -> None:
        """Show suggested downloads; none hides the group."""
        self._worth.title.setText(title)
        if list(self.suggested) != [each.reference for each in facts]:
            for row in self.suggested.values():
                _drop(row)
            self.suggested = {each.reference: self._listening(ModelRow(each)) for each in facts}
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

    def _listening(self, row: _Row) -> _Row:
        row.commanded.connect(self.commanded)
        row.moved.connect(self._step)
        return row

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

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_fixed_height(self, HEADER_PX)

    def paint_row(self, painter: QPainter) -> None:
        at = columns(width_of(self))
        for box, name in zip((at.name, at.family, at.fit, at.drafts, at.action), strings.COLUMNS):
            if box is None:
                continue
            place = QRectF(box.left(), 0, box.width(), HEADER_PX)
            draw_text(painter, place, name, ui_font(11), color("text2"), LEFT)
        painter.fillRect(QRectF(0, HEADER_PX - 1, width_of(self), 1), color("hair"))


class _Group(QWidget):
    """A group's title, with a note on the right."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        set_fixed_height(self, _GROUP_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.note = TextLabel("", 11, 15, align=Qt.AlignmentFlag.AlignRight)
        self.title = TextLabel(title, 11, 15, weight=600)
        margins = (INSET_PX + PADDING_PX, 6, INSET_PX + PADDING_PX, 0)
        row_of(self.title, (self.note, 1), gap=6, margins=margins, parent=self)


def _drop(row: QWidget) -> None:
    row.hide()
    row.setParent(None)
    row.deleteLater()
