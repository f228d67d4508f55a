"""Conversations: questions, answers, and how each answer ended.

All records are frozen. Each method returns the changed chat and reuses unchanged parts as the same objects,
by which the store recognises what to write. A turn's id is the id of the request that answers it. An answer
keeps all its tokens however it ended, and a partial answer is part of the history like any other. Nothing
here depends on the clock, widgets or the worker.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import reduce
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from app.session import strings
from app.session.chats.answers import (
    Edit,
    all_typed,
    can_go_on,
    cut_after,
    end_of,
    end_of_edited,
    joined,
    to_go_on_from,
    with_edits,
)
from app.session.chats.parts import Part, generations, parts_of, words_of
from app.session.chats.presets import Override
from app.session.tools.calls import CallRecord, ChosenTool
from core.answer_format import AnswerFormat
from core.events import TYPED, Attachment, Finished, Image, Message, Passage, ReadingMap, Token
from core.settings import Settings

# `imported` answers are text only: their one token, `TYPED`, is the whole text. `edited` ones were changed by
# a person and not continued since.
# `calling` answers wait for permission or for the results of calls.
AnswerStatus = Literal[
    "waiting", "writing", "calling", "finished", "stopped", "cut_off", "failed", "imported", "edited"
]

# Searchable characters of a result.
_SEARCHED_CHARACTERS = 20_000

# Fits the sidebar's 240 px at 13 px type.
TITLE_CHARACTERS = 80


class AskedOf(Struct, frozen=True):
    """The model and settings of a request, kept so that an interrupted answer can be continued."""

    model: str
    settings: Settings


class Answer(Struct, frozen=True):
    """An answer. `finished` is set after the worker ended it; `note` says why it was cut off or failed.

    While the answer is being continued, `finished` is the end of its earlier parts.

    `reading` is the reading map of its prompt, None for a dense prefill. `asked_of` is kept until the worker
    reports an end.

    `tools` are the names of the functions that the model could call; without any, calls are text. `calls` are
    those that it made, in order.
    """

    tokens: tuple[Token, ...] = ()
    status: AnswerStatus = "waiting"
    finished: Finished | None = None
    note: str = ""
    reading: ReadingMap | None = None
    asked_of: AskedOf | None = None
    tools: tuple[str, ...] = ()
    calls: tuple[CallRecord, ...] = ()

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The answer's thoughts, texts, calls and their results, in order."""
        return parts_of(self.tokens, self.format, self.tools, self.calls)

    @property
    def format(self) -> AnswerFormat | None:
        """The syntax of the answer; None if it is unknown."""
        format = self.finished.effective.format if self.finished else None
        return (self.tokens[0].format if self.tokens else None) or format

    @property
    def words(self) -> str:
        """The answer's texts without thoughts and marks: what may leave the chat's own files."""
        return words_of(self.text, (part.text for part in self.parts if part.kind == "text"))

    @property
    def texts(self) -> tuple[tuple[str, tuple[CallRecord, ...]], ...]:
        """The words of each generation, with the calls that follow it."""
        found: list[tuple[str, tuple[CallRecord, ...]]] = []
        for tokens, calls in generations(self.tokens, self.calls):
            source = "".join(token.text for token in tokens)
            parts = parts_of(tokens, self.format, self.tools)
            words = words_of(source, (part.text for part in parts if part.kind == "text"))
            found.append((words.strip("\n"), tuple(calls)))
        return tuple(found)

    @property
    def searched(self) -> str:
        """The searchable text: the words, and the calls with the beginnings of their results."""
        calls = ((call.tool, call.arguments, call.result[:_SEARCHED_CHARACTERS]) for call in self.calls)
        return "\n".join([self.words, *(text for call in calls for text in call)])

    @property
    def open_calls(self) -> tuple[CallRecord, ...]:
        """The calls without a result."""
        return tuple(call for call in self.calls if call.is_open)

    @property
    def last_generation(self) -> int:
        """The number of tokens before the newest generation."""
        return self.calls[-1].after if self.calls else 0

    @property
    def ends_with_results(self) -> bool:
        """Whether nothing was written after the last call."""
        return bool(self.calls) and self.last_generation == len(self.tokens)

    @property
    def documents(self) -> tuple[Attachment, ...]:
        """The results that the model gets as documents."""
        return tuple(document for call in self.calls if (document := call.document))

    @property
    def messages(self) -> tuple[Message, ...]:
        """The answer as the model gets it again: its texts, calls and results."""
        found: list[Message] = []
        for tokens, calls in generations(self.tokens, self.calls):
            if not calls:
                text = "".join(token.text for token in tokens)
                found += [Message("assistant", text)] if text else []
                continue
            parts = parts_of(tokens, self.format, self.tools)
            text = "".join(part.source for part in parts if part.kind != "call")
            text = text if text.strip() else ""
            made = tuple(call.written_call for call in calls)
            found += [Message("assistant", text, tool_calls=made), *(call.message for call in calls)]
        return tuple(found)

    @property
    def over(self) -> bool:
        return self.status not in ("waiting", "writing", "calling")

    @property
    def begun_characters(self) -> int:
        """Characters of the parts that ended before the running one."""
        tokens = self.tokens[: self.finished.stats.tokens] if self.finished else ()
        return sum(len(token.text) for token in tokens)

    @property
    def is_edited(self) -> bool:
        """Whether a person wrote a part of the answer."""
        return self.status != "imported" and any(token.id == TYPED for token in self.tokens)

    @property
    def model(self) -> str:
        """The model whose token ids the answer has; empty if unknown."""
        if self.finished is not None:
            return self.finished.effective.model
        return self.asked_of.model if self.asked_of else ""

    @property
    def drafter(self) -> str:
        """The requested drafter, until the worker reports an end; empty if unknown."""
        return self.asked_of.settings.drafting.drafter if self.asked_of else ""

    def with_tokens(self, tokens: tuple[Token, ...]) -> Answer:
        """Returns the answer with the tokens that an edit left."""
        finished = end_of_edited(self.finished, tokens) if self.finished else None
        kept = self._calls_in(tokens)
        return replace(self, tokens=tokens, status="edited", finished=finished, note="", calls=kept)

    def _calls_in(self, tokens: tuple[Token, ...]) -> tuple[CallRecord, ...]:
        """The calls before the first token that is another one in `tokens`."""
        return tuple(each for each in self.calls if self.tokens[: each.after] == tokens[: each.after])

    def with_calls_ended(self, waiting: str | None, running: str) -> Answer:
        """Ends open calls; results are for the model. `waiting` None: calls that wait for permission stay."""
        calls = []
        for call in self.calls:
            if call.state == "waiting" and waiting is not None:
                call = replace(call, state="denied", result=waiting)
            elif call.state == "running":
                call = replace(call, state="unknown", result=strings.MAY_HAVE_RUN.format(why=running))
            calls.append(call)
        return replace(self, calls=tuple(calls))

    def can_go_on(self, model: str) -> bool:
        if not self.over or not self.tokens:
            return False
        if self.ends_with_results:
            return True
        if self.status == "edited":
            return True
        if self.finished is not None:
            return can_go_on(self.finished, model)
        return self.asked_of is not None and self.asked_of.model == model


