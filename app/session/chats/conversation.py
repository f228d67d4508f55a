"""A chat: what was asked, what was answered, and how each answer ended.

All records are frozen; each method returns the chat as it is afterwards, and what did not change
is the same object as before: the store writes by that. Turns are named by the request that
answers them. An answer keeps every token it got, however it ended, and a partial answer is
history like any other. Nothing here knows the clock, widgets or the worker.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from functools import reduce
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from app.session.chats.continuing import can_go_on, end_of, joined, to_go_on_from
from app.session.chats.overrides import Override
from core.events import Attachment, Finished, Message, ReadingMap, Token
from core.settings import Settings

# `imported` answers are words only: their one token is the whole text.
AnswerStatus = Literal["waiting", "writing", "finished", "stopped", "cut_off", "failed", "imported"]

# Fits the sidebar's 240 px at 13 px type.
TITLE_CHARACTERS = 80


class AskedOf(Struct, frozen=True):
    """Which model was asked with which settings: what it takes to go on where nobody saw the end."""

    model: str
    settings: Settings


class Answer(Struct, frozen=True):
    """`finished` is set once the worker has ended it; `note` says why it was cut off or failed.

    While it is gone on with, `finished` is the end of what was there before.

    `reading` is what of the prompt was read for it, None if that was all of it. `asked_of` is kept while
    there is no end that the worker told.
    """

    tokens: tuple[Token, ...] = ()
    status: AnswerStatus = "waiting"
    finished: Finished | None = None
    note: str = ""
    reading: ReadingMap | None = None
    asked_of: AskedOf | None = None

    @property
    def text(self) -> str:
        """What was written, word for word."""
        return "".join(token.text for token in self.tokens)

    @property
    def over(self) -> bool:
        """Whether nothing will be added."""
        return self.status not in ("waiting", "writing")

    def can_go_on(self, model: str) -> bool:
        """Whether `model` can write on where this ended."""
        if not self.over or not self.tokens:
            return False
        if self.finished is not None:
            return can_go_on(self.finished, model)
        return self.asked_of is not None and self.asked_of.model == model


class Version(Struct, frozen=True):
    """A question as it was asked once, and the answer that it got. `asked` is None where nobody noted it."""

    id: str
    user: Message
    answer: Answer = Answer()
    asked: datetime | None = None


class Turn(Struct, frozen=True):
    """One question and its answer, in the version that is shown and that the model goes by.

    `others` are all other versions, as they were asked; the shown one has the place `place` among them.
    """

    id: str
    user: Message
    answer: Answer = Answer()
    asked: datetime | None = None
    others: tuple[Version, ...] = ()
    place: int = 0

    @property
    def versions(self) -> tuple[Version, ...]:
        """All of them, as they were asked."""
        shown = Version(self.id, self.user, self.answer, self.asked)
        return (*self.others[: self.place], shown, *self.others[self.place :])

    def showing(self, place: int) -> Turn:
        """With another version shown. Raises `IndexError` if there is none at `place`."""
        return _turn(self.versions, range(len(self.others) + 1)[place])

    def asked_again(self, turn_id: str, user: Message, asked: datetime | None) -> Turn:
        """With one version more, not answered yet. One that never got a word to the same question goes."""
        before = self.versions
        if not self.answer.tokens and user == self.user:
            before = self.others
        return _turn((*before, Version(turn_id, user, asked=asked)), len(before))


def _with_known_match(turn: Turn, finished: Finished) -> Finished:
    """With `unmatched` of the last version, if this one's question was cached and so was not scored again."""
    stats, effective = finished.stats, finished.effective
    ends = [each.answer.finished for each in turn.others if each.user == turn.user and each.answer.finished]
    if effective.reading != "sparse" or stats.score_s or not ends or not ends[-1].effective.unmatched:
        return finished
    return replace(finished, effective=replace(effective, unmatched=True))


def _turn(versions: Sequence[Version], place: int) -> Turn:
    shown = versions[place]
    others = (*versions[:place], *versions[place + 1 :])
    return Turn(shown.id, shown.user, shown.answer, shown.asked, others, place)


NOTHING_WRITTEN = Message("user", "")


