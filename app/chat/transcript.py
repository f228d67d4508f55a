"""Transcript: the scrolling conversation.

It holds an entry for every message and answer. `WidgetPool` has the widgets of those near the viewport,
`Prefetch` makes them in time, and `EntryColumn` lays them out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, QPoint, QSize, Qt, Signal
from PySide6.QtGui import QPalette, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QWidget
from shiboken6 import delete

from app.chat import strings
from app.chat.answer import AnswerView
from app.chat.entry import AnswerEntry, Entry, QuestionEntry, answer_entry
from app.chat.entry_column import EntryColumn, Item, Prefetch, UnshownEntry, WidgetPool
from app.chat.find import ChatFinder, Found, NameMatch
from app.chat.image_files import ImageFiles
from app.chat.intents import QuoteText
from app.chat.tokens import Tips, TokenTip
from app.chat.transcript_selection import TranscriptSelection
from app.chat.user_message import UserMessage
from app.controls.buttons import IconButton
from app.richtext.text_canvas import MARGIN_PX, TextCanvas
from app.richtext.tint_paint import TokenColors
from app.session.chats.conversation import Turn
from app.session.origins import AnswerOrigins
from app.session.tools.views import CallView
from app.theme.theme import color, theme
from app.theme.zoom import px
from core.events import Attachment, Finished, Message, Passage, PrefillProgress, ReadingMap, Token


def stops_in(items: Sequence[QWidget]) -> list[QWidget]:
    """The widgets in `items` that Tab stops at, in reading order.

    Qt's own order is the order of creation, and answers are created when they come near the viewport.
    """
    return [stop for item in items for stop in _stops(item)]


def next_stop(stops: Sequence[QWidget], forward: bool) -> QWidget | None:
    """The widget after the focused one of `stops`; None at the end, or if none of them has the focus."""
    focus = QApplication.focusWidget()
    if focus is None or focus not in stops:
        return None
    index = stops.index(focus) + (1 if forward else -1)
    return stops[index] if 0 <= index < len(stops) else None


def _stops(item: QWidget) -> list[QWidget]:
    found = [child for child in item.findChildren(QWidget) if takes_tab(child)]

    def position(child: QWidget) -> tuple[int, int]:
        corner = child.mapTo(item, QPoint(0, 0))
        return corner.y(), corner.x()

    return sorted(found, key=position)


def takes_tab(widget: QWidget) -> bool:
    """Whether Tab can stop at `widget` now."""
    tab = Qt.FocusPolicy.TabFocus
    can = widget.isVisible() and widget.isEnabled() and widget.focusProxy() is None
    return bool(widget.focusPolicy() & tab) and can


_NEWEST_PX = 26
_NEWEST_LEAST_PX = 18  # with its margin
_NEWEST_GAP_PX = 12


class NewestButton(IconButton):
    """Scrolls to the end; shown in the margin right of the texts while the transcript is not at its end."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__("down", strings.NEWEST, parent=parent, size=QSize(_NEWEST_PX, _NEWEST_PX))
        self.setProperty("kind", "floating")


_NEWEST_BOTTOM_PX = 12
_WHEEL_STEP_PX = 25