_EMPTY_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")


def message_text(typed: str) -> str:
    """The part of a typed text that is sent: without white space at its end and empty lines at its beginning.

    The first line keeps its indentation, since code is pasted.
    """
    return _EMPTY_LINES.sub("", typed.rstrip())


def attached_names(message: Message) -> list[str]:
    """The names of the documents and images of `message`."""
    return [*(each.name for each in message.attachments), *(each.name for each in message.images)]


def uncounted(message: Message) -> Message:
    """`message` as its author made it: without the tokens of its documents, which may be counted at any time,
    and without images of their pages, which are chosen when it is sent.
    """
    attachments = tuple(replace(each, tokens=0) for each in message.attachments)
    return replace(without_pages(message), attachments=attachments)


def without_pages(message: Message) -> Message:
    """`message` without images of its documents' pages."""
    return replace(message, images=tuple(each for each in message.images if not each.page))


class Version(Struct, frozen=True):
    """One wording of a question and its answer. `asked` is None if the time is unknown."""

    id: str
    user: Message
    answer: Answer = Answer()
    asked: datetime | None = None


class Turn(Struct, frozen=True):
    """A question and its answer in the displayed version, which is the one that the model sees.

    `others` are all other versions in the order in which they were asked; `place` is the index of the
    displayed one.
    """

    id: str
    user: Message
    answer: Answer = Answer()
    asked: datetime | None = None
    others: tuple[Version, ...] = ()
    place: int = 0

    @property
    def documents(self) -> tuple[Attachment, ...]:
        """The documents of the question and the results that are documents, as requests have them."""
        return (*self.user.attachments, *self.answer.documents)

    @property
    def versions(self) -> tuple[Version, ...]:
        """All versions, in the order in which they were asked."""
        shown = Version(self.id, self.user, self.answer, self.asked)
        return (*self.others[: self.place], shown, *self.others[self.place :])

    def showing(self, place: int) -> Turn:
        """Returns the turn with the version at `place` displayed. Raises `IndexError`."""
        return _turn(self.versions, range(len(self.others) + 1)[place])

    def asked_again(self, turn_id: str, user: Message, asked: datetime | None) -> Turn:
        """Returns the turn with a new, unanswered version. Replaces a version of the same question without an
        answer.
        """
        before = self.versions
        if not self.answer.tokens and uncounted(user) == uncounted(self.user):
            before = self.others
        return _turn((*before, Version(turn_id, user, asked=asked)), len(before))

    def with_version(
        self, turn_id: str, answer: Answer, asked: datetime | None, *, replaces: bool = False
    ) -> Turn:
        """Returns the turn with a new version that has `answer`; with `replaces`, instead of the displayed
        one.
        """
        before = self.others if replaces else self.versions
        return _turn((*before, Version(turn_id, self.user, answer, asked)), len(before))