class Conversation(Struct, frozen=True):
    """A chat. `context_used_tokens` is what its last answer left in the model's context.

    `name` is the title it was given, by a person or by the model. `overrides` are the settings it holds for
    itself. `draft` is what is written and not sent, `queued` what is to be sent after the answer under way,
    the next first. `deleted` is set while the deletion can be undone,
    `archived` while it is kept out of the list. `preset` is the name of the one it took last, empty for
    none; the settings that it gave are among the overrides.
    """

    id: str
    created: datetime
    turns: tuple[Turn, ...] = ()
    context_used_tokens: int = 0
    name: str = ""
    pinned: bool = False
    overrides: tuple[Override, ...] = ()
    draft: Message = NOTHING_WRITTEN
    deleted: datetime | None = None
    archived: datetime | None = None
    preset: str = ""
    queued: tuple[Message, ...] = ()

    @property
    def title(self) -> str:
        """As named, or from the first question; empty while there is neither."""
        return self.name or (_title(self.turns[0].user) if self.turns else "")

    @property
    def changed(self) -> datetime:
        """When something was asked last."""
        return (self.turns[-1].versions[-1].asked if self.turns else None) or self.created

    @property
    def is_blank(self) -> bool:
        """Whether nothing would be lost with it."""
        kept = self.turns or self.name or self.overrides or self.preset or self.queued
        return not (kept or self.draft != NOTHING_WRITTEN)

    def turn(self, turn_id: str) -> Turn:
        """The turn called `turn_id`. Raises `KeyError`."""
        return self.turns[self._index(turn_id)]

    def has(self, turn_id: str) -> bool:
        """Whether there is such a turn."""
        return any(turn.id == turn_id for turn in self.turns)

    def ask(self, turn_id: str, user: Message, asked: datetime | None = None) -> Conversation:
        """With one more question, not answered yet."""
        return replace(self, turns=(*self.turns, Turn(turn_id, user, asked=asked)))

    def ask_again(
        self, turn_id: str, user: Message | None = None, asked: datetime | None = None
    ) -> Conversation:
        """With a new version of the last turn, `turn_id`: asked again, in other words if `user` is given."""
        last = self.turns[-1]
        again = last.asked_again(turn_id, user or last.user, asked)
        return self.with_turns((*self.turns[:-1], again))

    def show_version(self, turn_id: str, place: int) -> Conversation:
        """With the version at `place` of a turn shown instead. Raises `KeyError` or `IndexError`."""
        index = self._index(turn_id)
        turn = self.turns[index].showing(place)
        chat = self.with_turns((*self.turns[:index], turn, *self.turns[index + 1 :]))
        finished = turn.answer.finished
        if finished is None or index + 1 < len(self.turns):
            return chat
        return chat.with_context(finished.stats.context_used_tokens)

    def asking(self, turn_id: str, asked_of: AskedOf) -> Conversation:
        """With what an answer is asked of."""
        return self.with_answer(turn_id, replace(self.turn(turn_id).answer, asked_of=asked_of))

    def read(self, turn_id: str, reading: ReadingMap) -> Conversation:
        """With what is read for an answer."""
        return self.with_answer(turn_id, replace(self.turn(turn_id).answer, reading=reading))

    def write(self, turn_id: str, tokens: Sequence[Token]) -> Conversation:
        """With `tokens` added to an answer."""
        answer = self.turn(turn_id).answer
        return self.with_answer(turn_id, replace(answer, tokens=(*answer.tokens, *tokens), status="writing"))

    def finish(self, turn_id: str, finished: Finished, note: str = "") -> Conversation:
        """With an answer ended by the worker: at its end, at its length, or stopped (`note` says why)."""
        status: AnswerStatus = "stopped" if finished.reason == "cancelled" else "finished"
        answer = self.turn(turn_id).answer
        if answer.finished is not None:
            finished = joined(answer.finished, finished)
        finished = _with_known_match(self.turn(turn_id), finished)
        answer = replace(answer, status=status, finished=finished, asked_of=None, note=note)
        if finished.effective.reading == "dense":
            # What was chosen was given up, and all of it was read.
            answer = replace(answer, reading=None)
        ended = self.with_answer(turn_id, answer)
        return replace(ended, context_used_tokens=finished.stats.context_used_tokens)

    def cut_off(self, turn_id: str, note: str) -> Conversation:
        """With an answer ended by the worker's death; what is written stays."""
        return self._broken(turn_id, "cut_off", note)

    def fail(self, turn_id: str, note: str) -> Conversation:
        """With an answer ended by an error; what is written stays."""
        return self._broken(turn_id, "failed", note)

    def go_on(self, turn_id: str) -> Conversation:
        """With an answer that was over being written again, behind what is there."""
        answer = self.turn(turn_id).answer
        finished = answer.finished
        if finished is None and answer.asked_of is not None:
            finished = end_of(answer.tokens, answer.asked_of.model, answer.asked_of.settings)
        tokens = to_go_on_from(answer.tokens)
        answer = replace(answer, tokens=tokens, status="writing", finished=finished, note="")
        return self.with_answer(turn_id, answer)

    def without(self, turn_id: str) -> Conversation:
        """As if `turn_id` had not been asked."""
        return replace(self, turns=tuple(turn for turn in self.turns if turn.id != turn_id))

    def with_turns(self, turns: tuple[Turn, ...]) -> Conversation:
        """With these turns and no others."""
        return replace(self, turns=turns)

    def with_context(self, used_tokens: int) -> Conversation:
        """With the context as it is now."""
        return replace(self, context_used_tokens=used_tokens)

    def renamed(self, name: str) -> Conversation:
        """With the title `name`; empty brings back the one from the first question."""
        return replace(self, name=" ".join(name.split()))

    def with_pin(self, pinned: bool) -> Conversation:
        """Kept above the others, or not."""
        return replace(self, pinned=pinned)

    def with_overrides(self, overrides: tuple[Override, ...]) -> Conversation:
        """With these settings of its own."""
        return replace(self, overrides=overrides)

    def with_preset(self, name: str) -> Conversation:
        """With that preset as the one it took last; empty for none."""
        return replace(self, preset=name)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents of all versions of its turns, and of the draft."""
        asked = [version.user for turn in self.turns for version in turn.versions]
        return tuple(each for message in (*asked, self.draft) for each in message.attachments)

    def with_draft(self, draft: Message) -> Conversation:
        """With `draft` written and not sent."""
        return replace(self, draft=draft)

    def with_queued(self, messages: Sequence[Message]) -> Conversation:
        """With `messages` waiting to be sent, the next first."""
        return replace(self, queued=tuple(messages))

    def with_deleted(self, deleted: datetime | None) -> Conversation:
        """Deleted at that time, or (None) back again."""
        return replace(self, deleted=deleted)

    def with_archived(self, archived: datetime | None) -> Conversation:
        """Archived at that time, or (None) listed again."""
        return replace(self, archived=archived)

    def settled(self, note: str) -> Conversation:
        """With answers that nobody is writing any more cut off, for the reason `note`."""
        chat = self
        for turn in self.turns:
            if not turn.answer.over:
                chat = chat.cut_off(turn.id, note)
        return chat

    def upto(self, turn_id: str) -> tuple[Turn, ...]:
        """The turns up to and including `turn_id`."""
        return self.turns[: self._index(turn_id) + 1]

    def with_answer(self, turn_id: str, answer: Answer) -> Conversation:
        """With the answer of `turn_id` replaced."""
        index = self._index(turn_id)
        turn = replace(self.turns[index], answer=answer)
        return replace(self, turns=(*self.turns[:index], turn, *self.turns[index + 1 :]))

    def messages_before(self, turn_id: str) -> tuple[Message, ...]:
        """What the model was asked with for that answer."""
        turns = self.upto(turn_id)
        asked = replace(turns[-1], answer=Answer())
        return self.with_turns((*turns[:-1], asked)).messages_for_request()

    def messages_for_request(self) -> tuple[Message, ...]:
        """What the model is asked with: every question and every answer so far, in turn.

        A question that never got a word of answer is joined to the one after it, because chat
        templates want the two sides to take turns.
        """
        messages: list[Message] = []
        for turn in self.turns:
            if messages and messages[-1].role == "user":
                messages[-1] = _join(messages[-1], turn.user)
            else:
                messages.append(turn.user)
            if text := turn.answer.text:
                messages.append(Message("assistant", text))
        return tuple(messages)

    def _broken(self, turn_id: str, status: AnswerStatus, note: str) -> Conversation:
        """Figures of an earlier part would not be those of what is written now."""
        answer = replace(self.turn(turn_id).answer, status=status, note=note, finished=None)
        return self.with_answer(turn_id, answer)

    def _index(self, turn_id: str) -> int:
        for index, turn in enumerate(self.turns):
            if turn.id == turn_id:
                return index
        raise KeyError(turn_id)


def merged(messages: Sequence[Message]) -> Message:
    """Several messages of the person as one, in order."""
    return reduce(_join, messages)


def _title(message: Message) -> str:
    words = " ".join(message.content.split())
    if not words and message.attachments:
        words = message.attachments[0].name
    if len(words) <= TITLE_CHARACTERS:
        return words
    head = words[:TITLE_CHARACTERS]
    space = head.rfind(" ")
    # A single word as long as the title is cut inside.
    return (head[:space] if space >= TITLE_CHARACTERS // 2 else head).rstrip(" ,;:.") + "…"


def _join(first: Message, second: Message) -> Message:
    content = "\n\n".join(text for text in (first.content, second.content) if text)
    return Message("user", content, (*first.attachments, *second.attachments))
