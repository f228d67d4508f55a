"""The details of the selected model: memory, draft models, and commands.

Removing a model is confirmed in place of the buttons.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QPainterPath, QPaintEvent
from PySide6.QtWidgets import QAbstractButton, QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget

from app.controls.buttons import Button, IconButton, pressed_by
from app.controls.focus_ring import FocusRing
from app.controls.numbers import Slider
from app.controls.scroll_bar import ScrollPage
from app.controls.shapes import draw_box, draw_text
from app.controls.text_label import TextLabel
from app.features.models import facts as facts_of
from app.features.models import strings
from app.features.models.facts import DraftFacts, MemoryPart
from app.features.models.row import LEFT, chip_width, draw_chip
from app.features.models.state import ModelsState
from app.theme.fonts import ui_font
from app.theme.measures import (
    ANY_PX,
    add_gap,
    set_fixed_height,
    set_fixed_width,
    set_margins,
    set_maximum_width,
    set_minimum_width,
    set_spacing,
)
from app.theme.theme import Theme
from app.theme.zoom import area_of, height_of, painter_on, px_size, width_of
from core.events import ModelEntry

WIDTH_PX = 388
_PADDING_PX = 20
_STEP_TOKENS = 1024
_INSIDE_PX = WIDTH_PX - 2 * _PADDING_PX - 1


class ModelDetail(QWidget):
    """Call `show_model()` after each change; signals have the model's reference."""

    commanded = Signal(str, str)  # a command of `ModelsWindow`; the model's or draft model's reference
    context_changed = Signal(int)  # context in tokens for the memory estimate

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._entry: ModelEntry | None = None
        self._beside = True
        self.set_beside(True)
        self.setAccessibleName(strings.DETAIL)
        self.title = TextLabel(theme, "", 15, 20, "text", weight=600)
        self.title.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.family = _Chip(theme)
        self.summary = TextLabel(theme, "", 12, 16, tabular=True, wrap=True, width_px=_INSIDE_PX)
        self.problem = TextLabel(theme, "", 12, 16, "danger", wrap=True, width_px=_INSIDE_PX)
        self.sum = TextLabel(theme, "", 12, 16, tabular=True, align=Qt.AlignmentFlag.AlignRight)
        self.memory = MemoryBar(theme)
        self.context = Slider(theme, 0, 1, 1)
        self.tokens = TextLabel(theme, "", 12, 16, "text", tabular=True, align=Qt.AlignmentFlag.AlignRight)
        self.choices = DraftChoices(theme)
        self.note = TextLabel(theme, "", 11, 15, wrap=True, width_px=_INSIDE_PX)
        self.load = Button(theme, strings.LOAD, "primary")
        self.unload = Button(theme, strings.UNLOAD)
        self.at_start = Button(theme, strings.AT_START)
        self.folder = IconButton(theme, "folder", strings.SHOW_FOLDER)
        self.remove = IconButton(theme, "trash", strings.REMOVE)
        self.question = TextLabel(theme, "", 12, 16, "text", wrap=True, width_px=_INSIDE_PX)
        self.keep = Button(theme, strings.KEEP)
        self.confirm = Button(theme, strings.ERASE, "primary")
        self._lay_out()
        self._wire()
        self.show_nothing()

    @property
    def entry(self) -> ModelEntry | None:
        """The displayed model; None for no selection."""
        return self._entry

    def set_beside(self, beside: bool) -> None:
        """Set whether it is on the right of the list with a fixed width, or below it over the full width."""
        self._beside = beside
        set_minimum_width(self, WIDTH_PX if beside else 0)
        set_maximum_width(self, WIDTH_PX if beside else ANY_PX)

    def show_nothing(self) -> None:
        """Show that no model is selected."""
        self._entry = None
        self._body.hide()
        self._nothing.show()

    def show_model(
        self,
        entry: ModelEntry,
        state: ModelsState,
        context_tokens: int,
        *,
        draft: str,
        at_start: bool,
        can_load: bool,
    ) -> None:
        """`draft` is the reference of the selected draft model; `at_start`: this model is the default."""
        if self._entry is None or self._entry.reference != entry.reference:
            self._ask(False)
        self._entry = entry
        self._nothing.hide()
        self._body.show()
        loaded = state.loaded is entry
        color = facts_of.family_colors(state.models).get(entry.family, facts_of.FAMILY_COLORS[-1])
        self.title.setText(entry.name)
        self.family.show_family(entry.family_name, color)
        self.problem.setText(" ".join(part for part in (entry.problem, entry.hint) if part))
        self.problem.setVisible(bool(entry.problem))
        self._show_memory(entry, state, context_tokens, draft if loaded else "")
        self._show_drafts(entry, state, context_tokens, draft if loaded else "", loaded)
        self._show_buttons(entry, state, at_start, can_load, loaded)

    def show_speed(self, entry: ModelEntry, tokens_per_s: float) -> None:
        """Show the decode speed below the name; 0 for a model without an answer."""
        words = strings.on_disk(
            facts_of.precision(entry), entry.disk_bytes, tokens_per_s, has_head=entry.head_bytes > 0
        )
        self.summary.setText(words)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._asking.isVisible():
            self._ask(False)
        else:
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        painter.fillRect(area_of(self), self._theme.color("panel"))
        beside = QRectF(0, 0, 1, height_of(self))
        edge = beside if self._beside else QRectF(0, 0, width_of(self), 1)
        painter.fillRect(edge, self._theme.color("hair"))

    # ---- inside

    def _show_memory(self, entry: ModelEntry, state: ModelsState, context_tokens: int, draft: str) -> None:
        known = bool(entry.need.weights)
        self._of_memory.setVisible(known)
        if not known:
            return
        tokens = min(context_tokens, entry.context_tokens)
        parts = facts_of.memory_parts(entry, tokens, facts_of.draft_of(entry, state, draft), state.kv)
        need = sum(part.size_bytes for part in parts)
        self.sum.setText(strings.memory_sum(need, state.limit_bytes))
        self.sum.set_color("danger" if need > state.limit_bytes else "text2")
        self.memory.show_parts(parts, state.limit_bytes)
        self.context.blockSignals(True)
        least = min(_STEP_TOKENS, entry.context_tokens // 2)
        self.context.set_bounds(least, entry.context_tokens, min(_STEP_TOKENS, least))
        self.context.set_value(tokens)
        self.context.blockSignals(False)
        self.tokens.setText(f"{tokens:,}")

    def _show_drafts(
        self, entry: ModelEntry, state: ModelsState, context_tokens: int, draft: str, loaded: bool
    ) -> None:
        found = facts_of.drafts(entry, state, context_tokens)
        chosen = facts_of.draft_of(entry, state, draft)
        self.choices.show_choices(found, chosen.reference if chosen else "", loaded)
        self._of_drafts.setVisible(not entry.problem)
        if not found:
            self.note.setText(strings.DRAFTS_NONE)
        else:
            self.note.setText(strings.DRAFTS_NOTE if loaded else strings.DRAFTS_LOAD_FIRST)

    def _show_buttons(
        self, entry: ModelEntry, state: ModelsState, at_start: bool, can_load: bool, loaded: bool
    ) -> None:
        self.load.setVisible(not loaded and not entry.problem)
        self.load.setEnabled(can_load)
        self.load.setToolTip(strings.WAIT_FOR_ANSWER if state.busy else "")
        self.unload.setVisible(loaded)
        self.unload.setEnabled(can_load)
        self.at_start.setVisible(not entry.problem)
        self.at_start.setText(strings.IS_AT_START if at_start else strings.AT_START)
        self.at_start.setAccessibleName(self.at_start.text())
        self.at_start.setEnabled(not at_start)
        self.at_start.updateGeometry()
        can_forget = entry.source == "folder" or bool(entry.listed_in)
        self.remove.setVisible(can_forget or entry.source == "download")
        self.remove.setEnabled(not loaded)
        words = strings.FORGET if can_forget else strings.REMOVE
        self.remove.setAccessibleName(words)
        self.remove.setToolTip(words)
        self.confirm.setText(words if can_forget else strings.ERASE)
        self.confirm.setAccessibleName(self.confirm.text())
        self.confirm.updateGeometry()
        if entry.listed_in:
            self.question.setText(strings.ask_forget_all(entry.listed_in))
        elif can_forget:
            self.question.setText(strings.ask_forget(entry.name))
        else:
            self.question.setText(strings.ask_erase(entry.name, entry.disk_bytes))
        if loaded:
            self._ask(False)

    def _ask(self, asking: bool) -> None:
        # Move the focus before its widget is hidden, or Qt moves it to a row of the list.
        shown, hidden = (self._asking, self._buttons) if asking else (self._buttons, self._asking)
        focused = self.focusWidget()
        shown.show()
        if focused is not None and hidden.isAncestorOf(focused):
            (self.keep if asking else self.remove).setFocus(Qt.FocusReason.OtherFocusReason)
        hidden.hide()

    def _confirmed(self) -> None:
        self._command("remove")
        self._ask(False)

    def _command(self, command: str) -> None:
        if self._entry:
            self.commanded.emit(command, self._entry.reference)

    def _wire(self) -> None:
        for button, command in (
            (self.load, "load"),
            (self.unload, "unload"),
            (self.at_start, "default"),
            (self.folder, "folder"),
        ):
            button.clicked.connect(lambda _, command=command: self._command(command))
        self.remove.clicked.connect(lambda: self._ask(True))
        self.keep.clicked.connect(lambda: self._ask(False))
        self.confirm.clicked.connect(self._confirmed)
        self.choices.chosen.connect(lambda reference: self.commanded.emit("draft", reference))
        self.context.value_changed.connect(lambda value: self.context_changed.emit(int(value)))

    def _lay_out(self) -> None:
        theme = self._theme
        self._body = QWidget()
        body = QVBoxLayout(self._body)
        set_margins(body, _PADDING_PX + 1, 18, _PADDING_PX, 18)
        body.setSpacing(0)
        head = _line(self.title, self.family, gap_px=9)
        head.addStretch(1)
        body.addLayout(head)
        add_gap(body, 2)
        body.addWidget(self.summary)
        add_gap(body, 4)
        body.addWidget(self.problem)
        memory = QWidget()
        column = QVBoxLayout(memory)
        set_margins(column, 0, 14, 0, 0)
        column.setSpacing(0)
        head = _line(TextLabel(theme, strings.MEMORY, 12, 16, "text", weight=600), gap_px=8)
        head.addWidget(self.sum, 1)
        column.addLayout(head)
        add_gap(column, 7)
        column.addWidget(self.memory)
        add_gap(column, 8)
        label = TextLabel(theme, strings.CONTEXT, 12, 24)
        set_fixed_width(label, 60)
        self.context.setAccessibleName(strings.CONTEXT)
        self.context.setToolTip(strings.CONTEXT_TIP)
        set_fixed_width(self.tokens, 56)
        column.addLayout(_line(label, self.context, self.tokens, gap_px=8))
        body.addWidget(memory)
        drafts = QWidget()
        column = QVBoxLayout(drafts)
        set_margins(column, 0, 18, 0, 0)
        column.setSpacing(0)
        column.addWidget(TextLabel(theme, strings.DRAFTS_TITLE, 12, 16, "text", weight=600))
        add_gap(column, 7)
        column.addWidget(self.choices)
        column.addWidget(_Hair(theme))
        add_gap(column, 7)
        column.addWidget(self.note)
        body.addWidget(drafts)
        add_gap(body, 14)
        self._buttons = QWidget()
        row = _line(self.load, self.unload, self.at_start, gap_px=8)
        row.addStretch(1)
        row.addWidget(self.folder)
        row.addWidget(self.remove)
        self._buttons.setLayout(row)
        self._asking = QWidget()
        asking = QVBoxLayout(self._asking)
        asking.setContentsMargins(0, 0, 0, 0)
        set_spacing(asking, 10)
        asking.addWidget(self.question)
        row = _line(self.keep, self.confirm, gap_px=8)
        row.addStretch(1)
        asking.addLayout(row)
        self._asking.hide()
        body.addWidget(self._buttons)
        body.addWidget(self._asking)
        body.addStretch(1)
        self._of_memory, self._of_drafts = memory, drafts
        area = ScrollPage(theme, self._body)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.setSpacing(0)
        self._nothing = QWidget()
        nothing = QHBoxLayout(self._nothing)
        set_margins(nothing, _PADDING_PX + 1, 18, _PADDING_PX, 0)
        nothing.addWidget(TextLabel(theme, strings.NOTHING_CHOSEN, 12, 16, wrap=True))
        layout.addWidget(self._nothing)
        layout.addWidget(area, 1)


class _Chip(QWidget):
    """The label of the tokenizer family."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text, self._color = "", ""
        set_fixed_height(self, 20)

    def show_family(self, text: str, color: str) -> None:
        """Show the family; an empty text hides the chip."""
        self._text, self._color = text, color
        self.setVisible(bool(text))
        set_fixed_width(self, int(chip_width(text) + 7) if text else 0)
        self.setAccessibleName(text)
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        if self._text:
            draw_chip(painter_on(self), self._theme, area_of(self), self._text, self._color)


class _Hair(QWidget):
    """A hairline."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        set_fixed_height(self, 1)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter_on(self).fillRect(area_of(self), self._theme.color("hair"))


def _line(*widgets: QWidget, gap_px: int) -> QHBoxLayout:
    row = QHBoxLayout()
    row.setContentsMargins(0, 0, 0, 0)
    set_spacing(row, gap_px)
    for widget in widgets:
        row.addWidget(widget)
    return row


_ROW_PX = 42
_RING_PX = 15
_SIZE_PX = 64
_RIGHT = Qt.AlignmentFlag.AlignRight


class DraftChoice(QAbstractButton):
    """A draft model: a radio button, its name, the reason, its size."""

    def __init__(self, theme: Theme, facts: DraftFacts, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._facts = facts
        self.setCheckable(True)
        set_fixed_height(self, _ROW_PX)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAttribute(Qt.WidgetAttribute.WA_Hover)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._ring = FocusRing(self, theme, 6, inset_px=3)
        self.setAccessibleName(facts.name)
        self.setAccessibleDescription(f"{facts.why}, {facts.size}")
        self.setToolTip(facts.why)

    @property
    def facts(self) -> DraftFacts:
        """The displayed facts."""
        return self._facts

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, _ROW_PX))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not pressed_by(self, event):
            super().keyPressEvent(event)

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        painter.fillRect(QRectF(0, 0, width_of(self), 1), color("hair"))
        ring = QRectF(0, (_ROW_PX - _RING_PX) / 2 + 0.5, _RING_PX, _RING_PX)
        if self.isChecked():
            draw_box(painter, ring, _RING_PX / 2, color("accent_fill" if self.isEnabled() else "text3"))
            draw_box(painter, ring.adjusted(4.5, 4.5, -4.5, -4.5), 3, color("on_accent"))
        else:
            fill = color("fill1") if self.underMouse() and self.isEnabled() else color("control")
            draw_box(painter, ring, _RING_PX / 2, fill, color("control_border"))
        usable = self._facts.usable
        left = _RING_PX + 10
        upper = QRectF(left, 5, width_of(self) - left - _SIZE_PX, 17)
        lower = QRectF(left, 22, width_of(self) - left - _SIZE_PX, 15)
        name_ink, ink = color("text" if usable else "text3"), color("text2" if usable else "text3")
        draw_text(painter, upper, self._facts.name, ui_font(12, 500), name_ink, LEFT)
        draw_text(painter, lower, self._facts.why, ui_font(11), ink, LEFT)
        size = QRectF(width_of(self) - _SIZE_PX, 0, _SIZE_PX, _ROW_PX)
        draw_text(painter, size, self._facts.size, ui_font(12, tabular=True), ink, _RIGHT)