def _typed(answer: Answer) -> tuple[tuple[Token, ...], tuple[CallRecord, ...]]:
    """The tokens and calls of an answer for a model that did not write it: a token for each generation."""
    tokens: list[Token] = []
    kept: list[CallRecord] = []
    for own, calls in generations(answer.tokens, answer.calls):
        tokens += all_typed(own) if own else ()
        kept += [replace(call, after=len(tokens)) for call in calls]
    return tuple(tokens), tuple(kept)


def _with_known_match(turn: Turn, finished: Finished) -> Finished:
    """With `unmatched` of the last version, if this one's question was cached and so was not scored again."""
    stats, effective = finished.stats, finished.effective
    same = [each.answer for each in turn.others if uncounted(each.user) == uncounted(turn.user)]
    ends = [answer.finished for answer in same if answer.finished]
    if effective.reading != "sparse" or stats.score_s or not ends or not ends[-1].effective.unmatched:
        return finished
    return replace(finished, effective=replace(effective, unmatched=True))


def _turn(versions: Sequence[Version], place: int) -> Turn:
    shown = versions[place]
    others = (*versions[:place], *versions[place + 1 :])
    return Turn(shown.id, shown.user, shown.answer, shown.asked, others, place)


NOTHING_WRITTEN = Message("user", "")


class QueuedMessage(Struct, frozen=True):
    """A message that waits to be sent, with the chat's overrides from when it was queued."""

    message: Message
    overrides: tuple[Override, ...] = ()


