"""Rehearsal: a model answers prompts and its answers become a table, one small piece a call.

`work()` is a generator: each `next` is one forward pass, or one step of counting, so whoever runs
it can stop for good or for a while after any piece. What was answered is on disk by then; only
answers under way are lost. Started again, it passes over what is answered already; what this model
said when it rehearsed elsewhere (`core.rehearsal.answer_ids`) is written to the records as if it had
been said here.

MLX's thread only. Knows no settings and no command line.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from pathlib import Path

from msgspec import Struct

from core.events import Message
from core.models.loader import LoadedModel
from core.models.prompt import render
from core.rehearsal.answer_ids import AnswerIds, prompt_key
from core.rehearsal.answers import Answered, GreedyAnswers
from core.rehearsal.conversations import RehearsedConversation
from core.rehearsal.records import Records, read_records
from core.rehearsal.streams import Stream
from core.tables.gram_count import GramCounter, Pruning
from core.tables.prebuilt_files import save_grams


class RehearsalPlan(Struct, frozen=True):
    """`records` is the file of answers, `table` what is made of it.

    `max_tokens` bounds an answer, `most_tokens` all of them (0: no bound). `batch` answers are
    under way at once; a step reads at most `chunk_tokens` of a prompt. The table is written at the
    end, and each time `table_every_tokens` more are answered here, unless that is 0.
    """

    records: Path
    table: Path
    batch: int = 16
    max_tokens: int = 200
    most_tokens: int = 0
    chunk_tokens: int = 512
    table_every_tokens: int = 0
    pruning: Pruning = Pruning()


class Progress(Struct, frozen=True):
    """`answered` of `prompts` are done, with `tokens` in all; `contexts` are in the table once it is made."""

    answered: int
    prompts: int
    tokens: int
    contexts: int = 0


class _Turn(Struct, frozen=True):
    conversation: RehearsedConversation
    messages: tuple[Message, ...]
    ids: tuple[int, ...]


class Rehearsal:
    """Of one model over `conversations`. `begun` is what it said elsewhere."""

    def __init__(
        self,
        loaded: LoadedModel,
        conversations: Sequence[RehearsedConversation],
        plan: RehearsalPlan,
        begun: AnswerIds | None = None,
    ) -> None:
        self._loaded = loaded
        self._begun = begun.answers if begun else {}
        self._conversations = conversations
        self._plan = plan
        self._done: dict[tuple[int, ...], list[int]] = {}
        self._turns: dict[int, _Turn] = {}
        self._prompts = sum(1 + len(conversation.then) for conversation in conversations)
        self._asked = self._answered = self._tokens = self._taken_tokens = self._new = 0

    def work(self) -> Generator[Progress, None, None]:
        """Answer, then count and write the table. Raises `TableError`."""
        every, due = self._plan.table_every_tokens, 0
        for progress in self.answer():
            yield progress
            said_here = progress.tokens - self._taken_tokens
            if every and said_here >= (due := due or _next(said_here, every)):
                yield from self.make_table()
                due = _next(said_here, every)
        if self._new or not self._plan.table.exists():
            yield from self.make_table()

    def answer(self) -> Generator[Progress, None, None]:
        """Everything that is not answered yet; a progress after each piece."""
        plan = self._plan
        answers = GreedyAnswers(
            self._loaded, batch=plan.batch, max_tokens=plan.max_tokens, chunk_tokens=plan.chunk_tokens
        )
        with Records(plan.records) as records:
            for stream in records:
                self._done[tuple(stream.prompt)] = stream.out
                self._tokens += len(stream.out)
            waiting = iter(self._conversations)
            try:
                while not self._enough():
                    while not self._enough() and answers.waiting < plan.batch:
                        held = next(waiting, None)
                        if held is None:
                            break
                        before = self._answered
                        self._ask(answers, records, held, (Message("user", held.prompt),))
                        if self._answered > before:
                            yield self.progress()
                    if not answers.busy:
                        break
                    for answered in answers.step():
                        self._keep(answers, records, answered)
                    yield self.progress()
            finally:
                answers.close()

    def make_table(self) -> Generator[Progress, None, None]:
        """Count what was answered so far and write the table, if there is anything."""
        plan = self._plan
        counter = GramCounter(plan.pruning.highest_order)
        for stream in read_records(plan.records):
            counter.add(stream.prompt, stream.out, stream.tops, stream.shares)
        if not counter.positions:
            return
        pieces = counter.pieces(plan.pruning)
        while True:
            try:
                next(pieces)
            except StopIteration as done:
                table = done.value
                break
            yield self.progress()
        info = self._loaded.info
        learned_from = f"{counter.positions:,} places in answers of {info.name}"
        save_grams(
            table, plan.table, family=info.family, family_name=info.family_name, learned_from=learned_from
        )
        yield self.progress(len(table))

    def progress(self, contexts: int = 0) -> Progress:
        """Where it stands."""
        return Progress(self._answered, self._prompts, self._tokens, contexts)

    def _enough(self) -> bool:
        return 0 < self._plan.most_tokens <= self._tokens

    def _ask(
        self,
        answers: GreedyAnswers,
        records: Records,
        held: RehearsedConversation,
        messages: tuple[Message, ...],
    ) -> None:
        """Queue the first turn of `held`, from `messages` on, that has no answer yet."""
        while True:
            ids = tuple(render(self._loaded.tokenizer, messages).ids)
            if not self._loaded.has_rows(ids):
                break
            out = self._done.get(ids)
            if out is None:
                out = self._take(records, held, ids)
            if out is None:
                break
            self._answered += 1
            asked = sum(message.role == "user" for message in messages)
            if asked > len(held.then):
                return
            messages = (
                *messages,
                Message("assistant", self._text(out)),
                Message("user", held.then[asked - 1]),
            )
        if len(ids) + self._plan.max_tokens >= self._loaded.info.context_tokens:
            self._answered += 1 + len(held.then) - sum(m.role == "assistant" for m in messages)
            return  # it does not fit this model
        self._asked += 1
        key = self._asked
        self._turns[key] = _Turn(held, messages, ids)
        answers.ask(key, ids)

    def _take(self, records: Records, held: RehearsedConversation, ids: tuple[int, ...]) -> list[int] | None:
        """What was said to `ids` elsewhere, now in the records, too."""
        out = self._begun.get(prompt_key(ids))
        if out is not None:
            records.add(Stream(list(ids), out, held.kind))
            self._done[ids] = out
            self._tokens += len(out)
            self._taken_tokens += len(out)
        return out

    def _keep(self, answers: GreedyAnswers, records: Records, answered: Answered) -> None:
        turn = self._turns.pop(answered.key)
        records.add(
            Stream(answered.prompt, answered.out, turn.conversation.kind, answered.tops, answered.shares)
        )
        self._done[turn.ids] = answered.out
        self._tokens += len(answered.out)
        self._new += 1
        self._ask(answers, records, turn.conversation, turn.messages)

    def _text(self, out: Sequence[int]) -> str:
        stops = self._loaded.eos
        return (
            str(self._loaded.tokenizer.decode([token for token in out if token not in stops])).strip() or "…"
        )


def _next(tokens: int, every: int) -> int:
    """The first multiple of `every` above `tokens`."""
    return (tokens // every + 1) * every
