"""The details of the selected model: memory, draft models, and commands.

Removing a model, or a download of which something has arrived, is confirmed in place of the buttons.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from PySide6.QtCore import QPoint, QSize, Qt
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QSizePolicy, QWidget

from app.controls.buttons import Button, IconButton, on_click
from app.controls.choices import CheckBox
from app.controls.numbers import Slider
from app.controls.scroll_bar import ScrollPage
from app.controls.text_label import TextLabel
from app.features.models import facts as facts_of
from app.features.models import strings
from app.features.models.facts import DraftFacts, MemoryPart, ModelRow
from app.features.models.state import ModelsState
from app.features.side_window import Hairline, PanelBeside
from app.theme.measures import (
    STRETCH,
    column_of,
    row_of,
    set_fixed_height,
    set_fixed_size,
    set_fixed_width,
    set_font,
)
from app.theme.sheet import set_ground
from core.events import ModelEntry, ModelHead

WIDTH_PX = 388
_PADDING_PX = 20
_STEP_TOKENS = 1024
_INSIDE_PX = WIDTH_PX - 2 * _PADDING_PX - 1
_GET_PX = 100  # width of a button next to a line


class ModelDetail(PanelBeside):
    """Call `show_model()` or `show_row()` after each change.

    `act` carries out a command of `ModelsWindow` on a row's id or a draft model's reference. `set_context`
    takes the context in tokens for the memory estimate.
    """

    def __init__(self, act: Callable[[str, str], object], set_context: Callable[[int], object]) -> None:
        super().__init__(WIDTH_PX)
        self._act = act
        self._entry: ModelEntry | None = None
        self.setAccessibleName(strings.DETAIL)
        self.title = TextLabel("", 15, 20, "text", weight=600)
        self.summary = TextLabel("", 12, 16, tabular=True, wrap=True, width_px=_INSIDE_PX)
        self.problem = TextLabel("", 12, 16, "danger", wrap=True, width_px=_INSIDE_PX)
        self.exactness = TextLabel("", 12, 16, wrap=True, width_px=_INSIDE_PX)
        self.heads = HeadList(partial(act, "get"))
        self.sum = TextLabel("", 12, 16, tabular=True, align=Qt.AlignmentFlag.AlignRight)
        self.memory = MemoryBar()
        self.context = Slider(0, 1, 1)
        self.context.value_changed.connect(lambda tokens: set_context(int(tokens)))
        self.tokens = TextLabel("", 12, 16, "text", tabular=True, align=Qt.AlignmentFlag.AlignRight)
        self.choices = DraftChoices(partial(act, "draft"))
        self.note = TextLabel("", 11, 15, wrap=True, width_px=_INSIDE_PX)
        self.act = Button("", "primary")  # the first command of the row
        self.cancel = Button(strings.COMMANDS["cancel"])
        self.unload = Button(strings.UNLOAD)
        self.at_start = Button(strings.AT_START)
        self.folder = IconButton("folder", strings.SHOW_FOLDER)
        self.remove = IconButton("trash", strings.REMOVE)
        self.question = TextLabel("", 12, 16, "text", wrap=True, width_px=_INSIDE_PX)
        self.keep = Button(strings.KEEP)
        self.confirm = Button(strings.ERASE, "primary")
        self._row_id, self._first_command, self._arrived = "", "load", ""
        self._lay_out()
        self._wire()
        self.show_row(None, False)

    def show_row(self, row: ModelRow | None, alive: bool) -> None:
        """Show a download or a model of the hub; None if nothing is selected. Without a worker (`alive`) it
        has no commands.
        """
        self._arrived = row.memory if row and "cancel" in row.commands and row.bar else ""
        if not self._arrived or self._row_id != (row.id if row else ""):
            self._ask(False)
        self._entry, self._row_id = None, row.id if row else ""
        self.title.setText(row.title if row else strings.NOTHING_CHOSEN)
        parts = (row.family, row.detail, row.purpose, row.sees, row.memory, row.drafts) if row else ()
        self.summary.setText(". ".join(filter(None, parts)))
        self.problem.setText(row.problem if row else "")
        self.problem.setVisible(bool(row and row.problem))
        of_models = self.exactness, self.heads, self._of_memory, self._of_drafts
        for part in (*of_models, self.unload, self.at_start, self.folder, self.remove):
            part.hide()
        if row is not None:
            self._show_act(row.commands[0], row.title, alive)
            self.cancel.setVisible("cancel" in row.commands)
            self.cancel.setAccessibleName(f"{self.cancel.text()} {row.title}")
            self.cancel.setEnabled(alive)
            self.confirm.setEnabled(alive)
            self._set_question(strings.ask_cancel(row.title, self._arrived), strings.ERASE)
        self._buttons.setVisible(row is not None and self._asking.isHidden())

    def show_model(
        self,
        entry: ModelEntry,
        state: ModelsState,
        context_tokens: int,
        *,
        draft: str,
        at_start: bool,
        can_load: bool,
        tokens_per_s: float,
    ) -> None:
        """`draft` is the reference of the selected draft model; `at_start`: this model is the default.

        `tokens_per_s` is the speed of its last answer, 0 without one.
        """
        if self._entry is None or self._entry.reference != entry.reference:
            self._ask(False)
        self._entry, self._row_id = entry, entry.reference
        loaded = state.loaded is entry
        self.title.setText(entry.name)
        words = strings.on_disk(
            strings.joined((entry.family_name, strings.bits(entry.bits, entry.dtype))),
            entry.disk_bytes,
            tokens_per_s,
            has_template=entry.has_template,
            sees=entry.sees,
        )
        self.summary.setText(words)
        self.problem.setText(" ".join(part for part in (entry.problem, entry.hint) if part))
        self.problem.setVisible(bool(entry.problem))
        measured = f"{strings.exactness(entry.exactness)} {strings.readings(entry.readings)}".strip()
        self.exactness.setText(measured)
        self.exactness.setVisible(bool(measured))
        self.heads.show_heads(tuple(each for each in entry.heads if each.repository not in state.taken))
        self._show_memory(entry, state, context_tokens, draft if loaded else "")
        self._show_drafts(entry, state, context_tokens, draft if loaded else "", loaded)
        self._show_buttons(entry, state, at_start, can_load, loaded)

    def ask(self) -> None:
        """Ask whether to remove the model, or cancel the download."""
        if self.remove.isEnabled() and self.remove.isVisible():
            self._ask(True)
        elif self.cancel.isVisible() and self.cancel.isEnabled():
            self.cancel.click()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self._asking.isVisible():
            self._ask(False)
        else:
            super().keyPressEvent(event)

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
        self._show_act("load", entry.name, can_load, not loaded and not entry.problem)
        self.act.setToolTip(strings.WAIT_FOR_ANSWER if state.busy else "")
        self.cancel.hide()
        self.folder.show()
        self.unload.setVisible(loaded)
        self.unload.setEnabled(can_load and not state.loading)
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
        self.confirm.setEnabled(True)
        if entry.listed_in:
            self._set_question(strings.ask_forget_all(entry.listed_in), words)
        elif can_forget:
            self._set_question(strings.ask_forget(entry.name), words)
        else:
            self._set_question(strings.ask_erase(entry.name, entry.disk_bytes), strings.ERASE)
        if loaded:
            self._ask(False)

    def _set_question(self, text: str, answer: str) -> None:
        self.question.setText(text)
        self.confirm.setText(answer)
        self.confirm.setAccessibleName(answer)
        self.confirm.updateGeometry()

    def _show_act(self, command: str, name: str, enabled: bool, visible: bool = True) -> None:
        self._first_command = command
        self.act.setText(strings.COMMANDS[command])
        self.act.setAccessibleName(f"{self.act.text()} {name}")
        self.act.setToolTip("")
        self.act.setEnabled(enabled)
        self.act.setVisible(visible)

    def _ask(self, asking: bool) -> None:
        # Move the focus before its widget is hidden, or Qt moves it to a row of the list.
        shown, hidden = (self._asking, self._buttons) if asking else (self._buttons, self._asking)
        focused = self.focusWidget()
        shown.show()
        if focused is not None and hidden.isAncestorOf(focused):
            command = self.remove if self._entry else self.cancel
            (self.keep if asking else command).setFocus(Qt.FocusReason.OtherFocusReason)
        hidden.hide()

    def _confirmed(self) -> None:
        self._command("remove" if self._entry else "cancel")
        self._ask(False)

    def _command(self, command: str) -> None:
        self._act(command, self._row_id)

    def _wire(self) -> None:
        on_click(
            (self.unload, partial(self._command, "unload")),
            (self.at_start, partial(self._command, "default")),
            (self.folder, partial(self._command, "folder")),
            (self.act, lambda: self._command(self._first_command)),
            (self.cancel, lambda: self._ask(True) if self._arrived else self._command("cancel")),
            (self.remove, lambda: self._ask(True)),
            (self.keep, lambda: self._ask(False)),
            (self.confirm, self._confirmed),
        )

    def _lay_out(self) -> None:
        memory, drafts = QWidget(), QWidget()
        heading = TextLabel(strings.MEMORY, 12, 16, "text", weight=600)
        label = TextLabel(strings.CONTEXT, 12, 24)
        set_fixed_width(label, 60)
        self.context.setAccessibleName(strings.CONTEXT)
        self.context.setToolTip(strings.CONTEXT_TIP)
        set_fixed_width(self.tokens, 56)
        total = row_of(heading, (self.sum, 1), gap=8)
        context = row_of(label, self.context, self.tokens, gap=8)
        column_of(total, 7, self.memory, 8, context, margins=(0, 14, 0, 0), parent=memory)
        heading = TextLabel(strings.DRAFTS_TITLE, 12, 16, "text", weight=600)
        line = Hairline()
        column_of(heading, 7, self.choices, line, 7, self.note, margins=(0, 18, 0, 0), parent=drafts)
        self._buttons, self._asking = QWidget(), QWidget()
        row_of(
            *(self.act, self.cancel, self.unload, self.at_start, STRETCH, self.folder, self.remove),
            gap=8,
            parent=self._buttons,
        )
        answers = row_of(self.keep, self.confirm, STRETCH, gap=8)
        column_of(self.question, answers, gap=10, parent=self._asking)
        self._asking.hide()
        self._of_memory, self._of_drafts = memory, drafts
        body = QWidget()
        column_of(
            *(self.title, 2, self.summary, 4, self.problem, self.exactness, 6),
            *(memory, self.heads, drafts, 14),
            *(self._buttons, self._asking, STRETCH),
            margins=(_PADDING_PX + 1, 18, _PADDING_PX, 18),
            parent=body,
        )
        column_of((ScrollPage(body), 1), parent=self)


class HeadList(QWidget):
    """The heads of a model, one a line. `get` downloads one, given its repository."""

    def __init__(self, get: Callable[[str], object]) -> None:
        super().__init__()
        self._get = get
        self.heads: tuple[ModelHead, ...] = ()
        self._rows: list[QWidget] = []
        title = TextLabel(strings.HEADS_TITLE, 12, 16, "text", weight=600)
        self._layout = column_of(title, 7, margins=(0, 18, 0, 0), parent=self)

    def show_heads(self, heads: tuple[ModelHead, ...]) -> None:
        self.setVisible(bool(heads))
        if heads != self.heads:
            _discard(self._rows)
            self.heads, self._rows = heads, [*map(self._make, heads)]

    def _make(self, head: ModelHead) -> QWidget:
        row, button = QWidget(), Button(strings.COMMANDS["get"], small=True)
        set_ground(row, "", "top")
        button.setAccessibleName(f"{button.text()} {head.repository}")
        on_click((button, partial(self._get, head.repository)))
        said = head.problem or strings.head(head.label, head.size_bytes, head.gain)
        words = TextLabel(said, 12, 16, wrap=True, width_px=_INSIDE_PX - _GET_PX * bool(head.repository))
        row_of(words, STRETCH, button, margins=(0, 6, 0, 5), parent=row)
        button.setHidden(not head.repository)
        self._layout.addWidget(row)
        return row


def _discard(widgets: Iterable[QWidget]) -> None:
    for widget in widgets:
        widget.hide()
        widget.setParent(None)
        widget.deleteLater()


# Indentation of a line below a check box's text, from the box's left.
_BELOW_PX = 25


class DraftChoice(CheckBox):
    """A draft model by its name and size. `facts.why` is shown below it."""

    def __init__(self, facts: DraftFacts) -> None:
        super().__init__(f"{facts.name}, {facts.size}")
        self.facts = facts
        set_font(self, 12, 500, tabular=True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setAccessibleName(facts.name)
        self.setAccessibleDescription(f"{facts.why}, {facts.size}")
        self.setToolTip(facts.why)

    def hitButton(self, pos: QPoint) -> bool:
        """The whole line takes a click, and not only the words."""
        return self.rect().contains(pos)


class DraftChoices(QWidget):
    """At most one is selected; clicking it again deselects it. `choose` gets the reference, or nothing."""

    def __init__(self, choose: Callable[[str], object]) -> None:
        super().__init__()
        self._choose = choose
        self._rows: dict[DraftChoice, QWidget] = {}
        self._layout = column_of(parent=self)

    @property
    def choices(self) -> tuple[DraftChoice, ...]:
        return tuple(self._rows)

    def show_choices(self, facts: Sequence[DraftFacts], chosen: str, can_choose: bool) -> None:
        """`chosen` is a reference; without `can_choose` all are disabled."""
        if [choice.facts for choice in self._rows] != list(facts):
            _discard(self._rows.values())
            self._rows = dict(map(self._make, facts))
        for choice in self._rows:
            choice.setChecked(choice.facts.reference == chosen)
            choice.setEnabled(choice.facts.usable and can_choose)

    def _make(self, facts: DraftFacts) -> tuple[DraftChoice, QWidget]:
        choice, row = DraftChoice(facts), QWidget()
        set_ground(row, "", "top")
        why = TextLabel(facts.why, 11, 15, "text2" if facts.usable else "text3")
        column_of(choice, row_of(_BELOW_PX, (why, 1)), margins=(0, 6, 0, 5), parent=row)
        choice.clicked.connect(lambda on: self._choose(facts.reference if on else ""))
        self._layout.addWidget(row)
        return choice, row


_BAR_PX, _LINE_PX = 14, 21


class MemoryBar(QWidget):
    """The parts of the memory, as a bar and one below the other. The part beyond the limit is not shown."""

    def __init__(self) -> None:
        super().__init__()
        self.parts: tuple[MemoryPart, ...] = ()
        self._limit_bytes = 0
        self.setAccessibleName(strings.MEMORY)
        bar = QWidget()
        set_ground(bar, "fill2")
        set_fixed_height(bar, _BAR_PX)
        self._bar = row_of(gap=1, parent=bar)
        self._lines = column_of(bar, 7, parent=self)
        self._shown: list[QWidget] = []

    def show_parts(self, parts: Sequence[MemoryPart], limit_bytes: int) -> None:
        if (tuple(parts), limit_bytes) == (self.parts, self._limit_bytes):
            return
        self.parts, self._limit_bytes = tuple(parts), limit_bytes
        told = ", ".join(f"{part.label} {strings.size(part.size_bytes)}" for part in parts)
        self.setAccessibleDescription(told)
        _discard(self._shown)
        while self._bar.takeAt(0):
            pass
        spare = limit_bytes - sum(part.size_bytes for part in parts)
        self._shown = [widget for part in parts for widget in self._add(part)]
        self._bar.addStretch(max(0, spare >> 20))

    def _add(self, part: MemoryPart) -> tuple[QWidget, QWidget]:
        block, square, line = QWidget(), QWidget(), QWidget()
        for swatch in (block, square):
            set_ground(swatch, part.color)
        set_fixed_size(square, QSize(9, 9))
        self._bar.addWidget(block, max(1, part.size_bytes >> 20))
        size = TextLabel(strings.size(part.size_bytes), 12, _LINE_PX, tabular=True)
        row_of(square, TextLabel(part.label, 12, _LINE_PX, "text"), STRETCH, size, gap=8, parent=line)
        self._lines.addWidget(line)
        return block, line