class Conversation(Struct, frozen=True):
    """A chat. `context_used_tokens` is the context length after its last answer.

    `name` is the title that a person or the model gave it. `overrides` are the settings that differ from the
    defaults. `draft` is the unsent message; `queued` are the messages to send after the running answer, the
    next one first. `deleted` is set while the deletion can be undone. `preset` is the name of the last chosen
    preset, empty for none; its settings are among the overrides. `project` is the id of its project; without
    a living project of that id it has none. `files` are paths of files that were being read for the draft.
    `tools` are those that the model may call.
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
    preset: str = ""
    queued: tuple[QueuedMessage, ...] = ()
    project: str = ""
    files: tuple[str, ...] = ()
    tools: tuple[ChosenTool, ...] = ()

    @property
    def title(self) -> str:
        """The name, or a title from the first question; empty without either."""
        questions = (*(turn.user for turn in self.turns[:1]), *(each.message for each in self.queued))
        return self.name or (_title(questions[0]) if questions else "")

    @property
    def changed(self) -> datetime:
        """The time of the last question."""
        return (self.turns[-1].versions[-1].asked if self.turns else None) or self.created

    @property
    def is_blank(self) -> bool:
        """Whether deleting the chat would lose nothing."""
        kept = self.turns or self.name or self.overrides or self.preset or self.queued or self.tools
        return not (kept or self.files or self.draft != NOTHING_WRITTEN)

    def turn(self, turn_id: str) -> Turn:
        """Returns the turn with this id. Raises `KeyError`."""
        return self.turns[self._index(turn_id)]

    def has(self, turn_id: str) -> bool:
        return any(turn.id == turn_id for turn in self.turns)

    def ask(self, turn_id: str, user: Message, asked: datetime | None = None) -> Conversation:
        """Returns the chat with a new, unanswered question."""
        return replace(self, turns=(*self.turns, Turn(turn_id, user, asked=asked)))

    def ask_again(
        self, turn_id: str, user: Message | None = None, asked: datetime | None = None
    ) -> Conversation:
        """Returns the chat with a new version of its last turn, with the question `user` if given."""
        last = self.turns[-1]
        again = last.asked_again(turn_id, user or last.user, asked)
        return self.with_turns((*self.turns[:-1], again))

    def show_version(self, turn_id: str, place: int) -> Conversation:
        """Returns the chat with another version of a turn displayed. Raises `KeyError` or `IndexError`."""
        index = self._index(turn_id)
        turn = self.turns[index].showing(place)
        chat = self.with_turns((*self.turns[:index], turn, *self.turns[index + 1 :]))
        finished = turn.answer.finished
        if finished is None or index + 1 < len(self.turns):
            return chat
        return chat.with_context(finished.stats.context_used_tokens)

    def edit_answer(
        self, turn_id: str, new_id: str, edits: Sequence[Edit], asked: datetime | None = None
    ) -> Conversation:
        """Returns the chat with a new version of the turn `turn_id`, `new_id`, whose answer is edited.

        It replaces a version that was edited and not continued since. Raises `KeyError`.
        """
        answer = self.turn(turn_id).answer
        edited = answer.with_tokens(with_edits(answer.tokens, edits))
        return self._with_version(turn_id, new_id, edited, asked, replaces=answer.status == "edited")

    def cut_answer(self, turn_id: str, new_id: str, end: int, asked: datetime | None = None) -> Conversation:
        """Returns the chat with a new version of the turn `turn_id`, `new_id`, whose answer is to be
        continued after the token that contains the character before offset `end`. Raises `KeyError`.
        """
        answer = self.turn(turn_id).answer
        tokens = cut_after(answer.tokens, end)
        return self._with_version(turn_id, new_id, answer.with_tokens(tokens), asked, replaces=False)

    def _with_version(
        self,
        turn_id: str,
        new_id: str,
        answer: Answer,
        asked: datetime | None,
        *,
        replaces: bool,
    ) -> Conversation:
        index = self._index(turn_id)
        turn = self.turns[index]
        turn = turn.with_version(new_id, answer, asked, replaces=replaces)
        return self.with_turns((*self.turns[:index], turn, *self.turns[index + 1 :]))

    def asking(self, turn_id: str, asked_of: AskedOf) -> Conversation:
        """Returns the chat with the model and settings of an answer's request."""
        return self.with_answer(turn_id, replace(self.turn(turn_id).answer, asked_of=asked_of))

    def offering(self, turn_id: str, tools: Sequence[str]) -> Conversation:
        """Returns the chat with the names of the functions that the model may call from now on."""
        answer = self.turn(turn_id).answer
        names = tuple(dict.fromkeys((*(call.name for call in answer.calls), *tools)))
        return self.with_answer(turn_id, replace(answer, tools=names)) if names != answer.tools else self

    def read(self, turn_id: str, reading: ReadingMap) -> Conversation:
        """Returns the chat with the reading map of an answer."""
        return self.with_answer(turn_id, replace(self.turn(turn_id).answer, reading=reading))

    def write(self, turn_id: str, tokens: Sequence[Token]) -> Conversation:
        """Returns the chat with `tokens` appended to an answer."""
        answer = self.turn(turn_id).answer
        return self.with_answer(turn_id, replace(answer, tokens=(*answer.tokens, *tokens), status="writing"))

    def finish(self, turn_id: str, finished: Finished) -> Conversation:
        """Returns the chat with an answer that the worker ended."""
        status: AnswerStatus = "stopped" if finished.reason == "cancelled" else "finished"
        answer = self.turn(turn_id).answer
        if answer.finished is not None:
            is_new = answer.calls and answer.finished.stats.tokens <= answer.last_generation
            finished = joined(answer.finished, finished, answer.begun_characters, new_prompt=bool(is_new))
        finished = _with_known_match(self.turn(turn_id), finished)
        answer = replace(answer, status=status, finished=finished, asked_of=None, note="")
        if finished.effective.reading == "dense":
            # The sparse prefill was abandoned for a dense one.
            answer = replace(answer, reading=None)
        ended = self.with_answer(turn_id, answer)
        return replace(ended, context_used_tokens=finished.stats.context_used_tokens)

    def cut_off(self, turn_id: str, note: str) -> Conversation:
        """Returns the chat with an answer ended by the worker's death. Its text stays."""
        return self._broken(turn_id, "cut_off", note)

    def fail(self, turn_id: str, note: str) -> Conversation:
        """Returns the chat with an answer ended by an error. Its text stays."""
        return self._broken(turn_id, "failed", note)

    def go_on(self, turn_id: str, model: str) -> Conversation:
        """Returns the chat with an ended answer running again, to be appended to by `model`."""
        answer = self.turn(turn_id).answer
        finished = answer.finished
        if finished is None and answer.asked_of is not None:
            finished = end_of(answer.tokens, answer.asked_of.model, answer.asked_of.settings)
        first, calls = answer.last_generation, answer.calls
        tokens = (*answer.tokens[:first], *to_go_on_from(answer.tokens[first:]))
        if answer.model != model:
            tokens, calls = _typed(answer)
            finished = end_of_edited(finished, tokens) if finished else None
        answer = replace(answer, tokens=tokens, status="writing", finished=finished, note="", calls=calls)
        return self.with_answer(turn_id, answer)

    def without(self, turn_id: str) -> Conversation:
        return replace(self, turns=tuple(turn for turn in self.turns if turn.id != turn_id))

    def without_turn(self, turn_id: str) -> Conversation:
        """Returns the chat without a question and its answer, in all versions. Raises `KeyError`.

        What follows stays; its passages of the question's attachments are left out. Without turns, the chat
        has no title either.
        """
        index = self._index(turn_id)
        turn, before, later = self.turns[index], self.turns[:index], self.turns[index + 1 :]
        first = sum(len(each.documents) for each in before)
        gone = range(first, first + len(turn.documents))
        chat = replace(self, turns=(*before, *(_without_sources(each, gone) for each in later)))
        used_tokens = _context_after(before)
        if later:
            used_tokens = max(0, self.context_used_tokens - _context_after((turn,)) + used_tokens)
        return replace(chat, context_used_tokens=used_tokens, name=self.name if chat.turns else "")

    def with_turn_of(self, before: Conversation, turn_id: str) -> Conversation:
        """Returns the chat with the turn back that was deleted from `before`, at its place.

        Later turns that have not changed since are as they were before.
        """
        after = before.without_turn(turn_id)
        index = before._index(turn_id)
        old = {each.id: (each, was) for each, was in zip(after.turns[index:], before.turns[index + 1 :])}
        count = len(before.turns[index].documents)
        first = sum(len(each.documents) for each in before.turns[:index])
        later = []
        for turn in self.turns[index:]:
            now, was = old.get(turn.id, (None, turn))
            later.append(was if turn == now else _with_sources(turn, first, count))
        chat = replace(self, turns=(*self.turns[:index], before.turns[index], *later))
        if self.turns == after.turns:
            chat = chat.with_context(before.context_used_tokens)
        return replace(chat, name=self.name or before.name)

    def with_turns(self, turns: tuple[Turn, ...]) -> Conversation:
        return replace(self, turns=turns)

    def with_context(self, used_tokens: int) -> Conversation:
        return replace(self, context_used_tokens=used_tokens)

    def renamed(self, name: str) -> Conversation:
        """Returns the chat with the title `name`; an empty name restores the title from the first
        question.
        """
        return replace(self, name=" ".join(name.split()))

    def with_preset(self, name: str) -> Conversation:
        """Returns the chat with this preset as the last chosen one; empty for none."""
        return replace(self, preset=name)

    @property
    def attachments(self) -> tuple[Attachment, ...]:
        """The documents of all versions of its turns, of the queued messages and of the draft."""
        versions = [version for turn in self.turns for version in turn.versions]
        unsent = [*(each.message for each in self.queued), self.draft]
        found = [
            each for version in versions for each in (*version.user.attachments, *version.answer.documents)
        ]
        return (*found, *(each for message in unsent for each in message.attachments))

    def with_draft(self, draft: Message, files: Sequence[str] = ()) -> Conversation:
        """Returns the chat with this draft, for which `files` are being read."""
        return replace(self, draft=draft, files=tuple(files))

    def with_queued(self, messages: Sequence[QueuedMessage]) -> Conversation:
        """Returns the chat with these queued messages, the next one first."""
        return replace(self, queued=tuple(messages))

    def with_overrides(self, overrides: Sequence[Override]) -> Conversation:
        return replace(self, overrides=tuple(overrides))

    def with_tools(self, tools: Sequence[ChosenTool]) -> Conversation:
        """Returns the chat with these tools for the model, each once."""
        return replace(self, tools=tuple(dict.fromkeys(tools)))

    def in_project(self, project_id: str) -> Conversation:
        return replace(self, project=project_id)

    def with_deleted(self, deleted: datetime | None) -> Conversation:
        """Returns the chat deleted at this time, or restored (None)."""
        return replace(self, deleted=deleted)

    def settled(self, note: str, *, keep_waiting: bool = False) -> Conversation:
        """Returns the chat with unfinished answers cut off, for the reason `note`.

        `keep_waiting`: calls that wait for permission still do. It is unknown whether running ones ran.
        """
        chat = self
        for turn in self.turns:
            if turn.answer.status == "calling":
                answer = turn.answer.with_calls_ended(
                    None if keep_waiting else strings.COPIED,
                    strings.CLOSED_MEANWHILE if keep_waiting else strings.COPIED,
                )
                if not answer.open_calls:
                    answer = replace(answer, status="stopped", note=note)
                chat = chat.with_answer(turn.id, answer)
            elif not turn.answer.over:
                chat = chat.cut_off(turn.id, note)
        return chat

    def upto(self, turn_id: str) -> tuple[Turn, ...]:
        """The turns up to and including `turn_id`."""
        return self.turns[: self._index(turn_id) + 1]

    def with_answer(self, turn_id: str, answer: Answer) -> Conversation:
        """Returns the chat with the answer of `turn_id` replaced."""
        index = self._index(turn_id)
        turn = replace(self.turns[index], answer=answer)
        return replace(self, turns=(*self.turns[:index], turn, *self.turns[index + 1 :]))

    def messages_before(self, turn_id: str) -> tuple[Message, ...]:
        """Returns the messages of the request for the newest generation of that answer."""
        turns = self.upto(turn_id)
        answer = turns[-1].answer
        begun = replace(answer, tokens=answer.tokens[: answer.last_generation])
        return self.with_turns((*turns[:-1], replace(turns[-1], answer=begun))).messages_for_request()

    def messages_until(self, turn_id: str = "") -> tuple[Message, ...]:
        """Returns the messages before the question of that turn; all, if it is empty."""
        turns = self.upto(turn_id)[:-1] if turn_id else self.turns
        return self.with_turns(turns).messages_for_request()

    def messages_for_request(self) -> tuple[Message, ...]:
        """Returns the messages of the next request: all questions and answers in turn.

        A question without an answer is joined to the following one, because chat templates require
        alternating roles.
        """
        messages: list[Message] = []
        for turn in self.turns:
            if messages and messages[-1].role == "user":
                messages[-1] = _join(messages[-1], turn.user)
            else:
                messages.append(turn.user)
            messages += turn.answer.messages
        return tuple(messages)

    def _broken(self, turn_id: str, status: AnswerStatus, note: str) -> Conversation:
        """Drops figures of an earlier part, which do not describe the current text."""
        answer = replace(self.turn(turn_id).answer, status=status, note=note, finished=None)
        return self.with_answer(turn_id, answer)

    def _index(self, turn_id: str) -> int:
        for index, turn in enumerate(self.turns):
            if turn.id == turn_id:
                return index
        raise KeyError(turn_id)