class Transcript(QScrollArea):
    """The open conversation. Methods take turn ids and raise `KeyError` for an unknown one."""

    intent = Signal(object)  # intents.Intent

    def __init__(self, parent: QWidget | None = None, *, read_only: bool = False) -> None:
        """`read_only`: a conversation of an API client, which can be copied but not changed."""
        super().__init__(parent)
        self._read_only = read_only
        self.images: ImageFiles | None = None  # without them, images are shown as missing
        self._mode: TokenColors = "drafts"
        self._limit_tokens = 0
        self._continuable = ""  # id of the turn whose answer can be continued
        self._entries: list[Entry] = []
        self._answers: dict[str, AnswerEntry] = {}
        self._unfinished: set[AnswerEntry] = set()
        self._pool = WidgetPool(self._make, self._make_unshown, self._release, self._is_selected_in)
        self._items = self._pool.items

        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        # Always on, so that texts keep their width. An overlay bar would repaint all texts on scrolling.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(strings.TRANSCRIPT_NAME)
        self._tips = Tips(self)
        self._column = EntryColumn(self, self._entries, self._pool, self._tips.keep)
        self._prefetch = Prefetch(self._entries, self._unfinished, self._pool, self._column, self)
        self._newest = NewestButton(self)
        self._newest.hide()
        self._newest.clicked.connect(self.scroll_to_end)
        self._selecting = TranscriptSelection(self, self._entries, self._pool, self._text_of)
        self.finder = ChatFinder(self, self)
        bar = self.verticalScrollBar()
        bar.setSingleStep(_WHEEL_STEP_PX)
        bar.valueChanged.connect(self._scrolled)
        theme.changed.connect(self._recolour)
        theme.zoomed.connect(self._zoomed)
        self._recolour()

    # ---- the conversation

    def clear(self) -> None:
        self._tips.drop()
        self._selecting.clear()
        self._pool.drop_all()
        self._entries.clear()
        self._answers.clear()
        self._unfinished.clear()
        self._continuable = ""
        self._column.clear()
        self.finder.search_again()

    def show_turns(
        self, turns: Sequence[Turn], drafter: str = "", running: AnswerEntry | None = None
    ) -> None:
        """Show another conversation at its end. `drafter` names that of answers without one.

        `running` is the entry of an answer that is being generated, perhaps one of `turns`: it is shown
        instead of the stored one.
        """
        self.clear()
        for turn in turns:
            is_running = running is not None and running.turn_id == turn.id
            entry = running if running is not None and is_running else answer_entry(turn, drafter)
            self._entries += [QuestionEntry(turn.id, turn.user), self._add_answer(entry)]
        self._newest.hide()
        self._column.place()
        self._prefetch.fill()
        self.finder.search_again()

    def replace_turn(self, turn_id: str, turn: Turn, running: AnswerEntry | None = None) -> None:
        """Replace the answer of `turn_id` by that of `turn`, another version; the question if it differs.

        `running` is the entry of its answer if that is being generated. The focus stays on the version switch
        if it was there.
        """
        old = self._answers.pop(turn_id)
        index = self._entries.index(old)
        item = self._items.get(old)
        had_focus = isinstance(item, AnswerView) and item.footer.versions.hasFocus()
        self._tips.drop()
        self._selecting.clear()
        self._unfinished.discard(old)
        question = self._entries[index - 1]
        assert isinstance(question, QuestionEntry)
        if question.message == turn.user:
            question.turn_id = turn.id
        else:
            self._drop_widget(question)
            self._entries[index - 1] = QuestionEntry(turn.id, turn.user)
        self._drop_widget(old)
        answer = self._entries[index] = self._add_answer(running or answer_entry(turn))
        if self._continuable == turn_id:
            self._continuable = ""
        self._mark_newest()
        self._column.place()
        self._prefetch.fill()
        self.finder.search_again()
        if had_focus and isinstance(shown := self._pool.ready(answer), AnswerView):
            self._column.place()
            shown.footer.versions.setFocus(Qt.FocusReason.OtherFocusReason)

    def remove_turn(self, turn_id: str) -> None:
        """Remove a question and its answer."""
        answer = self._answers.pop(turn_id)
        index = self._entries.index(answer)
        self._tips.drop()
        self._selecting.clear()
        self._unfinished.discard(answer)
        for entry in self._entries[index - 1 : index + 1]:
            self._drop_widget(entry)
        del self._entries[index - 1 : index + 1]
        if self._continuable == turn_id:
            self._continuable = ""
        self._mark_newest()
        self._column.place()
        self._prefetch.fill()
        self.finder.search_again()

    @property
    def focused_turn(self) -> str:
        """The turn whose question or answer has the focus, or else the last one; empty without turns."""
        focus = QApplication.focusWidget()
        for entry, item in self._items.items():
            if focus is not None and item.isAncestorOf(focus):
                return entry.turn_id
        return self._entries[-1].turn_id if self._entries else ""

    def _add_answer(self, entry: AnswerEntry) -> AnswerEntry:
        is_first = entry.imported and not any(each.imported for each in self._answers.values())
        entry.says_imported = is_first and not self._read_only
        self._answers[entry.turn_id] = entry
        entry.height_px = entry.estimated_px = None  # of another column width, if it was shown before
        if not entry.over:
            self._unfinished.add(entry)
        return entry

    def _drop_widget(self, entry: Entry) -> None:
        if entry in self._items:
            self._pool.drop(entry)

    def add_user(self, turn_id: str, message: Message) -> None:
        """Append a message of the person and follow the end again."""
        self._add(QuestionEntry(turn_id, message))
        self.scroll_to_end()

    def begin_answer(self, turn_id: str, drafter: str = "") -> AnswerEntry:
        """Append an empty answer. Tooltips name `drafter` until the effective settings are known."""
        entry = AnswerEntry(turn_id, drafter)
        if self._entries and isinstance(asked := self._entries[-1], QuestionEntry):
            entry.reading_state.images = len(asked.message.images)
        self.add_answer(entry)
        return entry

    def add_answer(self, entry: AnswerEntry) -> None:
        """Append an answer that is being generated."""
        self._answers[entry.turn_id] = entry
        self._unfinished.add(entry)
        self._add(entry)

    def show_progress(self, turn_id: str, progress: PrefillProgress) -> None:
        entry = self._answers[turn_id]
        entry.show_progress(progress)
        if answer := self._writing(turn_id):
            answer.show_reading()

    def show_map(self, turn_id: str, reading: ReadingMap, texts: Mapping[int, tuple[str, str]]) -> None:
        """Show which passages are read. `texts`: name and text of each attachment by source number."""
        self._answers[turn_id].show_map(reading, texts)
        if answer := self._writing(turn_id):
            answer.show_reading()

    def show_waiting(self, turn_id: str, waits_for: str) -> None:
        """Show what an unfinished answer waits for, in words; empty while it is written."""
        self._answers[turn_id].show_waiting(waits_for)
        if answer := self._writing(turn_id):
            answer.show_waiting()

    def show_calls(self, turn_id: str, calls: Sequence[CallView]) -> None:
        """Show all calls of an answer as they are now; those that wait as questions."""
        entry = self._answers.get(turn_id)
        if entry is None:
            return
        if entry.calls == tuple(calls):
            return
        entry.calls = tuple(calls)
        item = self._items.get(entry)
        if isinstance(item, AnswerView) and item.is_ready:
            item.show_calls()
            self._column.place()

    def _documents(self) -> dict[int, tuple[str, str]]:
        """Name and text of each attachment by source number: counted over all messages, from 0."""
        attached = (each for entry in self._entries for each in _documents_in(entry))
        return {number: (each.name, each.text) for number, each in enumerate(attached)}

    def show_origins(self, turn_id: str, origins: AnswerOrigins) -> None:
        """Show the origins of an answer's words."""
        entry = self._answers.get(turn_id)
        if entry is None:
            return
        entry.origins = origins
        item = self._items.get(entry)
        if isinstance(item, AnswerView) and item.is_ready:
            item.show_origins()

    def _color_chips(self) -> None:
        """Give each document's chip the color of the words that were copied from it, in the Origins view."""
        number = 0
        for entry in self._entries:
            if isinstance(entry, QuestionEntry):
                item = self._items.get(entry)
                if isinstance(item, UserMessage):
                    item.show_colors(number if self._mode == "origins" else None)
            number += len(_documents_in(entry))

    def show_passages(self, turn_id: str, index: int, passages: tuple[Passage, ...]) -> None:
        """Show which passages of attachment `index` were read; empty: all. Results have no chip."""
        for entry in self._entries:
            if not isinstance(entry, QuestionEntry) or index >= len(entry.message.attachments):
                continue
            if entry.turn_id == turn_id:
                entry.passages[index] = passages
                item = self._items.get(entry)
                if isinstance(item, UserMessage):
                    item.show_passages(index, passages)

    def append_tokens(self, turn_id: str, tokens: Sequence[Token]) -> None:
        """Append tokens to an answer; at most 30 times a second."""
        answer, entry = self._writing(turn_id), self._answers[turn_id]
        entry.append(tokens)
        if answer:
            with entry.parsing():
                answer.append(tokens)
        self.finder.refresh(entry)

    def finish_answer(self, turn_id: str, finished: Finished | None, note: str = "") -> None:
        """End an answer; `finished` is None if it was cut off."""
        answer, entry = self._writing(turn_id), self._answers[turn_id]
        entry.finished, entry.note, entry.over = finished, note, True
        entry.documents = self._documents()
        self._unfinished.discard(entry)
        if answer:
            answer.finish(finished, note)
        self.finder.refresh(entry)
        self._mark_newest()
        self._column.place()

    def set_context_limit(self, tokens: int) -> None:
        """Set what the next answer's context holds; longer prompts are not offered to be read whole."""
        self._limit_tokens = tokens
        for item in self._pool.answers:
            item.set_context_limit(tokens)

    def offer_continue(self, turn_id: str) -> None:
        """Offer Continue under the answer of `turn_id` only; under none if empty."""
        if turn_id == self._continuable:
            return
        self._continuable = turn_id
        for entry, item in self._items.items():
            if isinstance(item, AnswerView):
                item.footer.offer_continue(entry.turn_id == turn_id)

    @property
    def edited(self) -> AnswerView | None:
        """The widget of the answer that is being edited."""
        return next((answer for answer in self._pool.answers if answer.editor is not None), None)

    def edit_answer(self, turn_id: str) -> None:
        """Edit an answer in its place. Another edited one is saved first."""
        answer = self._pool.ready(self._answers[turn_id])
        if self.edited is not answer:
            self.save_edit()
        if isinstance(answer, AnswerView):
            answer.edit()
            self._column.place()
            if answer.editor is not None:
                self.ensureWidgetVisible(answer.editor.save_button)
                self.ensureWidgetVisible(answer.editor.area, 0, 0)

    def save_edit(self) -> None:
        """Save the answer that is being edited, if any, and close its editor."""
        if self.edited is not None:
            self.edited.save_edit()

    def answer_text(self, turn_id: str) -> str:
        """The Markdown source of an answer."""
        return self._answers[turn_id].source

    def copy_answer(self, turn_id: str) -> None:
        """Copy an answer, with or without a widget."""
        self._answers[turn_id].copy()

    def copy_with_sources(self, turn_id: str) -> None:
        """Copy an answer with footnotes, with or without a widget."""
        self._answers[turn_id].copy_with_sources()

    def answer(self, turn_id: str) -> AnswerView | None:
        """The widget of an answer; None if it is far from the viewport."""
        item = self._items.get(self._answers[turn_id])
        return item if isinstance(item, AnswerView) else None

    def set_token_colors(self, mode: TokenColors) -> None:
        """Sets the meaning of colors in answers. Tooltips of tokens are shown unless colors mean origins."""
        self._mode = mode
        for answer in self._pool.answers:
            answer.set_mode(mode)
        self._tips.drop()
        self._color_chips()

    def selected_text(self) -> str:
        """The selected text, over all entries."""
        return self._selecting.text

    def _newest_over(self) -> AnswerEntry | None:
        answers = (entry for entry in reversed(self._entries) if isinstance(entry, AnswerEntry))
        return next((entry for entry in answers if entry.over), None)

    def _mark_newest(self) -> None:
        newest = self._newest_over()
        for entry, item in self._items.items():
            if isinstance(item, AnswerView):
                item.set_newest(entry is newest)

    def _text_of(self, entry: Entry) -> TextCanvas:
        """The laid-out text widget of `entry`."""
        if not self._pool.is_ready(entry):
            self._pool.ready(entry)
            self._column.place()
        return self._items[entry].body

    def _is_selected_in(self, entry: Entry) -> bool:
        """Whether deleting its widget would lose a selection or an edit. A selection over several entries is
        kept elsewhere.
        """
        item = self._items[entry]
        if isinstance(item, AnswerView) and (item.editor is not None or item.has_edited_call):
            return True
        return not self._selecting.is_wide and item.body.selection is not None

    # ---- widgets for entries

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._pool.ready(entry)
        self.finder.refresh(entry)
        self._column.place()
        self._prefetch.fill()

    def _writing(self, turn_id: str) -> AnswerView | None:
        """The widget of an unfinished answer; None if it could not be shown."""
        item = self._pool.ready(self._answers[turn_id])
        return item if isinstance(item, AnswerView) else None

    def _make(self, entry: Entry) -> Item:
        # An incomplete widget, left by an error, is deleted with its temporary parent.
        parent = QWidget()
        try:
            item = self._made(entry, parent)
            self._set_up(item)
        finally:
            delete(parent)
        return item

    def _made(self, entry: Entry, parent: QWidget) -> Item:
        def resized() -> None:
            self._column.height_changed(entry)

        item: Item
        if isinstance(entry, QuestionEntry):
            item = UserMessage(entry, self.intent.emit, resized, parent, images=self.images)
            item.show_named(*self.finder.named(entry))
            if self._mode == "origins":
                before = self._entries[: self._entries.index(entry)]
                item.show_colors(sum(len(_documents_in(each)) for each in before))
            if self._read_only:
                item.offer_copy_only()
        else:
            if entry.over:
                entry.documents = self._documents()
            item = AnswerView(entry, self.intent.emit, resized, self._tips.point, parent)
            if self._read_only:
                item.offer_copy_only()
            item.body.images = self.images
            item.set_mode(self._mode)
            item.set_context_limit(self._limit_tokens)
            item.footer.offer_continue(entry.turn_id == self._continuable)
            item.set_newest(entry is self._newest_over())
        item.body.show_selection(self._selecting.part(entry))
        item.body.show_found(*self.finder.marks(entry))
        return item

    def _make_unshown(self, entry: Entry, error: Exception) -> UnshownEntry:
        name = strings.MESSAGE_NAME if isinstance(entry, QuestionEntry) else strings.ANSWER_NAME
        item = UnshownEntry(name, entry.source, error)
        self._set_up(item)
        return item

    def _set_up(self, item: Item) -> None:
        item.setParent(self._column)
        item.hide()  # until it is ready
        # Its final width; otherwise Qt first shows it at a default width and the text is laid out again.
        item.resize(self._column.column_px + 2 * MARGIN_PX, item.height())
        item.body.beyond = self._selecting
        if not self._read_only:
            item.body.quote = lambda: self.intent.emit(QuoteText(self.selected_text()))

    def _release(self, item: Item) -> None:
        self._selecting.stop()
        if isinstance(item, AnswerView):
            self._tips.forget(item)

    # ---- geometry

    def _zoomed(self) -> None:
        """Lay out again; the entry in view keeps its position."""
        self._recolour()  # a new style sheet drops the palettes of widgets
        self._tips.drop()
        self._column.place()
        self._place_newest()
        self._prefetch.fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._column.place()
        self._place_newest()
        self._prefetch.fill()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._prefetch.fill()

    def _place_newest(self) -> None:
        area = self.viewport().geometry()
        # Text that is wider than a very narrow window leaves no margin.
        right_px = min(self._column.text_right_px, area.right() + 1 - px(_NEWEST_LEAST_PX))
        margin_px = area.right() + 1 - right_px
        side_px = min(self._newest.sizeHint().width(), margin_px - 4)
        x = right_px + min(px(_NEWEST_GAP_PX), (margin_px - side_px) // 2)
        y = area.bottom() + 1 - side_px - px(_NEWEST_BOTTOM_PX)
        self._newest.setFixedSize(side_px, side_px)
        self._newest.move(x, y)

    # ---- scrolling

    @property
    def is_following(self) -> bool:
        """Whether the transcript stays scrolled to its end."""
        return self._column.is_following

    def scroll_to_end(self) -> None:
        """Scroll to the end and follow it."""
        # First, because hiding a focused button moves the focus, which scrolls.
        self._newest.hide()
        self._column.is_following = True
        self._column.go_to_end()
        self._prefetch.fill()

    def show_turn(self, turn_id: str) -> None:
        """Scroll to the question of that turn, if it exists."""
        for index, entry in enumerate(self._entries):
            if entry.turn_id == turn_id:
                self._column.go_to(index)
                return

    def _scrolled(self, value: int) -> None:
        if not self._column.is_placing:
            following = value >= self.verticalScrollBar().maximum()
            if following != self._column.is_following:
                self._column.is_following = following
                self._place_newest()
                self._newest.setVisible(not following)
                self._newest.raise_()
            self._prefetch.fill()
        self._tips.keep()

    # ---- finding, for `ChatFinder`

    def find_start(self) -> tuple[Sequence[Entry], int]:
        """The entries, and the index of the first visible one."""
        return self._entries, self._column.near().start

    def show_matches(self) -> None:
        """Mark the matches in all widgets."""
        for entry, item in self._items.items():
            item.body.show_found(*self.finder.marks(entry))
            if isinstance(item, UserMessage):
                item.show_named(*self.finder.named(entry))

    def go_to_match(self, entry: Entry, match: Found) -> None:
        """Scroll to `match`: a third from the top, unless it is visible already."""
        item = self._pool.ready(entry)
        if isinstance(match, NameMatch):
            self._column.go_to(self._entries.index(entry))
            return
        if item.body.is_given_up:  # it shows no text
            self._column.go_to(self._entries.index(entry))
            return
        item.body.reveal(match.piece)
        bar = self.verticalScrollBar()
        for _ in range(3):  # measuring the entries that come into view may move it
            self._column.place()
            rect = item.body.rects_of(match.piece, match.start, match.end)[0].toAlignedRect()
            top = item.body.mapTo(self._column, rect.topLeft()).y()
            low, high = self._column.view()
            if low + self.finder.bar.height() < top < high - 2 * rect.height():
                break
            bar.setValue(top - self.viewport().height() // 3)

    # ---- keyboard

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus in reading order, also to entries whose widget is not made yet."""
        focus = QApplication.focusWidget()
        if focus is None or not self._column.isAncestorOf(focus):
            return super().focusNextPrevChild(forward)
        owner = next(entry for entry, item in self._items.items() if item.isAncestorOf(focus))
        neighbour = self._entries.index(owner) + (1 if forward else -1)
        if 0 <= neighbour < len(self._entries):
            self._pool.ready(self._entries[neighbour])
            self._column.place()
        target = next_stop(self.stops, forward)
        if target is None:
            return super().focusNextPrevChild(forward)
        reason = Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason
        target.setFocus(reason)
        self.ensureWidgetVisible(target)
        return True

    @property
    def stops(self) -> list[QWidget]:
        """The widgets that Tab stops at, in reading order."""
        return stops_in([self._items[e] for e in self._entries if self._pool.is_ready(e)])

    # ---- tooltip

    @property
    def tip(self) -> TokenTip:
        return self._tips.tip

    def hideEvent(self, event: QEvent) -> None:
        self._tips.drop()
        super().hideEvent(event)  # type: ignore[arg-type]

    def _recolour(self) -> None:
        palette = self._column.palette()
        palette.setColor(QPalette.ColorRole.Window, color("window"))
        self._column.setPalette(palette)
        self.viewport().setPalette(palette)


def _documents_in(entry: Entry) -> Sequence[Attachment]:
    """The documents that a request has of an entry."""
    return entry.message.attachments if isinstance(entry, QuestionEntry) else entry.documents_of_calls
