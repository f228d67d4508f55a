"""The open chat, the chat list, and the conversations in use.

Every chat is known by its summary. Conversations are loaded from an archive when opened and saved to it with
each change; only the most recent few stay in memory. Ids of chats and turns are created here and never
reused. A chat without a question, sent or queued, is not listed; the window always has one such chat to start
from.
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
from app.session.chats.presets import Override, Preset
from app.session.chats.projects import Project, Projects
from core.errors import RequestError
from core.events import Attachment

UNFINISHED_NOTE = "Draftlight was closed before this answer was finished."
COPIED_NOTE = "The chat was copied before this answer was finished."

# Result of importing a chat.
Addition = Literal["added", "updated", "restored", "known"]
SYSTEM_PROMPT = "chat.system_prompt"
# A chat of 60,000 tokens takes about 15 MB. Enough for the open chat, the running one and a few recent ones.
_HELD = 4
KEPT_DELETED = timedelta(days=30)


def utc_now() -> datetime:
    """Returns the time with its timezone, so that a stored time is unambiguous."""
    return datetime.now(UTC)


class Chats:
    """`now` returns the creation time of a chat; `open_id` is the chat to open first, if it exists.
    `steady_now` returns the time of deletions, for their age; by default that of `now`.

    `find_preset` returns the preset of a name, None if there is none. `erased` receives the text of each
    document of a permanently deleted chat, also if another chat has the same one; `purged` the chat's id.
    """

    def __init__(
        self,
        archive: ChatArchive,
        now: Callable[[], datetime] = utc_now,
        open_id: str = "",
        find_preset: Callable[[str], Preset | None] = lambda name: None,
        erased: Callable[[str], None] = lambda text: None,
        purged: Callable[[str], None] = lambda chat_id: None,
        steady_now: Callable[[], datetime] | None = None,
    ) -> None:
        self.now = now
        self._find_preset = find_preset
        self.steady_now = steady_now or now
        self._erased = erased
        self._purged = purged
        self._archive = archive
        self.projects = Projects(archive, now, self.steady_now)
        self._summaries = {summary.id: summary for summary in self._archive.summaries()}
        self._held: dict[str, Conversation] = {}
        self._open_id = ""
        known = self._summaries.get(open_id)
        if known and not self._deleted(known):
            with suppress(KeyError, RequestError):  # unreadable
                self.select(open_id)
        if not self._open_id:
            self.start()

    @property
    def open(self) -> Conversation:
        return self.get(self._open_id)

    def listed(self) -> tuple[Summary, ...]:
        """The chats that have a question, newest first."""
        return tuple(self._living())

    def has(self, chat_id: str) -> bool:
        """Whether there is a chat with this id, deleted or not."""
        return chat_id in self._summaries

    def is_listed(self, chat_id: str) -> bool:
        summary = self._summaries.get(chat_id)
        return summary is not None and summary.asked and not self._deleted(summary)

    def deleted(self) -> tuple[Summary, ...]:
        """The deleted chats that can be restored, the last deleted first."""
        found = [
            (when.timestamp(), replace(each, deleted=when))
            for each in self._summaries.values()
            if each.asked and (when := self._deleted(each))
        ]
        return tuple(each for _, each in sorted(found, key=lambda pair: pair[0], reverse=True))

    @property
    def has_deleted(self) -> bool:
        """Whether a deleted chat can be restored."""
        return any(each.asked and self._deleted(each) for each in self._summaries.values())

    def queued(self) -> tuple[str, ...]:
        """The ids of the chats with messages waiting to be sent, the open chat first."""
        found = [each.id for each in self._summaries.values() if each.queued and not self._deleted(each)]
        return tuple(sorted(found, key=lambda chat_id: chat_id != self._open_id))

    def summary(self, chat_id: str) -> Summary:
        """Returns the summary of a chat. Raises `KeyError`."""
        return self._summaries[chat_id]

    def get(self, chat_id: str) -> Conversation:
        """Returns the conversation with this id. Raises `KeyError`; `RequestError` if it is unreadable."""
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
        """Open the chat with this id. Raises as `get`."""
        chat = self.get(chat_id)
        self._open_id = chat_id
        return chat

    def start(self, project_id: str = "") -> Conversation:
        """Open a new chat, in a project if it exists. An unused chat there, with its draft, is reused.

        It gets the preset and the system prompt of the project. A reused chat that has that preset already
        keeps its settings. If there are several, as after the deletion of a project, their drafts are joined.
        """
        project = self.projects.find(project_id)
        unused = self._unused(project)
        chat = unused[0] if unused else Conversation(uuid4().hex, self.now())
        name, overrides = self._first_settings(project)
        if not unused or chat.preset != name:
            chat = replace(chat, preset=name, overrides=overrides)
        self._open_id = chat.id
        chat = chat.in_project(project.id if project else "")
        for other in unused[1:]:
            chat = chat.with_draft(merged((chat.draft, other.draft)))
        self.keep(replace(chat, created=self.now(), turns=(), context_used_tokens=0))
        for other in unused[1:]:
            self.purge(other.id)
        return self.open

    def change_project(self, project: Project) -> None:
        """Replace the project of the same id. Its unused chat gets the new preset and system prompt."""
        before = self._first_settings(self.projects.find(project.id))
        self.projects.change(project)
        name, overrides = self._first_settings(project)
        for unused in self._unused(project):
            if (name, overrides) != before:
                self.keep(replace(unused, preset=name, overrides=overrides))

    def remove_from_drafts(self, project_id: str, is_removed: Callable[[Attachment], bool]) -> None:
        """Remove documents from the unused chat of a project, which is not open."""
        project = self.projects.find(project_id)
        for chat in self._unused(project) if project else ():
            kept = tuple(each for each in chat.draft.attachments if not is_removed(each))
            if chat.id != self._open_id and kept != chat.draft.attachments:
                self.keep(chat.with_draft(replace(chat.draft, attachments=kept)))

    def in_project(self, project_id: str) -> tuple[Summary, ...]:
        """The chats of a project that have a question, newest first."""
        return tuple(each for each in self._living() if each.project == project_id)

    def restore(self, chat_id: str) -> None:
        """Restore a deleted chat; outside of its project if that was deleted."""
        chat = self.get(chat_id).with_deleted(None)
        self.keep(chat if self.projects.find(chat.project) else chat.in_project(""))

    def branch(self, turn_id: str, name: str = "") -> Conversation:
        """Open a new chat with a copy of the open chat's turns up to and including `turn_id`.

        It has the same preset and overrides. Raises `KeyError` for an unknown turn.
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
            project=chat.project,
        ).settled(COPIED_NOTE)
        self._open_id = branch.id
        self.keep(branch)
        return branch

    def save_held(self) -> None:
        """Hand the listed chats that are in memory to the archive, which may not have them whole any more."""
        for chat_id in self._summaries.keys() & self._held.keys():
            self._archive.save(self._held[chat_id])

    def refresh(self) -> None:
        """Read the list of chats from the archive again, after damage was found or repaired."""
        held = {chat_id: summary_of(chat) for chat_id, chat in self._held.items() if not chat.is_blank}
        self._summaries = {each.id: each for each in self._archive.summaries()} | held
        self.projects.refresh()

    def add(self, chat: Conversation) -> tuple[Conversation, Addition]:
        """Imports a chat. Returns the stored chat with its versions, and the result.

        A chat with the same id is updated if it has nothing that `chat` lacks, and restored if it was
        deleted. If both have something else, `chat` is added as another one. It is in its project if that
        exists. Its queued messages become its draft, so that nothing is sent without the author's action.
        """
        chat = chat.settled(COPIED_NOTE)
        if chat.queued:
            drafts = [each.message for each in chat.queued]
            drafts += [chat.draft] if chat.draft != NOTHING_WRITTEN else []
            chat = chat.with_draft(merged(drafts)).with_queued(())
        if self.projects.find(chat.project) is None:
            chat = chat.in_project("")
        for _ in range(2):
            if chat.id not in self._summaries and chat.id not in self._held:
                self.keep(chat)
                return chat, "added"
            try:
                known = self.get(chat.id)
            except RequestError:  # unreadable
                known = Conversation(chat.id, chat.created)
            if includes(known, chat) and (chat.turns or known.draft == chat.draft):
                if chat.deleted or not self._deleted(known):
                    return known, "known"
                self.restore(chat.id)
                return self.get(chat.id), "restored"
            if known.turns and includes(chat, known):
                self.keep(known.with_turns(chat.turns))
                self.restore(chat.id)
                return self.get(chat.id), "updated"
            chat = replace(chat, id=other_id(chat))
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

    def delete_turn(self, turn_id: str) -> Conversation:
        """Delete a question of the open chat with its answer, permanently. Raises `KeyError`."""
        before = self.open
        chat = before.without_turn(turn_id)
        self.keep(chat)
        self._archive.rewrite(chat, before)
        kept = {attachment.text for attachment in chat.attachments}
        for attachment in before.attachments:
            if attachment.text not in kept:
                self._erased(attachment.text)
        self._purged(chat.id)
        return chat

    def delete(self, chat_id: str) -> Conversation:
        """Mark a chat as deleted, so that it can be restored until `purge_old`."""
        chat = self.get(chat_id).with_deleted(self.steady_now())
        self.keep(chat)
        return chat

    def purge_old(self) -> None:
        """Delete permanently the chats and projects that were deleted at least `KEPT_DELETED` ago.

        A deletion in the future, by a clock that was ahead, counts as one of now.
        """
        now = self.steady_now()
        last = (now - KEPT_DELETED).timestamp()
        for each in list(self._summaries.values()):
            deleted = self._deleted(each)
            if deleted and deleted.timestamp() <= last:
                self.purge(each.id)
            elif each.deleted and each.deleted.timestamp() > now.timestamp():
                with suppress(KeyError, RequestError):
                    self.delete(each.id)
        self.projects.purge_deleted_until(last)

    def search(self, query: str) -> Sequence[Hit]:
        """Returns the matching chats with a question, best first."""
        return [hit for hit in self._archive.search(query) if self.is_listed(hit.chat_id)]

    def new_turn_id(self) -> str:
        """Returns an id that no turn or request has had."""
        return uuid4().hex

    def _living(self) -> list[Summary]:
        """The chats with a question that are not deleted, newest first."""
        living = [
            each for each in reversed(self._summaries.values()) if each.asked and not self._deleted(each)
        ]
        return sorted(living, key=lambda each: each.when.timestamp(), reverse=True)

    def _deleted(self, chat: Summary | Conversation) -> datetime | None:
        """The time when a chat or its project was deleted."""
        return chat.deleted or (self.projects.chats_deleted(chat.project) if chat.project else None)

    def _unused(self, project: Project | None) -> list[Conversation]:
        """The chats without a question in a project, or outside of all projects; rarely more than one."""
        known: Sequence[Summary | Conversation] = (*self._summaries.values(), *self._held.values())
        found = {
            each.id: None
            for each in known
            if not (each.turns or each.queued or self._deleted(each))
            and self.projects.find(each.project) == project
        }
        chats = []
        for chat_id in found:
            with suppress(RequestError):  # unreadable
                chats.append(self.get(chat_id))
        return chats

    def _first_settings(self, project: Project | None) -> tuple[str, tuple[Override, ...]]:
        """The preset's name and the overrides of a new chat, empty without a project."""
        preset = self._find_preset(project.preset if project else "")
        name, overrides = (preset.name, preset.overrides) if preset else ("", ())
        if project and project.system_prompt:
            own = Override(SYSTEM_PROMPT, project.system_prompt)
            overrides = (*(each for each in overrides if each.key != own.key), own)
        return name, overrides

    def _fetch(self, chat_id: str) -> Conversation:
        # A running answer is always in memory: an unfinished one from the archive was interrupted by an exit.
        return self._archive.load(chat_id).settled(UNFINISHED_NOTE, keep_waiting=True)

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


def includes(chat: Conversation, other: Conversation) -> bool:
    """Whether `chat` has everything that was written in `other`."""
    own = {version.id: version for turn in chat.turns for version in turn.versions}
    return all(
        version.id in own
        and own[version.id].user == version.user
        and own[version.id].answer.text.startswith(version.answer.text)
        for turn in other.turns
        for version in turn.versions
    )


def other_id(chat: Conversation) -> str:
    """An id for a chat whose id is in use, the same for each import of it."""
    versions = [f"{each.id} {len(each.answer.text)}" for turn in chat.turns for each in turn.versions]
    return sha256("\n".join((chat.id, *versions)).encode("utf-8", "surrogatepass")).hexdigest()[:32]