def _context_after(turns: Sequence[Turn]) -> int:
    """The used context after the last of `turns`; 0 if it is unknown."""
    finished = turns[-1].answer.finished if turns else None
    return finished.stats.context_used_tokens if finished else 0


def _without_sources(turn: Turn, gone: range) -> Turn:
    """`turn` without passages of the attachments `gone`, numbered without them."""
    return _renumbered(
        turn, lambda source: None if source in gone else source - len(gone) * (source >= gone.stop)
    )


def _with_sources(turn: Turn, first: int, count: int) -> Turn:
    """`turn`, numbered as if `count` attachments preceded number `first`."""
    return _renumbered(turn, lambda source: source + count * (source >= first))


def _renumbered(turn: Turn, number: Callable[[int], int | None]) -> Turn:
    """`turn` with other numbers of its passages' sources; without those passages that get none."""

    def passages(of: Sequence[Passage]) -> tuple[Passage, ...]:
        numbered = ((each, number(each.source)) for each in of)
        return tuple(replace(each, source=source) for each, source in numbered if source is not None)

    def answer(of: Answer) -> Answer:
        if of.reading is not None:
            of = replace(of, reading=replace(of.reading, passages=passages(of.reading.passages)))
        if of.finished is not None and of.finished.sources:
            of = replace(of, finished=replace(of.finished, sources=passages(of.finished.sources)))
        return of

    others = tuple(replace(each, answer=answer(each.answer)) for each in turn.others)
    changed = replace(turn, answer=answer(turn.answer), others=others)
    return turn if changed == turn else changed


