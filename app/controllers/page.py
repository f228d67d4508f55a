"""The page of the open chat, with the running answer if that belongs to it. Built from the stored chat."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from PySide6.QtCore import QObject, QTimer, Signal

from app.chat import strings as chat_strings
from app.chat.file_reader import PastedImage, Source
from app.chat.reading_map import passages_of
from app.controllers import strings
from app.controllers.app import App
from app.controllers.live import LiveAnswer
from app.controllers.transfer import on_thread
from app.panels import strings as panels_strings
from app.session.chats.conversation import (
    NOTHING_WRITTEN,
    Turn,
    documents,
    merged,
    uncounted,
)
from app.session.context import held
from app.session.images import ImageArchive, Stoppable
from core.errors import RequestError, reason_of
from core.events import Image
from core.system.reader_process import StoppedError

_LOG = logging.getLogger("draftlight.window")
_DRAFT_AFTER_MS = 500
_KEPT_WITHIN_S = 10.0


class ChatPage(QObject):
    """Shows the chat that is open in `chats`: transcript, draft, figures and title.

    The draft is stored within 0.5 s of a change, so that a crash loses no more, and when its chat is left.
    """

    chat_shown = Signal()  # another chat, or the same one rebuilt
    turn_added = Signal()  # or replaced by another version
    names_changed = Signal()  # titles, or the list of chats

    def __init__(self, app: App, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._views = app.views
        self._composer = app.views.composer
        self._chats = app.chats
        self._meter = app.meter
        self._images: ImageArchive = app.home.library.images
        self.edited = ""  # id of the turn whose message is edited in the composer; empty if none is
        self._unedited = NOTHING_WRITTEN  # that message, uncounted
        self._shown = ""  # id of the chat whose draft is in the composer
        self.live: LiveAnswer | None = None  # the running answer, of whatever chat
        self._ended: LiveAnswer | None = None  # the one before
        # By chat, the files that were being read for its draft when that left the composer.
        self._files: dict[str, tuple[Source, ...]] = {}
        self._draft_timer = QTimer(self, interval=_DRAFT_AFTER_MS, singleShot=True)
        self._draft_timer.timeout.connect(self._store_draft)
        self._composer.draft_changed.connect(self._store_draft_soon)

    def keep_draft(self, turn_id: str = "") -> str:
        """Store an answer that is being edited as a version, and the composer's content as the draft, which
        are about to be replaced by others.

        A sent message that is edited is added to the draft if it was changed. Returns the new id of the turn
        `turn_id`, by default the last one: an edited answer gets another. Raises `KeyError`.
        """
        turns = self._chats.open.turns
        place = len(self._chats.open.upto(turn_id) if turn_id else turns) - 1
        self._views.transcript.save_edit()
        self._store_draft()
        written, chat = uncounted(self._composer.draft), self._chats.open
        if self.edited and written != self._unedited:
            self._chats.keep(chat.with_draft(merged((chat.draft, written)), chat.files))
            self._unedited = written
        if self.edited:
            self._put_files_aside()
        return chat.turns[place].id if turns else ""

    def _store_draft_soon(self) -> None:
        if not self._draft_timer.isActive():
            self._draft_timer.start()

    def _store_draft(self) -> None:
        """Store the composer's content as the chat's draft, unless a sent message is edited."""
        self._draft_timer.stop()
        draft, chat = self._composer.draft, self._chats.open
        read = self._composer.chips.sources
        files = tuple(str(source.absolute()) for source in read if isinstance(source, Path))
        if not self.edited and (draft, files) != (chat.draft, chat.files):
            self._chats.keep(chat.with_draft(draft, files))

    def begin_edit(self, turn_id: str) -> None:
        """Put a sent message into the composer, whose draft is kept in the stored chat until `show_draft`."""
        turn = self._chats.open.turn(turn_id)
        if not self.edited:
            self._put_files_aside()
        self._composer.set_message(turn.user)
        self._composer.edit.document().clearUndoRedoStacks()
        self.edited, self._unedited = turn_id, uncounted(self._composer.draft)
        self.show_context(turn_id)
        is_last = turn == self._chats.open.turns[-1]
        self._views.editing_bar.show_text(strings.EDITING if is_last else strings.EDITING_EARLIER)

    def show_draft(self) -> None:
        """Put the draft of the open chat into the composer; the editing of a sent message ends."""
        if not self.edited:
            self._put_files_aside()
        chat = self._chats.open
        self.edited, self._shown = "", chat.id
        self._views.editing_bar.show_text("")
        files = self._files.pop(chat.id, None)
        self._composer.set_message(chat.draft, tuple(map(Path, chat.files)) if files is None else files)

    def _put_files_aside(self) -> None:
        """Files that are being read are read again when the draft is back."""
        if sources := self._composer.chips.sources:
            self._files[self._shown] = (*self._files.get(self._shown, ()), *sources)

    async def keep_pasted(self) -> None:
        """Keep the pasted images that are being read in the drafts of their chats, before the window closes:
        no file has them. Those that are not read within 10 s are lost.
        """
        ends_s, chips = time.monotonic() + _KEPT_WITHIN_S, self._composer.chips
        for reading in chips.pasted:
            assert isinstance(reading.source, PastedImage)
            image = await self._kept(reading.source, ends_s)
            if image is not None and reading in chips.pasted:
                chips.cancel(reading)
                chips.add_image(image, instead_of=reading)
        for chat_id, sources in list(self._files.items()):
            found = [await self._kept(each, ends_s) for each in sources if isinstance(each, PastedImage)]
            if images := tuple(image for image in found if image):
                with suppress(KeyError, RequestError):  # erased, or unreadable
                    chat = self._chats.get(chat_id)
                    draft = replace(chat.draft, images=(*chat.draft.images, *images))
                    self._chats.keep(chat.with_draft(draft, chat.files))
            self._files.pop(chat_id, None)  # files on the disk are named in the stored chat

    async def _kept(self, pasted: PastedImage, ends_s: float) -> Image | None:
        """A pasted image in the images' folder; None, and a line in the log, if it cannot be kept in time."""
        begun: list[Stoppable] = []
        keep = partial(self._images.keep, pasted.data, pasted.name, begun.append)
        try:
            return await asyncio.wait_for(on_thread(keep), max(0.0, ends_s - time.monotonic()))
        except (RequestError, StoppedError, TimeoutError) as error:
            _LOG.warning("%s was not kept when the window closed: %s", pasted.name, reason_of(error))
            for reading in begun:
                reading.stop()
            return None

    def show(self) -> None:
        chat = self._chats.open
        self._views.transcript.show_turns(chat.turns, running=self.live.entry if self.live else None)
        self.show_readings()
        self.show_draft()
        self._composer.edit.document().clearUndoRedoStacks()
        self._show_figures()
        self._views.first_page.scroll_to_top()
        self._views.transcript.finder.forget()
        self._views.document.finder.forget()
        self.show_kind()
        self.show_names()
        self.chat_shown.emit()

    def show_version(self, shown_before: str, turn: Turn) -> None:
        """Show the stored `turn` in place of its version `shown_before`."""
        self._views.transcript.replace_turn(shown_before, turn)
        self.show_readings()
        self._show_figures()
        self.show_names()
        self.turn_added.emit()

    @property
    def live_here(self) -> LiveAnswer | None:
        """The running answer, if it belongs to the open chat."""
        return self.live if self.live and self.live.chat_id == self._chats.open.id else None

    def end_live(self) -> None:
        """The running answer ended."""
        self.live, self._ended = None, self.live

    def remove_turn(self, turn: Turn) -> None:
        """Show the open chat without `turn`, which was deleted from it."""
        if turn.documents or not self._chats.open.turns:
            self.show()  # later sources have other numbers
            return
        self._views.transcript.remove_turn(turn.id)
        self._show_figures()
        self.show_names()
        self.turn_added.emit()

    def _show_figures(self) -> None:
        chat, live = self._chats.open, self.live_here
        self._views.strip.reset()
        last = chat.turns[-1].answer if chat.turns else None
        ended = self._ended if chat.turns and self._ended and self._ended.is_of(chat.turns[-1].id) else None
        if shown := live or ended:
            shown.restore(self._views.strip)
        if live is None and last and last.finished:
            self._views.strip.show_stats(last.finished.stats)
        self.show_sources()
        self.show_context()

    def show_sources(self) -> None:
        """Show in the legend what the drafts of the newest complete answer came from."""
        over = [turn.answer for turn in self._chats.open.turns if turn.answer.over]
        self._views.legend.show_sources(over[-1].tokens if over else ())

    def show_context(self, without: str = "") -> None:
        """Show the used context, without `without` and later turns, which an edited message replaces."""
        chat, live = self._chats.open, self.live_here
        without = without or self.edited
        if without and chat.has(without):
            chat = chat.with_turns(chat.upto(without)[:-1]).with_context(0)
            live = None
        last_tokens = live.held_tokens if live else chat.context_used_tokens
        self._meter.show_held(held(chat, last_tokens))

    def show_readings(self) -> None:
        """Show on each attachment which passages were read for the newest finished answer."""
        chat = self._chats.open
        for turn in chat.turns[-1:]:
            if not turn.answer.over and turn.answer.finished is None:  # its map is not read yet
                chat = chat.with_answer(turn.id, replace(turn.answer, reading=None))
        for document in documents(chat):
            reading = document.reading
            passages = () if reading is None else passages_of(reading, document.source)
            self._views.transcript.show_passages(document.turn_id, document.index, passages)

    def show_kind(self) -> None:
        """Show the first page for an empty chat, otherwise the transcript."""
        empty = not self._chats.open.turns
        self._views.show_first_page(empty)
        self._composer.set_placeholder(chat_strings.ASK_FIRST if empty else strings.ASK_NEXT)

    def show_names(self) -> None:
        """Show the title in the header, and emit `names_changed`."""
        chat = self._chats.open
        project = self._chats.projects.find(chat.project)
        new = panels_strings.new_chat_in(project.name) if project else panels_strings.NEW_CHAT
        self._views.header.set_title(chat.title or new)
        self.names_changed.emit()
