"""Transcript: the scrolling conversation: messages, answers, tooltip, and the way to its end.

Widgets of messages and answers are placed by hand in a reading column, because only the last
one grows and nothing else has to be asked then. Turns are named by ids of the caller's choosing.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt, QTimer, Signal
from PySide6.QtGui import QPalette, QResizeEvent
from PySide6.QtWidgets import QFrame, QScrollArea, QWidget

from app.chat import strings
from app.chat.answer import Answer
from app.chat.follow import Follow
from app.chat.newest_button import NewestButton
from app.chat.tint_paint import TintMode
from app.chat.token_tip import TokenTip
from app.chat.user_message import UserMessage
from app.controls.scroll_bar import ScrollBar
from app.theme.theme import Theme
from core.events import Finished, Message, PrefillProgress, Token

COLUMN_PX = 720
_MIN_MARGIN_PX = 40
_TOP_PX = 20
_BOTTOM_PX = 20
_AFTER_MESSAGE_PX = 16
_AFTER_ANSWER_PX = 8
_TIP_DELAY_MS = 150
_TIP_MARGIN_PX = 8
_NEWEST_BOTTOM_PX = 12
_WHEEL_STEP_PX = 25


class Transcript(QScrollArea):
    """All methods take the turn's id; an unknown one raises `KeyError`: that is our own mistake."""

    regenerate_requested = Signal(str)  # turn id

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._mode: TintMode = "always"
        self._regenerable = True
        self._items: list[UserMessage | Answer] = []
        self._messages: dict[str, UserMessage] = {}
        self._answers: dict[str, Answer] = {}
        self._follow = Follow()
        self._placing = False
        self._pointed: tuple[Answer, int, QRect] | None = None

        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBar(ScrollBar(theme, Qt.Orientation.Vertical))
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAccessibleName(strings.TRANSCRIPT_NAME)
        self._column = QWidget()
        self._column.setAutoFillBackground(True)
        self._column.setAttribute(Qt.WidgetAttribute.WA_StaticContents)
        self.setWidget(self._column)
        self._newest = NewestButton(theme, self)
        self._newest.hide()
        self._newest.clicked.connect(self.scroll_to_end)
        self._tip = TokenTip(theme, self)
        self._tip_timer = QTimer(self, interval=_TIP_DELAY_MS, singleShot=True)
        self._tip_timer.timeout.connect(self._show_tip)
        bar = self.verticalScrollBar()
        bar.setSingleStep(_WHEEL_STEP_PX)
        bar.valueChanged.connect(self._scrolled)
        theme.changed.connect(self._recolour)
        self._recolour()

    # ---- the conversation

    def clear(self) -> None:
        """An empty conversation."""
        self._drop_tip()
        for item in self._items:
            item.hide()
            item.deleteLater()
        self._items.clear()
        self._messages.clear()
        self._answers.clear()
        self._follow.follow()
        self._place()

    def add_user(self, turn_id: str, message: Message) -> None:
        """A message of the person, at the end. The transcript follows again."""
        item = UserMessage(self._theme, message, self._column)
        item.selection_started.connect(self._clear_other_selections)
        self._messages[turn_id] = item
        self._add(item)
        self.scroll_to_end()

    def begin_answer(self, turn_id: str, drafter: str = "") -> None:
        """An answer starts. `drafter` is shown in tooltips until the answer says what really ran."""
        item = Answer(self._theme, drafter, self._column)
        item.set_mode(self._mode)
        item.footer.set_regenerable(self._regenerable)
        item.height_changed.connect(self._place)
        item.token_pointed.connect(self._token_pointed)
        item.selection_started.connect(self._clear_other_selections)
        item.regenerate_requested.connect(lambda: self.regenerate_requested.emit(turn_id))
        self._answers[turn_id] = item
        self._add(item)

    def show_progress(self, turn_id: str, progress: PrefillProgress) -> None:
        """How far the prompt has been read."""
        self._answers[turn_id].show_progress(progress)

    def append_tokens(self, turn_id: str, tokens: Sequence[Token]) -> None:
        """More of the answer; at most 30 times a second."""
        self._answers[turn_id].append(tokens)

    def finish_answer(self, turn_id: str, finished: Finished | None, note: str = "") -> None:
        """The answer's end; None says it was cut off."""
        self._answers[turn_id].finish(finished, note)
        self._mark_newest()
        self._place()

    def set_regenerable(self, possible: bool) -> None:
        """Whether answers can be asked for again now; not while the worker is busy or gone."""
        self._regenerable = possible
        for item in self._answers.values():
            item.footer.set_regenerable(possible)

    def answer_text(self, turn_id: str) -> str:
        """The answer as the model wrote it, Markdown and all."""
        return self._answers[turn_id].text

    def set_tint_mode(self, mode: TintMode) -> None:
        """When tokens are tinted. The tooltip works in all modes."""
        self._mode = mode
        for answer in self._answers.values():
            answer.set_mode(mode)

    def selected_text(self) -> str:
        """What is selected anywhere in the conversation."""
        return next((item.body.selected_text for item in self._items if item.body.selected_text), "")

    def _mark_newest(self) -> None:
        finished = [answer for answer in self._answers.values() if answer.is_finished]
        for answer in finished:
            answer.set_newest(answer is finished[-1])

    def _clear_other_selections(self, chosen: QObject) -> None:
        for item in self._items:
            if item is not chosen:
                item.body.clear_selection()

    # ---- place

    def _add(self, item: UserMessage | Answer) -> None:
        self._items.append(item)
        item.show()
        self._place()

    def _place(self) -> None:
        """Give every item its place; only those whose place or height changed are moved."""
        width = max(1, self.viewport().width())
        column = max(120, min(COLUMN_PX, width - 2 * _MIN_MARGIN_PX))
        left = (width - column) // 2
        top = _TOP_PX
        places: list[QRect] = []
        for item in self._items:
            height = item.height_for(column)
            places.append(QRect(left - item.OUTDENT_PX, top, column + 2 * item.OUTDENT_PX, height))
            top += height + (_AFTER_ANSWER_PX if isinstance(item, Answer) else _AFTER_MESSAGE_PX)
        # The column grows while the scroll bar stands still: that is not the reader scrolling.
        # It is scrolled before anything in it moves, so that the screen can be shifted as it is.
        self._placing = True
        self._column.resize(width, max(top + _BOTTOM_PX, self.viewport().height()))
        self._placing = False
        if self._follow.following:
            self._go_to_end()
        for item, place in zip(self._items, places):
            if item.geometry() != place:
                item.setGeometry(place)
            elif isinstance(item, Answer):
                item.arrange()
        self._keep_tip()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place()
        self._place_newest()

    def _place_newest(self) -> None:
        size = self._newest.sizeHint()
        area = self.viewport().geometry()
        x = area.left() + (area.width() - size.width()) // 2
        self._newest.setGeometry(
            x, area.bottom() + 1 - size.height() - _NEWEST_BOTTOM_PX, size.width(), size.height()
        )

    # ---- scrolling

    @property
    def is_following(self) -> bool:
        """Whether the transcript keeps to its end."""
        return self._follow.following

    def scroll_to_end(self) -> None:
        """Go to the end and stay there."""
        # First of all: a hidden button passes the focus on, and that scrolls to who gets it.
        self._newest.hide()
        self._follow.follow()
        self._go_to_end()

    def _go_to_end(self) -> None:
        self._placing = True
        bar = self.verticalScrollBar()
        bar.setValue(bar.maximum())
        self._placing = False

    def _scrolled(self, value: int) -> None:
        if not self._placing and self._follow.scrolled(value, self.verticalScrollBar().maximum()):
            self._place_newest()
            self._newest.setVisible(not self._follow.following)
            self._newest.raise_()
        self._keep_tip()

    # ---- tooltip

    @property
    def tip(self) -> TokenTip:
        """The tooltip of tokens."""
        return self._tip

    def _token_pointed(self, answer: Answer, token: int, target: QRect) -> None:
        if token < 0:
            self._drop_tip()
            return
        self._pointed = (answer, token, target)
        # Once it is open it follows the pointer at once; opening takes a moment's rest.
        if self._tip.isVisible():
            self._show_tip()
        else:
            self._tip_timer.start()

    def _show_tip(self) -> None:
        if self._pointed is None:
            return
        answer, token, target = self._pointed
        corner = answer.mapTo(self, QPoint(0, 0))
        inside = (
            self.viewport()
            .geometry()
            .adjusted(_TIP_MARGIN_PX, _TIP_MARGIN_PX, -_TIP_MARGIN_PX, -_TIP_MARGIN_PX)
        )
        target = target.translated(corner)
        if not self.viewport().geometry().intersects(target):
            self._drop_tip()
            return
        self._tip.show_facts(answer.facts(token), target, inside)

    def _keep_tip(self) -> None:
        """The text moved under the open tooltip: it moves along."""
        if self._tip.isVisible():
            self._show_tip()

    def _drop_tip(self) -> None:
        self._pointed = None
        self._tip_timer.stop()
        self._tip.hide()

    def hideEvent(self, event: QEvent) -> None:
        self._drop_tip()
        super().hideEvent(event)  # type: ignore[arg-type]

    def _recolour(self) -> None:
        palette = self._column.palette()
        palette.setColor(QPalette.ColorRole.Window, self._theme.color("window"))
        self._column.setPalette(palette)
        self.viewport().setPalette(palette)
