"""Rehearsal: a model answers prompts, and its answers become a table, in small steps.

`work()` is a generator: each `next` is one forward pass or one step of counting, so it can be paused or
abandoned after each step. Finished answers are on disk; only unfinished ones are lost. A new run skips
answered prompts. Answers of the same model from another machine (`tests.tuning.streams`) are copied to
the records. MLX's thread only.
"""

from __future__ import annotations

import argparse
from collections import deque
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
from mlx_lm.generate import BatchGenerator, generate_step
from msgspec import Struct
from numpy.typing import NDArray

from core.errors import BrokenLogitsError
from core.events import Message
from core.models.loader import LoadedModel, load
from core.models.runtime import prepare
from core.prompt import render
from core.system.terminal import ProgressLine
from core.tables.prebuilt import GRAMS, save_grams
from tests.tuning.gram_count import GramCounter, Pruning
from tests.tuning.streams import (
    AnswerIds,
    Records,
    RehearsedConversation,
    Stream,
    default_conversations,
    prompt_key,
    read_conversations,
    read_records,
    save_ids,
    shipped_ids,
    write_streams,
)


class RehearsalPlan(Struct, frozen=True):
    """`records`: the file of answers. `table`: the table built from it.

    `max_tokens` limits an answer, `most_tokens` all of them (0: no limit). `batch`: concurrent answers. A
    step reads at most `chunk_tokens` of a prompt. The table is written at the end, and after every
    `table_every_tokens` answered tokens unless 0.
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
    """Progress: `answered` of `prompts`, with `tokens` in all answers. `contexts`: size of the table, once
    built.
    """

    answered: int
    prompts: int
    tokens: int
    contexts: int = 0


class _Turn(Struct, frozen=True):
    conversation: RehearsedConversation
    messages: tuple[Message, ...]
    ids: tuple[int, ...]


class Rehearsal:
    """Rehearses one model with `conversations`. `begun`: its answers from another machine."""

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
            new_tokens = progress.tokens - self._taken_tokens
            if every and new_tokens >= (due := due or _next(new_tokens, every)):
                yield from self.make_table()
                due = _next(new_tokens, every)
        if self._new or not self._plan.table.exists():
            yield from self.make_table()

    def answer(self) -> Generator[Progress, None, None]:
        """Answers the remaining prompts; yields a `Progress` after each piece."""
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
        """Counts the recorded answers and writes the table, if there are any answers."""
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
        """Queues the first turn of `held`, from `messages` on, that has no answer yet."""
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
            return  # too long for this model
        self._asked += 1
        key = self._asked
        self._turns[key] = _Turn(held, messages, ids)
        answers.queue(key, ids)

    def _take(self, records: Records, held: RehearsedConversation, ids: tuple[int, ...]) -> list[int] | None:
        """The answer to `ids` from another machine, copied to the records."""
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


# ---- concurrent greedy answers, one step per call
#
# A forward pass of sixteen rows costs about twice that of one, so a batch is several times faster than
# single prompts. Rows join and leave as answers end (mlx-lm's continuous batching). A model whose cache
# cannot be batched answers one prompt at a time.
#
# The most probable ids at each position are kept with their probabilities, because a table is counted from
# them: they say more than the best id alone.
#
# MLX's thread only. Dropping the object loses unfinished answers only.


# Ids kept per position: those after the eighth have under a tenth of the probability almost everywhere.
TOP = 8


class Answered(Struct, frozen=True):
    """One answer. `out` ends with the stop id, unless it was truncated.

    `tops[i]` are the model's most probable ids at the position of `out[i]`, best first, and `shares[i]` their
    probabilities.
    """

    key: int
    prompt: list[int]
    out: list[int]
    tops: list[list[int]]
    shares: list[list[float]]


class _Growing(Struct):
    key: int
    prompt: list[int]
    out: list[int] = []
    tops: list[list[int]] = []
    shares: list[list[float]] = []

    def add(self, token: int, log_probabilities: NDArray[np.float32]) -> None:
        ids, shares = likeliest(log_probabilities)
        self.out.append(token)
        self.tops.append(ids)
        self.shares.append(shares)

    def done(self) -> Answered:
        return Answered(self.key, self.prompt, self.out, self.tops, self.shares)


class GreedyAnswers:
    """`queue` prompts, then call `step` until `busy` is False.

    `batch`: answers under way at once. `chunk_tokens`: prompt tokens of a row that one step reads.
    """

    def __init__(self, loaded: LoadedModel, *, batch: int, max_tokens: int, chunk_tokens: int = 512) -> None:
        self._loaded = loaded
        self._max_tokens = max_tokens
        self._chunk_tokens = chunk_tokens
        self._rows: dict[int, _Growing] = {}
        self._waiting: deque[_Growing] = deque()
        self._single: Generator[tuple[Any, Any], None, None] | None = None
        self._batch: BatchGenerator | None = None
        if batch > 1 and all(hasattr(entry, "merge") for entry in loaded.new_cache()):
            self._batch = BatchGenerator(
                loaded.model,
                max_tokens=max_tokens,
                stop_tokens=[[stop] for stop in loaded.eos],
                completion_batch_size=batch,
                prefill_batch_size=min(4, batch),
                prefill_step_size=chunk_tokens,
            )

    @property
    def waiting(self) -> int:
        """Number of queued and running prompts."""
        return len(self._rows) + len(self._waiting)

    @property
    def busy(self) -> bool:
        return self.waiting > 0

    def queue(self, key: int, prompt: Sequence[int]) -> None:
        """Queues a prompt of at least one id. `key` is returned with its answer."""
        row = _Growing(key, list(prompt))
        if self._batch is None:
            self._waiting.append(row)
        else:
            (uid,) = self._batch.insert([row.prompt])
            self._rows[uid] = row

    def step(self) -> list[Answered]:
        """Runs one or two forward passes; returns the answers that ended. Raises `BrokenLogitsError`."""
        return self._step_single() if self._batch is None else self._step_batch(self._batch)

    def close(self) -> None:
        if self._batch is not None:
            self._batch.close()
        self._rows, self._single = {}, None
        self._waiting.clear()

    def _step_batch(self, batch: BatchGenerator) -> list[Answered]:
        ended = []
        for response in batch.next()[1]:
            row = self._rows[response.uid]
            row.add(int(response.token), _log_probabilities(response.logprobs))
            if response.finish_reason is not None:
                ended.append(self._rows.pop(response.uid).done())
        return ended

    def _step_single(self) -> list[Answered]:
        if not self._waiting:
            return []
        row = self._waiting[0]
        if self._single is None:
            self._single = generate_step(
                mx.array(row.prompt),
                self._loaded.model,
                max_tokens=self._max_tokens,
                prompt_cache=self._loaded.new_cache(),
                prefill_step_size=self._chunk_tokens,
            )
        token, log_probabilities = next(self._single)
        row.add(int(token), _log_probabilities(log_probabilities))
        if len(row.out) < self._max_tokens and row.out[-1] not in self._loaded.eos:
            return []
        self._single = None
        return [self._waiting.popleft().done()]


def likeliest(log_probabilities: NDArray[np.float32]) -> tuple[list[int], list[float]]:
    """The `TOP` likeliest ids of one row and their probabilities, best first, rounded to 1e-4."""
    few = min(TOP, len(log_probabilities))
    best = np.argpartition(log_probabilities, -few)[-few:]
    best = best[np.argsort(-log_probabilities[best], kind="stable")]
    return best.tolist(), [round(float(share), 4) for share in np.exp(log_probabilities[best])]


def _log_probabilities(row: mx.array) -> NDArray[np.float32]:
    """Log-probabilities of a row. Raises `BrokenLogitsError` if its logits are not numbers."""
    found = np.array(row.astype(mx.float32))
    if np.isnan(found).any():
        raise BrokenLogitsError
    return found


def run(options: argparse.Namespace) -> int:
    """Answers the prompts and writes `answers.jsonl`, `streams.jsonl.gz`, the table and
    `model.answers.xz`.

    The same command continues after Ctrl-C.
    """
    prepare()
    conversations = read_conversations(options.prompts or default_conversations())
    loaded = load(options.model)
    records, table = options.out / "answers.jsonl", options.out / f"model{GRAMS.suffix}"
    plan = RehearsalPlan(
        records,
        table,
        batch=options.batch,
        max_tokens=options.max_tokens,
        most_tokens=options.tokens,
        pruning=Pruning(most_bytes=options.kbytes * 1024),
    )
    rehearsal = Rehearsal(loaded, conversations, plan, shipped_ids(loaded.info))
    line = ProgressLine(options.quiet)
    try:
        for progress in rehearsal.answer():
            line.say(f"{progress.answered:,} of {progress.prompts:,} answers, {progress.tokens:,} tokens")
    except KeyboardInterrupt:
        return 130
    finally:
        line.clear()
    done = [rehearsal.progress(), *rehearsal.make_table()][-1]
    write_streams(options.out / "streams.jsonl.gz", read_records(records))
    kept = save_ids(options.out / "model.answers.xz", read_records(records), loaded.info)
    print(f"{table}: {done.contexts:,} contexts from {len(kept.answers):,} answers, {kept.tokens:,} tokens")
    return 0
