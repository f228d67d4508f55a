"""Chats: which chat is open, what is listed, and the conversations that are in use.

All chats are known by their summaries; conversations come from an archive when they are opened and
go back to it with every change. Only the latest few are held. Ids of chats and turns are made
here and are unique for ever. A chat without a question is not listed: the window always has one
such chat to start from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from uuid import uuid4

from msgspec.structs import replace

from app.session.chats.archive import ChatArchive, Hit, Summary, summary_of
from app.session.chats.conversation import NOTHING_WRITTEN, Conversation, merged
from app.session.chats.presets import Preset
from app.session.chats.strings import UNFINISHED_NOTE
from core.errors import RequestError

# A chat of 60,000 tokens takes about 15 MB: the open one, the running one, and a few to go back to.
_HELD = 4
KEPT_DELETED = timedelta(days=30)


def utc_now() -> datetime:
    """With its timezone, so that a stored time stays true elsewhere."""
    return datetime.now(UTC)


class Chats:
    """`now` gives the time a chat is created at; `open_id` is the chat to begin with, if it is there.

    `first_preset` gives the preset that new chats start with, None for the defaults. `erased` gets the text
    of each document of a chat that is deleted for good, `purged` the chat's id.
    """

    def __init__(
        self,
        archive: ChatArchive,
        now: Callable[[], datetime] = utc_now,
        open_id: str = "",
        first_preset: Callable[[], Preset | None] = lambda: None,
        erased: Callable[[str], None] = lambda text: None,
        purged: Callable[[str], None] = lambda chat_id: None,
    ) -> None:
        self.now = now
        self._first_preset = first_preset
        self._erased = erased
        self._purged = purged
        self._archive = archive
        self._summaries = {summary.id: summary for summary in self._archive.summaries()}
        self._held: dict[str, Conversation] = {}
        self._open_id = ""
        known = self._summaries.get(open_id)
        if known and not known.deleted:
            self.select(open_id)
        else:
            self.start()

    @property
    def open(self) -> Conversation:
        """The chat that is shown."""
        return self.get(self._open_id)

    def listed(self) -> tuple[Summary, ...]:
        """The chats that have a question and are not archived, newest first."""
        return tuple(each for each in self._living() if not each.archived)

    def archived(self) -> tuple[Summary, ...]:
        """The archived chats, newest first."""
        return tuple(each for each in self._living() if each.archived)

    def deleted(self) -> tuple[Summary, ...]:
        """The chats that can still be brought back, the one deleted last first."""
        found = [each for each in self._summaries.values() if each.deleted and each.turns]
        return tuple(
            sorted(found, key=lambda each: each.deleted.timestamp() if each.deleted else 0, reverse=True)
        )

    def queued(self) -> tuple[str, ...]:
        """The ids of the chats in which messages wait to be sent, the open one first."""
        found = [each.id for each in self._summaries.values() if each.queued and not each.deleted]
        return tuple(sorted(found, key=lambda chat_id: chat_id != self._open_id))

    def summary(self, chat_id: str) -> Summary:
        """What is known of a chat without opening it. Raises `KeyError`."""
        return self._summaries[chat_id]

    def get(self, chat_id: str) -> Conversation:
        """The chat called `chat_id`. Raises `KeyError`."""
        chat = self._held.pop(chat_id, None) or self._fetch(chat_id)
        self._held[chat_id] = chat  # the latest used is the last
        self._let_go()
        return chat

    def keep(self, chat: Conversation) -> None:
        """Replace the chat of the same id, here and on the archive."""
        self._held.pop(chat.id, None)
        self._held[chat.id] = chat
        if not chat.is_blank or chat.id in self._summaries:
            self._summaries[chat.id] = summary_of(chat)
            self._archive.save(chat)
        self._let_go()

    def select(self, chat_id: str) -> Conversation:
        """Open the chat called `chat_id`. Raises `KeyError`."""
        chat = self.get(chat_id)
        self._open_id = chat_id
        return chat

    def start(self) -> Conversation:
        """Open a new chat. An unused one, with what is written in it, is used again.

        It has the preset for new chats; where there is none, or it has that one, its settings stay.
        """
        unused = [each.id for each in self._summaries.values() if not each.turns and not each.deleted]
        unused += [chat.id for chat in self._held.values() if not chat.turns and not chat.deleted]
        chat = self.get(unused[0]) if unused else Conversation(uuid4().hex, self.now())
        preset = self._first_preset()
        name, overrides = (preset.name, preset.overrides) if preset else ("", ())
        if chat.preset != name:
            chat = replace(chat, preset=name, overrides=overrides)
        self._open_id = chat.id
        self.keep(replace(chat, created=self.now(), turns=(), context_used_tokens=0))
        return self.open

    def branch(self, turn_id: str, name: str = "") -> Conversation:
        """Open a new chat that begins as the open one did, up to and including `turn_id`.

        It has the same preset and settings of its own. Raises `KeyError` if there is no such turn.
        """
        chat = self.open
        turns = chat.upto(turn_id)
        finished = turns[-1].answer.finished
        used_tokens = finished.stats.context_used_tokens if finished else 0
        branch = Conversation(
            uuid4().hex,
            self.now(),
            turns,
            used_tokens,
            name=name,
            overrides=chat.overrides,
            preset=chat.preset,
        )
        self._open_id = branch.id
        self.keep(branch)
        return branch

    def refresh(self) -> None:
        """Ask the archive anew which chats there are: it found damage, or was repaired."""
        held = {chat_id: summary_of(chat) for chat_id, chat in self._held.items() if not chat.is_blank}
        self._summaries = {each.id: each for each in self._archive.summaries()} | held

    def add(self, chat: Conversation) -> Conversation:
        """Take in a chat from elsewhere. If its id is taken by another chat it gets a new one.

        Messages that waited to be sent there become its draft: nothing is sent without its author.
        """
        if chat.queued:
            drafts = [*chat.queued, chat.draft] if chat.draft != NOTHING_WRITTEN else chat.queued
            chat = chat.with_draft(merged(drafts)).with_queued(())
        if chat.id in self._summaries or chat.id in self._held:
            chat = replace(chat, id=uuid4().hex)
        self.keep(chat)
        return chat

    def purge(self, chat_id: str) -> None:
        """The chat goes for good. The open one is not purged: select another first."""
        with suppress(KeyError, RequestError):  # what cannot be read any more goes all the same
            for attachment in (self._held.get(chat_id) or self._archive.load(chat_id)).attachments:
                self._erased(attachment.text)
        self._summaries.pop(chat_id, None)
        self._held.pop(chat_id, None)
        self._archive.purge(chat_id)
        self._purged(chat_id)

    def purge_old(self) -> None:
        """Those go for good that were deleted `KEPT_DELETED` ago or earlier."""
        last = (self.now() - KEPT_DELETED).timestamp()
        for each in list(self._summaries.values()):
            if each.deleted and each.deleted.timestamp() <= last:
                self.purge(each.id)

    def search(self, query: str) -> Sequence[Hit]:
        """The chats that match, archived ones too, best first; those with a question only."""
        return [hit for hit in self._archive.search(query) if self._can_be_found(hit.chat_id)]

    def new_turn_id(self) -> str:
        """An id that no turn and no request had before."""
        return uuid4().hex

    def _living(self) -> list[Summary]:
        """The chats that have a question, newest first."""
        living = [each for each in reversed(self._summaries.values()) if each.turns and not each.deleted]
        return sorted(living, key=lambda each: each.when.timestamp(), reverse=True)

    def _can_be_found(self, chat_id: str) -> bool:
        summary = self._summaries.get(chat_id)
        return summary is not None and summary.turns > 0 and not summary.deleted

    def _fetch(self, chat_id: str) -> Conversation:
        # An answer that is being written is held; one from the archive was cut off by an end.
        return self._archive.load(chat_id).settled(UNFINISHED_NOTE)

    def _let_go(self) -> None:
        """Forget conversations that the archive can give again."""
        for chat_id in list(self._held)[:-_HELD]:
            turns = self._held[chat_id].turns
            if (
                chat_id != self._open_id
                and chat_id in self._summaries
                and (not turns or turns[-1].answer.over)
            ):
                del self._held[chat_id]