class DraftChoices(QWidget):
    """At most one is selected; clicking it again deselects it. `show_choices()` emits nothing."""

    chosen = Signal(str)  # the reference, empty for none

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._choices: list[DraftChoice] = []
        self._layout = QVBoxLayout(self)
        self._layout.setContentsMargins(0, 0, 0, 0)
        self._layout.setSpacing(0)

    @property
    def choices(self) -> tuple[DraftChoice, ...]:
        """The choices from top to bottom."""
        return tuple(self._choices)

    def show_choices(self, facts: Sequence[DraftFacts], chosen: str, can_choose: bool) -> None:
        """`chosen` is a reference; without `can_choose` all are disabled."""
        if [choice.facts for choice in self._choices] != list(facts):
            for old in self._choices:
                old.hide()
                old.setParent(None)
                old.deleteLater()
            self._choices = [self._make(each) for each in facts]
            for choice in self._choices:
                self._layout.addWidget(choice)
        for choice in self._choices:
            choice.setChecked(choice.facts.reference == chosen)
            choice.setEnabled(choice.facts.usable and can_choose)

    def _make(self, facts: DraftFacts) -> DraftChoice:
        choice = DraftChoice(self._theme, facts)
        choice.clicked.connect(lambda on: self.chosen.emit(facts.reference if on else ""))
        return choice


