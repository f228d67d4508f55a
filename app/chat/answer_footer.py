"""AnswerFooter: the token strip, figures, notes, sources and buttons under an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QWidget

from app.chat import strings
from app.chat.entry import AnswerEntry
from app.chat.intents import (
    ANSWER_BUTTONS,
    AnswerButton,
    ContinueAnswer,
    Intent,
    OpenSource,
    ReadEverything,
    ShowVersion,
)
from app.chat.sources import Source, SourcesRow
from app.chat.stats_line import StatsLabel, StatsPart
from app.chat.tokens import TokenStrip
from app.controls.buttons import Button, on_click
from app.controls.text_label import TextLabel
from app.richtext.canvas_menu import ActionButton
from app.theme.measures import STRETCH, column_of, row_of, set_font


class VersionSwitch(Button):
    """‹ 2/3 ›: a click on its left half or ← shows the version before, on its right half or → the next.
    Space, Return and a screen reader's press show the next, after the last the first.

    Hidden while there is one version only. `choose` gets the index of another version.
    """

    def __init__(self, choose: Callable[[int], object], parent: QWidget | None = None) -> None:
        super().__init__("", "quiet", parent=parent)
        self._choose = choose
        self._index, self._count = 0, 1
        set_font(self, 11, tabular=True)
        self.clicked.connect(lambda: choose((self._index + 1) % self._count))
        self.hide()

    def show_version(self, index: int, count: int) -> None:
        """Show that version `index` of `count` is visible."""
        self._index, self._count = index, count
        self.setText(f"‹ {index + 1}/{count} ›")
        words = strings.VERSION.format(number=index + 1, count=count)
        self.setAccessibleName(words)
        self.setToolTip(f"{words}. {strings.VERSION_KEYS}")
        self.setVisible(count > 1)

    def step(self, by: int) -> None:
        """Choose the next version (1) or the previous one (−1), if it exists."""
        index = self._index + by
        if self.isEnabled() and 0 <= index < self._count:
            self._choose(index)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Left, Qt.Key.Key_Right):
            self.step(-1 if event.key() == Qt.Key.Key_Left else 1)
        else:
            super().keyPressEvent(event)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() == Qt.MouseButton.LeftButton:
            self.step(-1 if event.position().x() < self.width() / 2 else 1)


_STATS_GAP_PX = 3
_NOTE_GAP_PX = 2
_ACTIONS_GAP_PX = 3
_ACTIONS_LEFT_PX = -6
_ACTION_GAP_PX = 2
_LINK_GAP_PX = 6
_ESTIMATE_GAP_PX = 4


class AnswerFooter(QWidget):
    """Its top is `tokens.STRIP_REACH_PX` above the strip. `act` gets the person's intents about the turn.

    `buttons` are the icon buttons by the names of their icons.
    """

    def __init__(
        self,
        entry: AnswerEntry,
        act: Callable[[Intent], object],
        point: Callable[[int], object],
        parent: QWidget | None = None,
    ) -> None:
        """`point` gets the index of the token under the mouse, or −1."""
        super().__init__(parent)
        self._entry = entry
        self._act = act
        self._copies_only = False
        self._editable = self._finished = False
        self._prompt_tokens = 0  # of a sparse prefill
        self._limit_tokens = self._limit_then_tokens = 0  # 0: unknown
        self._notes: list[TextLabel] = []
        self.strip = TokenStrip(point, self)
        self.stats = StatsLabel(self)
        turn_id = entry.turn_id
        self.sources = SourcesRow(lambda source: act(OpenSource(turn_id, source)), self)
        self.versions = VersionSwitch(lambda index: act(ShowVersion(turn_id, index)), self)
        self.buttons = {row.icon: ActionButton(row.icon, row.title, self) for row in ANSWER_BUTTONS}
        self.continue_button = Button(strings.CONTINUE, "link", True, self)
        self.everything_button = Button(strings.READ_EVERYTHING, "link", True, self)
        self.nowhere_button = Button(strings.SHOW_NOWHERE, "link", True, self)
        self.nowhere_button.setAccessibleDescription(strings.SHOW_NOWHERE_SAYS)
        self.nowhere_button.setToolTip(strings.SHOW_NOWHERE_SAYS)
        self.facts = TextLabel("", 11, 16, "text2", wrap=True, tabular=True, parent=self)
        self.skipped = TextLabel("", 11, 16, "text2", wrap=True, tabular=True, parent=self)
        self._estimate = TextLabel("", 11, 16, "text2", tabular=True, parent=self)
        for row in ANSWER_BUTTONS:
            self.buttons[row.icon].clicked.connect(lambda checked=False, row=row: self._press(row))
        on_click(
            (self.continue_button, lambda: act(ContinueAnswer())),
            (self.everything_button, lambda: act(ReadEverything(turn_id))),
        )
        links = (self.versions, self.nowhere_button, self.continue_button, self.everything_button)
        icons = self.buttons.values()
        for widget in (*icons, *links, self._estimate, self.facts, self.skipped):
            widget.hide()
        # The footer's left edge is outdented by the empty border of the icon buttons.
        sides = (-_ACTIONS_LEFT_PX, 0, -_ACTIONS_LEFT_PX, 0)
        self._figures = column_of(
            self.stats, self.facts, self.skipped, self.sources, gap=_NOTE_GAP_PX, margins=sides
        )
        actions = row_of(
            row_of(*icons, gap=_ACTION_GAP_PX),
            row_of(*links, gap=_LINK_GAP_PX),
            self._estimate,
            STRETCH,
            gap=_LINK_GAP_PX,
        )
        self._column = column_of(
            column_of(self.strip, margins=(*sides[:3], _STATS_GAP_PX)),
            self._figures,
            row_of(actions, margins=(0, _ACTIONS_GAP_PX, 0, 0)),
            parent=self,
        )

    def _press(self, row: AnswerButton) -> None:
        if row.ask is not None:
            self._act(row.ask(self._entry))
        else:
            self._entry.copy()
            self.buttons[row.icon].show_done()

    def offer_copy_only(self) -> None:
        """Offer Copy only, for answers to API clients."""
        self._copies_only = True
        self._show_buttons()

    def _show_buttons(self) -> None:
        for row in ANSWER_BUTTONS:
            offered = row.ask is None or not self._copies_only
            self.buttons[row.icon].setVisible(
                self._finished and offered and (self._editable or not row.edits)
            )

    @property
    def notes(self) -> tuple[str, ...]:
        """The sentences under the figures."""
        return tuple(note.text() for note in self._notes)

    def finish(
        self,
        parts: Sequence[StatsPart],
        notes: Sequence[str],
        sources: tuple[Source, ...] = (),
        *,
        editable: bool = False,
    ) -> None:
        """Show the final figures, the notes, the sources and the icon buttons; Edit if `editable`."""
        self._editable = editable
        self.stats.set_parts(parts)
        self.stats.setVisible(bool(parts))
        self.sources.show_sources(sources)
        for text in notes:
            note = TextLabel(text, 11, 16, "text2", wrap=True, tabular=True, parent=self)
            self._figures.insertWidget(self._figures.indexOf(self.sources), note)
            note.show()
            self._notes.append(note)
        self.strip.finish()
        self._finished = True
        self._show_buttons()

    def show_origins(
        self, facts: str, skipped: str, sources: tuple[Source, ...], *, has_nowhere: bool
    ) -> None:
        """Show the line of facts, the line of those in skipped passages, and similar passages."""
        for label, text in ((self.facts, facts), (self.skipped, skipped)):
            label.setText(text)
            label.setVisible(bool(text))
        self.nowhere_button.setVisible(has_nowhere)
        self.sources.show_sources(sources)

    def show_version(self, index: int, count: int) -> None:
        self.versions.show_version(index, count)

    def offer_everything(self, prompt_tokens: int, context_tokens: int, estimate: str) -> None:
        """Offer Read Everything after a sparse prefill, if the context holds a prompt of that length.

        `context_tokens` was the context's limit then; that of the loaded model takes precedence.
        `estimate` gives the tokens and time.
        """
        self._prompt_tokens, self._limit_then_tokens = prompt_tokens, context_tokens
        self._estimate.setText(estimate)
        self.everything_button.setAccessibleDescription(estimate)
        self._show_everything()

    def set_context_limit(self, tokens: int) -> None:
        """Set what the next answer's context holds; 0 if that is unknown."""
        self._limit_tokens = tokens
        self._show_everything()

    def _show_everything(self) -> None:
        limit_tokens = self._limit_tokens or self._limit_then_tokens
        fits = not limit_tokens or self._prompt_tokens < limit_tokens
        offered = self._prompt_tokens > 0 and fits and not self._copies_only
        self.everything_button.setVisible(offered)
        self._estimate.setVisible(offered)

    def offer_continue(self, possible: bool) -> None:
        """Show or hide Continue."""
        self.continue_button.setVisible(possible)

    def set_revealed(self, revealed: bool) -> None:
        """Show or hide the icon buttons; their space is kept, so that nothing moves on hover."""
        for button in self.buttons.values():
            button.set_revealed(revealed)

    def height_for(self, width: int) -> int:
        """The height in screen pixels for a footer of that width."""
        self._column.activate()  # nested layouts keep their old heights until then
        return self._column.heightForWidth(width)
