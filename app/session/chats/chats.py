"""The open chat, the chat list, and the conversations in use.

Every chat is known by its summary. Conversations are loaded from an archive when opened and saved to it with
each change; only the most recent few stay in memory. Ids of chats and turns are created here and never
reused. A chat without a question is not listed; the window always has one such chat to start from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Literal
from uuid import uuid4

from msgspec.structs import replace

from app.session.chats.archive import ChatArchive, Hit, Summary, summary_of
from app.session.chats.conversation import NOTHING_WRITTEN, Conversation, merged
from app.session.chats.presets import Preset
from core.errors import RequestError

UNFINISHED_NOTE = "Draftlight was closed before this answer was finished."


# What an import did with a chat.
Addition = Literal["added", "updated", "restored", "known"]
# A chat of 60,000 tokens takes about 15 MB. Enough for the open chat, the running one and a few recent ones.
_HELD = 4
KEPT_DELETED = timedelta(days=30)


def utc_now() -> datetime:
    """Returns the time with its timezone, so that a stored time is unambiguous."""
    return datetime.now(UTC)


class Chats:
    """`now` returns the creation time of a chat; `open_id` is the chat to open first, if it exists.

    `first_preset` returns the preset of new chats, None for the defaults. `erased` receives the text of each
    document of a permanently deleted chat, `purged` the chat's id.
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
        """The open chat."""
        return self.get(self._open_id)

    def listed(self) -> tuple[Summary, ...]:
        """The chats that have a question and are not archived, newest first."""
        return tuple(each for each in self._living() if not each.archived)

    def archived(self) -> tuple[Summary, ...]:
        """The archived chats, newest first."""
        return tuple(each for each in self._living() if each.archived)

    def deleted(self) -> tuple[Summary, ...]:
        """The deleted chats that can be restored, the last deleted first."""
        found = [each for each in self._summaries.values() if each.deleted and each.turns]
        return tuple(
            sorted(found, key=lambda each: each.deleted.timestamp() if each.deleted else 0, reverse=True)
        )

    @property
    def has_deleted(self) -> bool:
        """Whether a deleted chat can be restored."""
        return any(each.deleted and each.turns for each in self._summaries.values())

    def queued(self) -> tuple[str, ...]:
        """The ids of the chats with messages waiting to be sent, the open chat first."""
        found = [each.id for each in self._summaries.values() if each.queued and not each.deleted]
        return tuple(sorted(found, key=lambda chat_id: chat_id != self._open_id))

    def summary(self, chat_id: str) -> Summary:
        """Returns the summary of a chat. Raises `KeyError`."""
        return self._summaries[chat_id]

    def get(self, chat_id: str) -> Conversation:
        """Returns the conversation with this id. Raises `KeyError`."""
        chat = self._held.pop(chat_id, None) or self._fetch(chat_id)
        self._held[chat_id] = chat  # most recently used last
        self._let_go()
        return chat

    def keep(self, chat: Conversation) -> None:
        """Replace the chat of the same id, in memory and in the archive."""
        self._held.pop(chat.id, None)
        self._held[chat.id] = chat
        if not chat.is_blank or chat.id in self._summaries:
            self._summaries[chat.id] = summary_of(chat)
            self._archive.save(chat)
        self._let_go()

    def select(self, chat_id: str) -> Conversation:
        """Open the chat with this id. Raises `KeyError`."""
        chat = self.get(chat_id)
        self._open_id = chat_id
        return chat

    def start(self) -> Conversation:
        """Open a new chat. An unused chat, with its draft, is reused.

        It gets the preset for new chats. Without one, or if it has that preset already, its settings stay.
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
        """Open a new chat with a copy of the open chat's turns up to and including `turn_id`.

        It has the same preset and overrides. Raises `KeyError` if there is no such turn.
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
        """Read the list of chats from the archive again, after damage was found or repaired."""
        held = {chat_id: summary_of(chat) for chat_id, chat in self._held.items() if not chat.is_blank}
        self._summaries = {each.id: each for each in self._archive.summaries()} | held

    def add(self, chat: Conversation) -> tuple[Conversation, Addition]:
        """Imports a chat. Returns the stored chat with its versions, and what had to be done.

        A chat with the same id is updated if it has nothing that `chat` lacks, and restored if it was
        deleted. If both have something else, `chat` is added as another one. Its queued messages become its
        draft, so that nothing is sent without the author's action.
        """
        if chat.queued:
            drafts = [*chat.queued, chat.draft] if chat.draft != NOTHING_WRITTEN else chat.queued
            chat = chat.with_draft(merged(drafts)).with_queued(())
        for _ in range(2):
            if chat.id not in self._summaries and chat.id not in self._held:
                self.keep(chat)
                return chat, "added"
            try:
                known = self.get(chat.id)
            except RequestError:  # unreadable
                known = Conversation(chat.id, chat.created)
            is_deleted = known.deleted is not None and chat.deleted is None
            if _has(known, chat) and (chat.turns or known.draft == chat.draft):
                if is_deleted:
                    known = known.with_deleted(None)
                    self.keep(known)
                return known, "restored" if is_deleted else "known"
            if known.turns and _has(chat, known):
                known = known.with_turns(chat.turns).with_deleted(None)
                self.keep(known)
                return known, "updated"
            chat = replace(chat, id=_other_id(chat))
        chat = replace(chat, id=uuid4().hex)
        self.keep(chat)
        return chat, "added"

    def purge(self, chat_id: str) -> None:
        """Delete a chat permanently. The open chat is not purged: select another first."""
        with suppress(KeyError, RequestError):  # an unreadable chat is deleted too
            for attachment in (self._held.get(chat_id) or self._archive.load(chat_id)).attachments:
                self._erased(attachment.text)
        self._summaries.pop(chat_id, None)
        self._held.pop(chat_id, None)
        self._archive.purge(chat_id)
        self._purged(chat_id)

    def purge_old(self) -> None:
        """Delete permanently the chats that were deleted at least `KEPT_DELETED` ago."""
        last = (self.now() - KEPT_DELETED).timestamp()
        for each in list(self._summaries.values()):
            if each.deleted and each.deleted.timestamp() <= last:
                self.purge(each.id)

    def search(self, query: str) -> Sequence[Hit]:
        """Returns the matching chats with a question, archived ones included, best first."""
        return [hit for hit in self._archive.search(query) if self._can_be_found(hit.chat_id)]

    def new_turn_id(self) -> str:
        """Returns an id that no turn or request has had."""
        return uuid4().hex

    def _living(self) -> list[Summary]:
        """The chats with a question that are not deleted, newest first."""
        living = [each for each in reversed(self._summaries.values()) if each.turns and not each.deleted]
        return sorted(living, key=lambda each: each.when.timestamp(), reverse=True)

    def _can_be_found(self, chat_id: str) -> bool:
        summary = self._summaries.get(chat_id)
        return summary is not None and summary.turns > 0 and not summary.deleted

    def _fetch(self, chat_id: str) -> Conversation:
        # A running answer is always in memory: an unfinished one from the archive was interrupted by an exit.
        return self._archive.load(chat_id).settled(UNFINISHED_NOTE)

    def _let_go(self) -> None:
        """Drop conversations from memory that the archive can load again."""
        for chat_id in list(self._held)[:-_HELD]:
            turns = self._held[chat_id].turns
            if (
                chat_id != self._open_id
                and chat_id in self._summaries
                and (not turns or turns[-1].answer.over)
            ):
                del self._held[chat_id]


def _has(chat: Conversation, other: Conversation) -> bool:
    """Whether `chat` has everything that was written in `other`."""
    answers = {version.id: version.answer.text for turn in chat.turns for version in turn.versions}
    return all(
        version.id in answers and answers[version.id].startswith(version.answer.text)
        for turn in other.turns
        for version in turn.versions
    )


def _other_id(chat: Conversation) -> str:
    """An id for a chat whose id is in use, the same for each import of it."""
    versions = [f"{each.id} {len(each.answer.text)}" for turn in chat.turns for each in turn.versions]
    return sha256("\n".join((chat.id, *versions)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
