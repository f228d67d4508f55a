"""AnswerFooter: the token strip, figures, notes, sources and buttons under an answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent, QResizeEvent
from PySide6.QtWidgets import QWidget

from app.chat import strings, tokens
from app.chat.intents import (
    Branch,
    ContinueAnswer,
    EditAnswer,
    Intent,
    OpenSource,
    ReadEverything,
    Regenerate,
    ShowVersion,
)
from app.chat.sources import Source, SourcesRow
from app.chat.stats_line import StatsLabel, StatsPart
from app.chat.tokens import TokenStrip
from app.controls.buttons import Button
from app.controls.text_label import TextLabel
from app.richtext.canvas_menu import ActionButton
from app.theme.measures import set_font
from app.theme.zoom import px, px_size


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


_STRIP_BOTTOM_PX = tokens.STRIP_REACH_PX + tokens.STRIP_PX
_STATS_GAP_PX = 7
_NOTE_GAP_PX = 2
_ACTIONS_GAP_PX = 3
_ACTIONS_LEFT_PX = -6
_ACTION_PITCH_PX = 28
_EVERYTHING_GAP_PX = 8
_ESTIMATE_GAP_PX = 4


class AnswerFooter(QWidget):
    """Its top is `tokens.STRIP_REACH_PX` above the strip. `act` gets the person's intents about the turn."""

    def __init__(
        self,
        turn_id: str,
        act: Callable[[Intent], object],
        copy: Callable[[], object],
        point: Callable[[int], object],
        parent: QWidget | None = None,
    ) -> None:
        """`copy` copies the answer. `point` gets the index of the token under the mouse, or −1."""
        super().__init__(parent)
        self._copies_only = False
        self._editable = False
        self._finished = False
        self._prompt_tokens = 0  # of a sparse prefill
        self._limit_tokens = self._limit_then_tokens = 0  # 0: unknown
        self._notes: list[TextLabel] = []
        self.strip = TokenStrip(point, self)
        self.stats = StatsLabel(self)
        self.sources = SourcesRow(lambda source: act(OpenSource(turn_id, source)), self)
        self.versions = VersionSwitch(lambda index: act(ShowVersion(turn_id, index)), self)
        self.copy_button = ActionButton("copy", strings.COPY_ANSWER, self)
        self._again = ActionButton("redo", strings.REGENERATE, self)
        self._branch = ActionButton("branch", strings.BRANCH, self)
        self.edit_button = ActionButton("edit", strings.EDIT_ANSWER, self)
        self.continue_button = Button(strings.CONTINUE, "link", True, self)
        self.everything_button = Button(strings.READ_EVERYTHING, "link", True, self)
        self._estimate = TextLabel("", 11, 16, "text2", tabular=True, parent=self)
        self.copy_button.clicked.connect(copy)
        self.copy_button.clicked.connect(self.copy_button.show_done)
        for button, intent in (
            (self._again, Regenerate(turn_id)),
            (self._branch, Branch(turn_id)),
            (self.edit_button, EditAnswer(turn_id)),
            (self.continue_button, ContinueAnswer()),
            (self.everything_button, ReadEverything(turn_id)),
        ):
            button.clicked.connect(lambda checked=False, intent=intent: act(intent))
        for widget in (*self.buttons, self.edit_button, *self._links, self._estimate):
            widget.hide()

    @property
    def buttons(self) -> tuple[ActionButton, ...]:
        """The icon buttons, from left to right."""
        if self._copies_only:
            return (self.copy_button,)
        edit = (self.edit_button,) if self._editable else ()
        return (self.copy_button, self._again, self._branch, *edit)

    @property
    def _links(self) -> tuple[QWidget, ...]:
        return (self.versions, self.continue_button, self.everything_button)

    def offer_copy_only(self) -> None:
        """Offer Copy only, for answers to API clients."""
        self._copies_only = True
        for button in (self._again, self._branch, self.edit_button):
            button.hide()

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
        self.sources.show_sources(sources)
        for text in notes:
            note = TextLabel(text, 11, 16, "text2", wrap=True, tabular=True, parent=self)
            note.show()
            self._notes.append(note)
        self._finished = True
        self.strip.describe()
        for button in self.buttons:
            button.show()

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
        self._arrange(self.width())

    def set_revealed(self, revealed: bool) -> None:
        """Show or hide the icon buttons; their space is kept, so that nothing moves on hover."""
        for button in self.buttons:
            button.set_revealed(revealed)

    def height_for(self, width: int) -> int:
        """The height in screen pixels for a footer of that width."""
        return self._arrange(width)

    def resizeEvent(self, event: QResizeEvent) -> None:
        self._arrange(self.width())

    def _arrange(self, width: int) -> int:
        """Lay everything out for the width; returns the height."""
        # The footer's left edge is outdented by the empty border of the icon buttons.
        left = px(-_ACTIONS_LEFT_PX)
        column = width - 2 * left
        self.strip.setGeometry(left, 0, column, px(tokens.STRIP_PX + 2 * tokens.STRIP_REACH_PX))
        y = 0 if self.strip.isHidden() else px(_STRIP_BOTTOM_PX) + px(_STATS_GAP_PX)
        height = self.stats.height_for(column)
        self.stats.setGeometry(left, y, column, height)
        y += height
        for note in self._notes:
            y += px(_NOTE_GAP_PX)
            height = note.heightForWidth(column)
            note.setGeometry(left, y, column, height)
            y += height
        if not self.sources.isHidden():
            y += px(_NOTE_GAP_PX)
            height = self.sources.height_for(column)
            self.sources.setGeometry(left, y, column, height)
            y += height
        if self._finished:
            y += px(_ACTIONS_GAP_PX)
            size = px_size(ActionButton.SIZE)
            for number, button in enumerate(self.buttons):
                button.setGeometry(number * px(_ACTION_PITCH_PX), y, size.width(), size.height())
            self._arrange_links(len(self.buttons) * px(_ACTION_PITCH_PX) + px(_EVERYTHING_GAP_PX), y, width)
            y += size.height()
        return y

    def _arrange_links(self, left: int, y: int, width: int) -> None:
        for link in self._links:
            if not link.isHidden():
                size = link.sizeHint()
                link.setGeometry(left, y, size.width(), size.height())
                left += size.width() + px(_EVERYTHING_GAP_PX)
        left += px(_ESTIMATE_GAP_PX) - px(_EVERYTHING_GAP_PX)
        self._estimate.setGeometry(left, y + px(4), max(0, width - left), px(16))