def merged(messages: Sequence[Message]) -> Message:
    """Joins several user messages into one, in order, with each document and each image once."""
    joined = reduce(_join, messages)
    # Scans of as many pages have the same text: marks.
    once = {(each.text, each.scans and each.scans.hash): each for each in reversed(joined.attachments)}
    images = {each.hash: each for each in reversed(joined.images)}
    return replace(
        joined, attachments=tuple(reversed(once.values())), images=tuple(reversed(images.values()))
    )


# “Summarise the following text:”: what the person wants done with the text behind it.
_INSTRUCTION = re.compile(
    r"[^:\n]{0,120}\b(?:follow(?:ing|s)|below|th(?:is|ese)|folgend\w*|unten|dies\w*|suivante?s?|ci-dessous"
    r"|siguientes?|seguente?i?|abaixo)\b[^:\n]{0,80}:\s+",
    re.I,
)
_QUOTED = re.compile(
    r"(?:[ \t]*>[^\n]*+\n*+)+|[ \t]*(?P<fence>```|~~~).*?(?:\n[ \t]*(?P=fence)[^\n]*+\n?|$)", re.S
)
_QUOTE_MARKS = re.compile(r"^[ \t]*(?:>+|```.*|~~~.*)[ \t]?", re.M)
# Such a question has its subject in the passage.
_ABOUT_THE_PASSAGE = re.compile(
    r"\b(?:this|that|these|those|it|above|passage|text|das|dies\w*|cela|esto)\b", re.I
)
_PASSAGE_CHARACTERS = 400
_QUESTION_CHARACTERS = 160
_LEAST_WORDS = 3


