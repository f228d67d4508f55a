"""Transcript: the scrolling conversation: messages, answers, tooltip, and the way to its end.

All of it is held as entries; widgets stand only for those near the view: `WidgetPool` has them, `Prefetch`
sees to it that they are there in time, `ReadingColumn` places them. Turns are named by ids of the
caller's choosing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QPalette, QResizeEvent, QShowEvent
from PySide6.QtWidgets import QApplication, QFrame, QScrollArea, QWidget
from shiboken6 import delete

from app.chat.answer import strings as answer_strings
from app.chat.answer.answer import AnswerView
from app.chat.answer.entry import Entry, QuestionEntry, Reply
from app.chat.answer.user_message import UserMessage
from app.chat.reading.reading_map import labels
from app.chat.tokens.token_tip import TokenTip
from app.chat.transcript import strings
from app.chat.transcript.finder import Finder
from app.chat.transcript.newest_button import NewestButton
from app.chat.transcript.prefetch import Prefetch
from app.chat.transcript.reading_column import ReadingColumn
from app.chat.transcript.selecting import Selecting
from app.chat.transcript.tab_order import next_stop, stops_in
from app.chat.transcript.tips import Tips
from app.chat.transcript.unshown_entry import UnshownEntry
from app.chat.transcript.widget_pool import Item, WidgetPool
from app.controls.scroll_bar import ScrollBar
from app.richtext.canvas.selection import Match
from app.richtext.canvas.text_canvas import TextCanvas
from app.richtext.layout.tint_paint import TintMode
from app.session.chats.conversation import Turn
from app.theme.theme import Theme
from app.theme.zoom import px
from core.events import Finished, Message, Passage, PrefillProgress, ReadingMap, Token

_NEWEST_BOTTOM_PX = 12
_WHEEL_STEP_PX = 25


class Transcript(QScrollArea):
    """All methods take the turn's id; an unknown one raises `KeyError`: that is our own mistake."""

    regenerate_requested = Signal(str)  # turn id
    everything_requested = Signal(str)  # turn id
    more_requested = Signal(str)  # turn id
    stop_requested = Signal()
    attachment_opened = Signal(str, int)  # turn id, the attachment's number in its message
    place_chosen = Signal(object)  # events.Passage, on the map that is read
    source_chosen = Signal(str, object)  # turn id, Source
    answer_chosen = Signal(str)  # turn id: a press of the mouse in its answer
    branch_requested = Signal(str)  # turn id
    edit_requested = Signal(str)  # turn id
    version_requested = Signal(str, int)  # turn id, the version's place
    compare_requested = Signal(str)  # turn id
    quote_requested = Signal(str)  # what is selected

    def __init__(self, theme: Theme, parent: QWidget | None = None, *, watched: bool = False) -> None:
        """`watched`: what others ask is shown; nothing of it can be asked again or changed here."""
        super().__init__(parent)
        self._theme = theme
        self._watched = watched
        self._mode: TintMode = "always"
        self._regenerable = True
        self._unended = ""  # the turn whose answer the model could write on
        self._entries: list[Entry] = []
        self._replies: dict[str, Reply] = {}
        self._unfinished: set[Reply] = set()
        self._pool = WidgetPool(self._make, self._stand_in, self._let_go, self._is_selected_in)
        self._items = self._pool.items

        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        # Its room is kept, so that texts do not move when there is something to scroll. One that lies over
        # the texts would have all of them painted again for each line that is scrolled.
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOn)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(strings.TRANSCRIPT_NAME)
        self._column = ReadingColumn(theme, self, self._entries, self._pool)
        self._supply = Prefetch(self._entries, self._unfinished, self._pool, self._column, self)
        self._newest = NewestButton(theme, self)
        self._newest.hide()
        self._newest.clicked.connect(self.scroll_to_end)
        self._tips = Tips(theme, self)
        self._column.placed.connect(self._tips.keep)
        self._selecting = Selecting(self, self._entries, self._pool, self._text_of)
        self.finder = Finder(theme, self, lambda: self._entries, self._first_seen)
        self.finder.marks_changed.connect(self._mark_found)
        self.finder.shown.connect(self._go_to_match)
        self.finder.opened.connect(self._make_room_to_find)
        bar = self.verticalScrollBar()
        bar.setSingleStep(_WHEEL_STEP_PX)
        bar.valueChanged.connect(self._scrolled)
        theme.changed.connect(self._recolour)
        theme.zoomed.connect(self._zoomed)
        self._recolour()

    # ---- the conversation

    def clear(self) -> None:
        """An empty conversation."""
        self._tips.drop()
        self._selecting.clear()
        self._pool.drop_all()
        self._entries.clear()
        self._replies.clear()
        self._unfinished.clear()
        self._unended = ""
        self._column.clear()
        self.finder.reset()

    def show_turns(self, turns: Sequence[Turn], drafter: str = "") -> None:
        """This conversation instead, at its end. `drafter` stands in where it is not known who drafted."""
        self.clear()
        for turn in turns:
            reply = _reply(turn, drafter)
            self._entries += [QuestionEntry(turn.id, turn.user), reply]
            self._replies[turn.id] = reply
            if not reply.over:
                self._unfinished.add(reply)
        self._newest.hide()
        self._column.place()
        self._supply.fill()
        self.finder.reset()

    def show_version(self, turn_id: str, turn: Turn, drafter: str = "") -> None:
        """`turn` in the place of `turn_id`, of which it is another version. The keyboard stays there."""
        old = self._replies[turn_id]
        place = self._entries.index(old)
        item = self._items.get(old)
        had_keyboard = isinstance(item, AnswerView) and item.footer.versions.hasFocus()
        self._tips.drop()
        self._selecting.clear()
        for entry in self._entries[place - 1 : place + 1]:
            if entry in self._items:
                self._pool.drop(entry)
        reply = _reply(turn, drafter)
        self._entries[place - 1 : place + 1] = [QuestionEntry(turn.id, turn.user), reply]
        self._replies = {each.turn_id: each for each in self._entries if isinstance(each, Reply)}
        if self._unended == turn_id:
            self._unended = ""
        self._column.place()
        self._supply.fill()
        self.finder.reset()
        if had_keyboard and isinstance(answer := self._pool.ready(reply), AnswerView):
            self._column.place()
            answer.footer.versions.setFocus(Qt.FocusReason.OtherFocusReason)

    def add_user(self, turn_id: str, message: Message) -> None:
        """A message of the person, at the end. The transcript follows again."""
        self._add(QuestionEntry(turn_id, message))
        self.scroll_to_end()

    def begin_answer(self, turn_id: str, drafter: str = "") -> None:
        """An answer starts. `drafter` is shown in tooltips until the answer says what really ran."""
        reply = Reply(turn_id, drafter)
        self._replies[turn_id] = reply
        self._unfinished.add(reply)
        self._add(reply)

    def show_progress(self, turn_id: str, progress: PrefillProgress) -> None:
        """How far the prompt has been read."""
        self._replies[turn_id].progress = progress
        if answer := self._writing(turn_id):
            answer.show_progress(progress)

    def show_map(self, turn_id: str, reading: ReadingMap, texts: Mapping[int, tuple[str, str]]) -> None:
        """What of the prompt is read. `texts` are name and text of each attachment by its number."""
        reply = self._replies[turn_id]
        reply.reading, reply.labels = reading, labels(reading, texts)
        if answer := self._writing(turn_id):
            answer.show_map()

    def _documents(self) -> dict[int, tuple[str, str]]:
        """Name and text of each attachment, numbered as the worker counts them: over all messages, from 0."""
        questions = (entry for entry in self._entries if isinstance(entry, QuestionEntry))
        attached = (each for question in questions for each in question.message.attachments)
        return {number: (each.name, each.text) for number, each in enumerate(attached)}

    def show_passages(self, turn_id: str, number: int, passages: tuple[Passage, ...]) -> None:
        """What was read of an attachment; empty if that was all of it."""
        for entry in self._entries:
            if isinstance(entry, QuestionEntry) and entry.turn_id == turn_id:
                entry.passages[number] = passages
                item = self._items.get(entry)
                if isinstance(item, UserMessage):
                    item.show_passages(number, passages)

    def append_tokens(self, turn_id: str, tokens: Sequence[Token]) -> None:
        """More of the answer; at most 30 times a second."""
        answer = self._writing(turn_id)
        self._replies[turn_id].tokens += tokens
        if answer:
            answer.append(tokens)
        self.finder.look_again(self._replies[turn_id])

    def finish_answer(self, turn_id: str, finished: Finished | None, note: str = "") -> None:
        """The answer's end; None says it was cut off."""
        answer, reply = self._writing(turn_id), self._replies[turn_id]
        reply.finished, reply.note, reply.over = finished, note, True
        reply.documents = self._documents()
        self._unfinished.discard(reply)
        if answer:
            answer.finish(finished, note)
        self.finder.look_again(reply)
        self._mark_newest()
        self._column.place()

    def set_regenerable(self, possible: bool) -> None:
        """Whether answers can be asked for again now; not while the worker is busy or gone."""
        self._regenerable = possible
        for item in self._pool.answers:
            item.footer.set_regenerable(possible)

    def offer_to_go_on(self, turn_id: str) -> None:
        """The answer that the model could write on; empty if there is none."""
        if turn_id == self._unended:
            return
        self._unended = turn_id
        for entry, item in self._items.items():
            if isinstance(item, AnswerView):
                item.footer.offer_more(entry.turn_id == turn_id)

    def answer_text(self, turn_id: str) -> str:
        """The answer as the model wrote it, Markdown and all."""
        return self._replies[turn_id].source

    def answer(self, turn_id: str) -> AnswerView | None:
        """The answer's widget while it is near the view."""
        item = self._items.get(self._replies[turn_id])
        return item if isinstance(item, AnswerView) else None

    def set_tint_mode(self, mode: TintMode) -> None:
        """When tokens are tinted. The tooltip works in all modes."""
        self._mode = mode
        for answer in self._pool.answers:
            answer.set_mode(mode)

    def selected_text(self) -> str:
        """What is selected anywhere in the conversation."""
        return self._selecting.text

    def _newest_over(self) -> Reply | None:
        return next((reply for reply in reversed(self._replies.values()) if reply.over), None)

    def _mark_newest(self) -> None:
        newest = self._newest_over()
        for entry, item in self._items.items():
            if isinstance(item, AnswerView):
                item.set_newest(entry is newest)

    def _text_of(self, entry: Entry) -> TextCanvas:
        """The text of `entry` on the screen, in its place."""
        if not self._pool.is_ready(entry):
            self._pool.ready(entry)
            self._column.place()
        return self._items[entry].body

    def _is_selected_in(self, entry: Entry) -> bool:
        """Whether dropping its widget would lose what is selected; of several messages nothing is lost."""
        return not self._selecting.is_wide and self._items[entry].body.selection is not None

    # ---- widgets for entries

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)
        self._pool.ready(entry)
        self.finder.look_again(entry)
        self._column.place()
        self._supply.fill()

    def _writing(self, turn_id: str) -> AnswerView | None:
        """The widget of an answer that is not over: it always has one. None if it cannot be shown."""
        item = self._pool.ready(self._replies[turn_id])
        return item if isinstance(item, AnswerView) else None

    def _make(self, entry: Entry) -> Item:
        # Half of a widget, left by an error, must neither be painted in the column nor live on.
        cradle = QWidget()
        try:
            item = self._made(entry, cradle)
            self._set_up(item)
        finally:
            delete(cradle)
        return item

    def _made(self, entry: Entry, parent: QWidget) -> Item:
        item: Item
        if isinstance(entry, QuestionEntry):
            item = UserMessage(self._theme, entry.message, parent)
            for number, passages in entry.passages.items():
                item.show_passages(number, passages)
            item.attachment_opened.connect(lambda number: self.attachment_opened.emit(entry.turn_id, number))
            if self._watched:
                item.keep_to_copying()
            item.edit_requested.connect(lambda: self.edit_requested.emit(entry.turn_id))
            item.height_changed.connect(lambda: self._column.height_changed(entry))
        else:
            if entry.over:
                entry.documents = self._documents()
            item = AnswerView(self._theme, entry, parent)
            if self._watched:
                item.footer.keep_to_copying()
            item.set_mode(self._mode)
            item.footer.set_regenerable(self._regenerable)
            item.set_newest(entry is self._newest_over())
            item.height_changed.connect(lambda: self._column.height_changed(entry))
            item.token_pointed.connect(self._tips.point)
            item.regenerate_requested.connect(lambda: self.regenerate_requested.emit(entry.turn_id))
            item.footer.offer_more(entry.turn_id == self._unended)
            item.more_requested.connect(lambda: self.more_requested.emit(entry.turn_id))
            item.everything_requested.connect(lambda: self.everything_requested.emit(entry.turn_id))
            item.stop_requested.connect(self.stop_requested)
            item.place_chosen.connect(self.place_chosen)
            item.source_chosen.connect(lambda source: self.source_chosen.emit(entry.turn_id, source))
            item.chosen.connect(lambda: self.answer_chosen.emit(entry.turn_id))
            item.branch_requested.connect(lambda: self.branch_requested.emit(entry.turn_id))
            item.version_requested.connect(lambda at: self.version_requested.emit(entry.turn_id, at))
            item.compare_requested.connect(lambda: self.compare_requested.emit(entry.turn_id))
        item.body.show_selection(self._selecting.part(entry))
        item.body.show_found(*self.finder.marks(entry))
        return item

    def _stand_in(self, entry: Entry, error: Exception) -> UnshownEntry:
        name = answer_strings.MESSAGE_NAME if isinstance(entry, QuestionEntry) else answer_strings.ANSWER_NAME
        item = UnshownEntry(self._theme, name, entry.source, error)
        self._set_up(item)
        return item

    def _set_up(self, item: Item) -> None:
        item.setParent(self._column)
        item.hide()  # until it is ready
        # As wide as it will be, or Qt shows it at a width of its own first and all is laid out twice more.
        item.resize(self._column.column_px + 2 * item.OUTDENT_PX, item.height())
        item.body.beyond = self._selecting
        item.body.quotable = not self._watched
        item.body.quote_requested.connect(lambda: self.quote_requested.emit(self.selected_text()))
        item.body.drag_moved.connect(self._selecting.drag)
        item.body.drag_ended.connect(self._selecting.release)

    def _let_go(self, item: Item) -> None:
        self._selecting.stop()
        if isinstance(item, AnswerView):
            self._tips.forget(item)

    # ---- place

    def _zoomed(self) -> None:
        """Texts have another size; what the reader looks at stays where it is."""
        self._tips.drop()
        self._column.place()
        self._place_newest()
        self.finder.place()
        self._supply.fill()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._column.place()
        self._place_newest()
        self.finder.place()
        self._supply.fill()

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self._supply.fill()

    def _place_newest(self) -> None:
        size = self._newest.sizeHint()
        area = self.viewport().geometry()
        x = area.left() + (area.width() - size.width()) // 2
        self._newest.setGeometry(
            x, area.bottom() + 1 - size.height() - px(_NEWEST_BOTTOM_PX), size.width(), size.height()
        )

    # ---- scrolling

    @property
    def is_following(self) -> bool:
        """Whether the transcript keeps to its end."""
        return self._column.follow.following

    def scroll_to_end(self) -> None:
        """Go to the end and stay there."""
        # First of all: a hidden button passes the focus on, and that scrolls to who gets it.
        self._newest.hide()
        self._column.follow.follow()
        self._column.go_to_end()
        self._supply.fill()

    def show_turn(self, turn_id: str) -> None:
        """Go to the question of that turn. Nothing happens if there is none."""
        for place, entry in enumerate(self._entries):
            if entry.turn_id == turn_id:
                self._column.go_to(place)
                return

    def _scrolled(self, value: int) -> None:
        if not self._column.is_placing:
            if self._column.follow.scrolled(value, self.verticalScrollBar().maximum()):
                self._place_newest()
                self._newest.setVisible(not self._column.follow.following)
                self._newest.raise_()
            self._supply.fill()
        self._tips.keep()

    # ---- finding

    def _first_seen(self) -> int:
        return self._column.near().start

    def _make_room_to_find(self, is_open: bool) -> None:
        """The bar lies above the text, not over its first lines."""
        self.setViewportMargins(0, self.finder.room_px if is_open else 0, 0, 0)

    def _mark_found(self) -> None:
        for entry, item in self._items.items():
            item.body.show_found(*self.finder.marks(entry))

    def _go_to_match(self, entry: Entry, match: Match) -> None:
        """Scroll so that the match is seen, a third from the top if it was not."""
        item = self._pool.ready(entry)
        if item.body.is_given_up:  # its text is not there to be marked
            self._column.go_to(self._entries.index(entry))
            return
        item.body.reveal(match.piece)
        bar = self.verticalScrollBar()
        for _ in range(3):  # what comes into view may turn out higher than was thought
            self._column.place()
            place = item.body.rects_of(match.piece, match.start, match.end)[0].toAlignedRect()
            top = item.body.mapTo(self._column, place.topLeft()).y()
            low, high = self._column.view()
            if low + self.finder.bar.height() < top < high - 2 * place.height():
                break
            bar.setValue(top - self.viewport().height() // 3)

    # ---- keyboard

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Tab goes through the conversation as it is read, and on into what is not made yet."""
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
        """Where Tab stops in the conversation, as it is read."""
        return stops_in([self._items[e] for e in self._entries if self._pool.is_ready(e)])

    # ---- tooltip

    @property
    def tip(self) -> TokenTip:
        """The tooltip of tokens."""
        return self._tips.tip

    def hideEvent(self, event: QEvent) -> None:
        self._tips.drop()
        super().hideEvent(event)  # type: ignore[arg-type]

    def _recolour(self) -> None:
        palette = self._column.palette()
        palette.setColor(QPalette.ColorRole.Window, self._theme.color("window"))
        self._column.setPalette(palette)
        self.viewport().setPalette(palette)


def _reply(turn: Turn, drafter: str) -> Reply:
    """The answer of `turn` as it is on record."""
    answer = turn.answer
    reply = Reply(turn.id, drafter, list(answer.tokens), None, answer.finished, answer.note)
    reply.over, reply.imported = answer.over, answer.status == "imported"
    reply.reading = answer.reading
    reply.place, reply.versions = turn.place, len(turn.versions)
    return reply