_BAR_PX = 14
_LINE_PX = 21
_GAP_PX = 7
_SQUARE_PX = 9
_RIGHT_ALIGNED = Qt.AlignmentFlag.AlignRight


class MemoryBar(QWidget):
    """The parts of the memory. A bar beyond the limit is cut; the text above has the excess."""

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._parts: tuple[MemoryPart, ...] = ()
        self._limit_bytes = 0
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(strings.MEMORY)

    @property
    def parts(self) -> tuple[MemoryPart, ...]:
        """The displayed parts."""
        return self._parts

    def show_parts(self, parts: Sequence[MemoryPart], limit_bytes: int) -> None:
        """Show `parts` of `limit_bytes`."""
        self._parts, self._limit_bytes = tuple(parts), limit_bytes
        told = ", ".join(f"{part.label} {strings.size(part.size_bytes)}" for part in parts)
        self.setAccessibleDescription(told)
        self.updateGeometry()
        self.update()

    def sizeHint(self) -> QSize:
        return px_size(QSize(200, _BAR_PX + _GAP_PX + _LINE_PX * len(self._parts)))

    def minimumSizeHint(self) -> QSize:
        return self.sizeHint()

    def paintEvent(self, event: QPaintEvent) -> None:
        painter = painter_on(self)
        color = self._theme.color
        bar = QRectF(0, 0, width_of(self), _BAR_PX)
        draw_box(painter, bar, 4, color("fill2"))
        path = QPainterPath()
        path.addRoundedRect(bar, 4, 4)
        painter.save()
        painter.setClipPath(path)
        left = 0.0
        for part in self._parts:
            width = part.size_bytes / max(1, self._limit_bytes) * width_of(self)
            painter.fillRect(QRectF(left, 0, max(1.0, width - 1.5), _BAR_PX), color(part.color))
            left += max(2.5, width)
        painter.restore()
        top = float(_BAR_PX + _GAP_PX)
        for part in self._parts:
            middle = top + _LINE_PX / 2
            square = QRectF(0, middle - _SQUARE_PX / 2, _SQUARE_PX, _SQUARE_PX)
            draw_box(painter, square, 2, color(part.color))
            line = QRectF(_SQUARE_PX + 8, top, width_of(self) - _SQUARE_PX - 8, _LINE_PX)
            font = ui_font(12, tabular=True)
            draw_text(painter, line, part.label, font, color("text"), LEFT)
            draw_text(painter, line, strings.size(part.size_bytes), font, color("text2"), _RIGHT_ALIGNED)
            top += _LINE_PX