def _topic(content: str) -> str:
    """The part of a question that names its subject: without an instruction about the text that follows, and
    without pasted passages before it, unless the question only points at them.
    """
    if (found := _INSTRUCTION.match(content)) and content[found.end() :].strip():
        content = content[found.end() :]
    if found := _QUOTED.match(content):
        behind = content[found.end() :].strip()
        names = len(behind.split()) >= _LEAST_WORDS and not _ABOUT_THE_PASSAGE.search(behind)
        return behind if names else _QUOTE_MARKS.sub("", content)
    passages, _, last = content.rstrip().rpartition("\n\n")
    long = len(passages) >= _PASSAGE_CHARACTERS and len(last) <= _QUESTION_CHARACTERS
    asks = last.endswith(("?", "？")) and len(last.split()) >= _LEAST_WORDS
    return last if long and asks and not _ABOUT_THE_PASSAGE.search(last) else content


def _title(message: Message) -> str:
    words = " ".join(_topic(message.content).split())
    if not words and (names := attached_names(message)):
        words = names[0]
    if len(words) <= TITLE_CHARACTERS:
        return words
    head = words[:TITLE_CHARACTERS]
    space = head.rfind(" ")
    # A single word as long as the title is cut inside.
    return (head[:space] if space >= TITLE_CHARACTERS // 2 else head).rstrip(" ,;:.") + "…"


def _join(first: Message, second: Message) -> Message:
    content = "\n\n".join(text for text in (first.content, second.content) if text)
    before = len(content) - len(second.content)
    images = (*first.images, *(replace(each, at=each.at + before) for each in second.images))
    return Message("user", content, (*first.attachments, *second.attachments), images=images)


class Document(Struct, frozen=True):
    """An attachment of a chat, or a long result of a tool. `index` is its number in its turn, `source` over
    all messages, from 0, as the worker counts: each request has all questions and results of the chat.
    `reading` is its reading map, None if all of it was read. `images` are its pages without text that the
    model got as images, in their order.

    A map without a passage of this document means that none of it was read. `answered_by` is the turn for
    whose answer the map was made; it includes what earlier answers read.
    """

    turn_id: str
    index: int
    source: int
    attachment: Attachment
    reading: ReadingMap | None = None
    answered_by: str = ""
    images: tuple[Image, ...] = ()


def documents(chat: Conversation, upto: str = "") -> tuple[Document, ...]:
    """Returns the documents in order, as read for the answer of the turn `upto` (empty: the last)."""
    newest: dict[int, tuple[str, ReadingMap]] = {}
    pages: dict[str, dict[int, Image]] = {}  # by the hash of the file and the number
    sources = 0
    for turn in chat.upto(upto) if upto else chat.turns:
        for image in turn.user.images:
            pages.setdefault(image.scan, {})[image.page] = image
        own = range(sources, sources + len(turn.documents))
        sources = own.stop
        if turn.answer.reading is not None:
            on_map = {passage.source for passage in turn.answer.reading.passages}
            for source in on_map | set(own):
                newest[source] = (turn.id, turn.answer.reading)
        elif turn.answer.finished is not None and not turn.answer.finished.stats.skipped_tokens:
            newest.clear()  # the whole prompt has been read since
    found: list[Document] = []
    for turn in chat.turns:
        for index, attachment in enumerate(turn.documents):
            source = len(found)
            answered_by, reading = newest.get(source, ("", None))
            seen = pages.get(attachment.scans.hash, {}) if attachment.scans else {}
            images = tuple(seen[number] for number in sorted(seen))
            found.append(Document(turn.id, index, source, attachment, reading, answered_by, images))
    return tuple(found)
