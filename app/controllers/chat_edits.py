"""ChatEdits: edits answers, deletes messages, undoes both, and shows other versions of answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from PySide6.QtWidgets import QApplication

from app.controllers import strings
from app.controllers.app import App
from app.controllers.page import ChatPage
from app.controllers.readiness import Readiness
from app.session.chats.answers import Edit
from app.session.chats.conversation import Conversation, Turn
from core.errors import RequestError


class ChatEdits:
    """`end_edits` ends other edits in the open chat; it returns as `ChatPage.keep_draft` does."""

    def __init__(
        self, app: App, page: ChatPage, readiness: Readiness, end_edits: Callable[[str], str]
    ) -> None:
        self._views = app.views
        self._chats = app.chats
        self._page = page
        self._readiness = readiness
        self._end_edits = end_edits
        self._last_change: _AnswerEdit | _Deletion | None = None

    def edit_answer(self, turn_id: str = "") -> None:
        """Edit an answer of the open chat, the last one if `turn_id` is empty, in its place."""
        turns = self._chats.open.turns
        if self._readiness.answers_here:
            self._readiness.refuse(strings.EDIT_LATER)
        elif turns:
            self._views.transcript.edit_answer(turn_id or turns[-1].id)

    def save_answer(self, turn_id: str, edits: Sequence[Edit]) -> None:
        """Make a version of an answer of the open chat with `edits`, and offer Undo."""
        before, new_id = self._chats.open, self._chats.new_turn_id()
        chat = before.edit_answer(turn_id, new_id, edits, self._chats.now())
        self._last_change = _AnswerEdit(chat.id, before.turn(turn_id), chat.turn(new_id), self._typed)
        self._show_answer(chat, turn_id, new_id)
        self._views.notice_bar.show_notice(
            strings.ANSWER_EDITED, strings.UNDO, self._undo_change, kind="done"
        )

    def delete_message(self, turn_id: str) -> None:
        """Delete a question of the open chat with its answer in all versions, and offer Undo."""
        if self._readiness.answers_here:
            self._views.notice_bar.show_notice(strings.DELETE_LATER)
            return
        turn_id = self._end_edits(turn_id)
        before = self._chats.open
        self._chats.delete_turn(turn_id)
        self._page.remove_turn(before.turn(turn_id))
        self._last_change = _Deletion(before.id, before, turn_id, self._typed)
        self._views.transcript.offer_continue(self._readiness.continuable)
        self._views.notice_bar.show_notice(
            strings.MESSAGE_DELETED, strings.UNDO, self._undo_change, kind="done"
        )

    @property
    def changed_last(self) -> bool:
        """Whether nothing was typed since an edit or a deletion in the open chat, which can be undone."""
        change = self._last_change
        return change is not None and change.chat_id == self._chats.open.id and self._typed == change.typed

    @property
    def _typed(self) -> int:
        """The state of the message field."""
        return self._views.composer.edit.document().revision()

    def undo(self) -> None:
        """Undo the last edit of an answer or deletion of a question if that was in the open chat."""
        if self._last_change and self._last_change.chat_id == self._chats.open.id:
            self._undo_change()

    def _undo_change(self) -> None:
        change, self._last_change = self._last_change, None
        if isinstance(change, _AnswerEdit):
            self._undo_answer_edit(change)
        elif change is not None:
            self._undo_deletion(change)

    def _undo_deletion(self, deletion: _Deletion) -> None:
        """Put a deleted question back into its chat, which may have changed since."""
        try:
            chat = self._chats.get(deletion.chat_id)
        except (KeyError, RequestError):  # it had no other question, and was left
            chat = deletion.before.without_turn(deletion.turn_id)
        if self._readiness.answers_here and chat.id == self._chats.open.id:
            self._last_change = deletion
            self._views.notice_bar.show_notice(strings.DELETE_LATER)
            return
        self._views.transcript.save_edit()
        self._chats.keep(chat.with_turn_of(deletion.before, deletion.turn_id))
        self._views.notice_bar.clear()
        if chat.id == self._chats.open.id:
            self._page.show()
            self._views.transcript.show_turn(deletion.turn_id)
        else:
            self._page.show_names()

    def _undo_answer_edit(self, edit: _AnswerEdit) -> None:
        """Undo the edit of an answer, in any chat, unless the answer has changed since."""
        try:
            chat = self._chats.get(edit.chat_id)
        except (KeyError, RequestError):  # erased, or unreadable
            chat = self._chats.open
        if edit.after not in chat.turns:
            self._views.notice_bar.show_notice(strings.EDIT_NOT_UNDONE)
            return
        turns = tuple(edit.before if turn == edit.after else turn for turn in chat.turns)
        self._show_answer(chat.with_turns(turns), edit.after.id, edit.before.id)
        self._views.notice_bar.show_notice(strings.EDIT_UNDONE, kind="done")

    def _show_answer(self, chat: Conversation, shown_before: str, turn_id: str) -> None:
        """Store `chat`, in which another version of a turn is displayed, and show it if it is open."""
        self._chats.keep(chat)
        if chat.id != self._chats.open.id:
            return
        if self._readiness.edited == shown_before:
            self._page.edited = turn_id
        transcript, focus = self._views.transcript, QApplication.focusWidget()
        has_focus = focus is None or transcript.isAncestorOf(focus)
        self._page.show_version(shown_before, chat.turn(turn_id))
        transcript.offer_continue(self._readiness.continuable)
        answer = transcript.answer(turn_id)
        if has_focus and answer is not None:
            answer.body.setFocus()

    def show_version(self, turn_id: str, index: int) -> None:
        """Show another version of a turn. Later requests contain the shown version."""
        if self._readiness.answers_here:
            self._readiness.refuse(strings.VERSIONS_LATER)
            return
        turn_id = self._end_edits(turn_id)
        chat = self._chats.open.show_version(turn_id, index)
        self._chats.keep(chat)
        self._page.show_version(turn_id, next(turn for turn in chat.turns if turn_id in _ids(turn)))
        self._views.transcript.offer_continue(self._readiness.continuable)


class _AnswerEdit(Struct, frozen=True):
    """An edited answer: the turn before the edit and after it. `typed` is the message field's state then."""

    chat_id: str
    before: Turn
    after: Turn
    typed: int


class _Deletion(Struct, frozen=True):
    """A deleted question: its chat before, and the turn. `typed` is the message field's state then."""

    chat_id: str
    before: Conversation
    turn_id: str
    typed: int


def _ids(turn: Turn) -> set[str]:
    return {version.id for version in turn.versions}
