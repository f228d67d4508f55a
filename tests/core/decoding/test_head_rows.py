"""Rows of a head: each has its token and the model's state before it, however a chat was read and drafted.

The head of these tests keeps in its cache what it was given, so that each row can be looked at.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import mlx.core as mx
import mlx.nn as nn
import numpy as np
import pytest
from mlx_lm.models.cache import KVCache, make_prompt_cache

from core.decoding.heads import HeadProposer
from core.drafting.draft_model import NO_PROPOSAL, Proposal
from core.events import FIRST_IMAGE_ROW
from core.heads.draft_head import DraftHead
from core.kv.cached_sequence import CachedSequence
from core.models.parts import SplitModel, split
from core.prefill.read import read_kept, read_prompt
from tests.core.architectures import tiny
from tests.core.toy import toy_model, toy_sequence

VOCABULARY = 260
LOGITS = 40
COLUMNS = mx.array([VOCABULARY - 1 - 3 * at for at in range(LOGITS)])
_MIX = mx.random.normal((LOGITS, 32), key=mx.random.key(1))


@pytest.fixture(scope="module")
def model() -> Any:
    return toy_model()


@pytest.fixture(scope="module")
def parts(model: Any) -> SplitModel:
    found = split(model)
    assert found is not None
    return found


def step(ids: mx.array, states: mx.array, cache: Sequence[Any]) -> tuple[mx.array, mx.array]:
    """Appends the tokens and the states to the cache; what it returns depends on both."""
    rows = mx.concatenate([ids[..., None].astype(mx.float32), states], axis=-1)[:, None]
    cache[0].update_and_fetch(rows, rows)
    return states + ids[..., None] / 50, states * 0.5 + mx.sin(ids[..., None].astype(mx.float32))


def output(hidden: mx.array) -> tuple[mx.array, mx.array | None]:
    return hidden @ _MIX.T, COLUMNS


def block(ids: mx.array, states: mx.array, cache: Sequence[Any], count: int) -> mx.array:
    """Guesses that depend on their number."""
    hidden, _ = step(ids, states, cache)
    return mx.concatenate([(hidden * (1 + at)) @ _MIX.T for at in range(count)], axis=1)


def head_of(parts: SplitModel, **changes: Any) -> DraftHead:
    given = {"step": step, "output": output, "new_cache": lambda: [KVCache()], **changes}
    return DraftHead(nn.Linear(3, 5, bias=False), parts, **given)


def words(rng: random.Random, count: int) -> list[int]:
    return [rng.randrange(4, VOCABULARY) for _ in range(count)]


def states_of(parts: SplitModel, ids: Sequence[int]) -> mx.array:
    """Of one pass over the text, [n, width]."""
    return parts.read(mx.array(list(ids))[None], make_prompt_cache(parts.model))[1][0]


def take(proposer: HeadProposer, sequence: CachedSequence, context: list[int], tokens: Sequence[int]) -> None:
    """The model reads `tokens`, the next of `context`, as the decode loop has it read them."""
    at = len(sequence.tokens)
    _, states = proposer.read(mx.array(list(tokens))[None], sequence.cache)
    sequence.settle()
    sequence.append(tokens)
    proposer.receive(range(at, at + len(tokens)), tokens, states)
    assert context[at : at + len(tokens)] == [*tokens]


def assert_rows(sequence: CachedSequence, parts: SplitModel, context: Sequence[int], end: int) -> None:
    """The head has a row of each token but the first, up to `end`."""
    own = sequence.head
    assert own is not None
    places = own.columns.places(0, own.columns.count).tolist()
    assert places == list(range(1, end))
    rows = own.cache[0].keys[0, 0, : own.cache[0].offset]  # type: ignore[attr-defined]
    assert len(rows) == len(places)
    assert rows[:, 0].tolist() == [context[at] for at in places]
    states = states_of(parts, context)
    assert mx.allclose(rows[:, 1:], states[: end - 1], atol=1e-3)


def guesses(parts: SplitModel, context: Sequence[int], count: int, *, whole_block: bool = False) -> Proposal:
    """What follows `context`, one guess after the other."""
    state, token = states_of(parts, context[:-1])[-1:][None], mx.array([[context[-1]]])
    found, likely, second = list[int](), list[float](), (0, 0.0)
    rows = block(token, state, [KVCache()], count)[0] if whole_block else None
    for depth in range(count):
        if rows is None:
            hidden, state = step(token, state, [KVCache()])
            row = output(hidden)[0][0, 0]
        else:
            row = rows[depth]
        chances = np.array(mx.softmax(row))
        best, other = np.argsort(-chances, kind="stable")[:2].tolist()
        names = range(LOGITS) if rows is not None else COLUMNS.tolist()  # type: ignore[union-attr]
        ids = list(names)  # type: ignore[call-overload]
        found.append(ids[best])
        likely.append(float(chances[best]))
        if not depth:
            second = (ids[other], float(chances[other]))
        token = mx.array([[ids[best]]])
    return Proposal(found, likely, *second)


def assert_guesses(got: Proposal, expected: Proposal) -> None:
    assert (got.tokens, got.second) == (expected.tokens, expected.second)
    assert got.probabilities == pytest.approx(expected.probabilities, rel=1e-3)
    assert got.second_probability == pytest.approx(expected.second_probability, rel=1e-3)


@pytest.mark.parametrize("kind", ["steps", "block"])
@pytest.mark.parametrize("seed", range(2))
def test_rows_and_guesses_are_those_of_the_text(model: Any, parts: SplitModel, seed: int, kind: str) -> None:
    rng = random.Random(seed)
    proposer = HeadProposer(head_of(parts, block=block if kind == "block" else None))
    sequence, context = toy_sequence(model), words(rng, rng.randint(2, 150))
    for turn in range(3):
        chunk = rng.choice((3, 16, 64, 100))
        for _ in read_prompt(model, sequence, context, chunk_tokens=chunk, states=proposer):
            pass
        for _ in range(4):
            count = rng.randint(1, 5)
            got = proposer.propose(context, count)
            assert_guesses(got, guesses(parts, context, count, whole_block=kind == "block"))
            assert_rows(sequence, parts, context, len(context))
            assert proposer.propose(context, count) == got  # its rows are no longer there
            more = [context[-1], *words(rng, rng.randint(0, 3))]
            context += more[1:]
            take(proposer, sequence, context, more)
            context += words(rng, 1)
        proposer.end()
        assert_rows(sequence, parts, context, len(context) - 1)
        # The next turn leaves the text anywhere before its end, or continues it.
        cut = len(context) - 1 if not turn else rng.randint(1, len(context) - 1)
        context = [*context[:cut], *words(rng, rng.randint(2, 40))]
        sequence.reuse(context)


def test_a_prompt_that_is_known_completely_has_its_newest_state_read_again(
    model: Any, parts: SplitModel
) -> None:
    """The state before the next token went with what followed it; the head keeps its rows."""
    rng = random.Random(1)
    proposer, sequence, context = HeadProposer(head_of(parts)), toy_sequence(model), words(rng, 40)
    for _ in read_prompt(model, sequence, context, chunk_tokens=16, states=proposer):
        pass
    proposer.end()
    shorter = context[:20]
    sequence.reuse(shorter)
    proposer.begin(sequence, shorter)
    assert sequence.tokens == shorter[:-2]
    assert len(sequence.head.tokens) == len(shorter) - 1  # type: ignore[union-attr]
    take(proposer, sequence, shorter, shorter[-2:-1])
    assert_guesses(proposer.propose(shorter, 3), guesses(parts, shorter, 3))
    assert_rows(sequence, parts, shorter, len(shorter))
    # Not of one token, which has no state before it.
    sequence.reuse(context[:2])
    proposer.begin(sequence, context[:2])
    assert sequence.tokens == context[:1]


def test_another_context_or_head_drops_rows_and_states(model: Any, parts: SplitModel, tmp_path: Path) -> None:
    rng = random.Random(2)
    file = tmp_path / "head"
    file.write_text("weights")
    proposer, sequence, context = (
        HeadProposer(head_of(parts, source=str(file))),
        toy_sequence(model),
        words(rng, 30),
    )
    for _ in read_prompt(model, sequence, context, chunk_tokens=16, states=proposer):
        pass
    proposer.propose(context, 1)
    other = [*context[:10], *words(rng, 5)]
    proposer.begin(sequence, other)
    assert len(sequence.head.tokens) == 10  # type: ignore[union-attr]
    assert sequence.state is not None
    # The same head continues; one whose file was changed does not.
    assert HeadProposer(head_of(parts, source=str(file))).identity == proposer.identity
    file.write_text("other weights")
    changed = HeadProposer(head_of(parts, source=str(file)))
    assert changed.identity != proposer.identity
    assert str(file) in changed.identity
    changed.begin(sequence, context)
    assert sequence.head is not None
    assert sequence.head.tokens == []
    assert sequence.state is None
    gone = tmp_path / "gone"
    assert HeadProposer(head_of(parts, source=str(gone))).identity == str(gone)
    assert proposer.nbytes == 3 * 5 * 4


def test_nothing_is_guessed_without_the_state_before_the_newest_token(model: Any, parts: SplitModel) -> None:
    rng = random.Random(3)
    proposer, sequence, context = HeadProposer(head_of(parts)), toy_sequence(model), words(rng, 30)
    assert proposer.propose(context, 3) == NO_PROPOSAL
    proposer.receive([0], [7], mx.zeros((1, 32)))  # no answer has begun
    assert sequence.state is None
    for _ in read_prompt(model, sequence, context, chunk_tokens=16, states=proposer):
        pass
    assert proposer.propose(context, 0) == NO_PROPOSAL
    assert proposer.propose(context[:-1], 3) == NO_PROPOSAL
    assert proposer.propose([*context, 9], 3) == NO_PROPOSAL
    assert len(proposer.propose(context, 1).tokens) == 1
    sequence.state = None
    assert proposer.propose(context, 3) == NO_PROPOSAL
    proposer.end()
    assert proposer.propose(context, 3) == NO_PROPOSAL


def test_a_state_of_another_token_is_not_used_for_a_row(model: Any, parts: SplitModel) -> None:
    """After tokens that were read without the head, the first new row is left out."""
    rng = random.Random(4)
    proposer, sequence, context = HeadProposer(head_of(parts)), toy_sequence(model), words(rng, 40)
    for _ in read_prompt(model, sequence, context[:21], chunk_tokens=16):
        pass
    for _ in read_prompt(model, sequence, context, chunk_tokens=16, states=proposer):
        pass
    proposer.propose(context, 1)
    own = sequence.head
    assert own is not None
    assert own.columns.places(0, own.columns.count).tolist() == [*range(21, 40)]
    rows = own.cache[0].keys[0, 0, : own.cache[0].offset]  # type: ignore[attr-defined]
    assert mx.allclose(rows[:, 1:], states_of(parts, context)[20:39], atol=1e-3)


def test_rows_of_skipped_tokens_are_left_out(model: Any, parts: SplitModel) -> None:
    """The row after a gap has the state of the last token that was read before it."""
    rng = random.Random(5)
    proposer, sequence, context = HeadProposer(head_of(parts)), toy_sequence(model), words(rng, 60)
    kept = np.array([*range(12), *range(30, 47), *range(50, 59)], np.int32)
    for _ in read_kept(model, sequence, context, kept, chunk_tokens=8, states=proposer):
        pass
    got = proposer.propose(context, 2)
    own = sequence.head
    assert own is not None
    assert own.columns.places(0, own.columns.count).tolist() == [*kept[1:].tolist(), 59]
    ids = [context[at] for at in kept.tolist()]
    states = states_of(parts, ids)
    rows = own.cache[0].keys[0, 0, : own.cache[0].offset]  # type: ignore[attr-defined]
    assert rows[:, 0].tolist() == [*ids[1:], context[-1]]
    assert mx.allclose(rows[:, 1:], states, atol=1e-3)
    assert_guesses(got, guesses(parts, [*ids, context[-1]], 2))


def test_rows_of_images_have_no_token(model: Any, parts: SplitModel) -> None:
    """The drafter's context lacks them, the head's positions count them."""
    rng = random.Random(6)
    proposer, sequence = HeadProposer(head_of(parts)), toy_sequence(model)
    text = words(rng, 9)
    context = [*text[:4], FIRST_IMAGE_ROW, FIRST_IMAGE_ROW + 1, *text[4:]]
    proposer.begin(sequence, context)
    states = mx.random.normal((10, 32), key=mx.random.key(3))
    model(mx.array([[5] * 10]), cache=sequence.cache)
    sequence.append(context[:-1])
    proposer.receive(range(10), context[:-1], states)
    got = proposer.propose(text, 1)
    assert len(got.tokens) == 1
    own = sequence.head
    assert own is not None
    rows = own.cache[0].keys[0, 0, : own.cache[0].offset]  # type: ignore[attr-defined]
    assert rows[:, 0].tolist() == [*text[1:4], 0, 0, *text[4:]]
    assert mx.allclose(rows[:, 1:], states, atol=1e-5)


def test_a_head_without_rows_reads_the_models_cache(model: Any, parts: SplitModel) -> None:
    seen: list[int] = []

    def looking(ids: mx.array, states: mx.array, cache: Sequence[Any]) -> tuple[mx.array, mx.array]:
        seen.append(cache[0].offset)
        return step(ids, states, [KVCache()])

    rng = random.Random(7)
    proposer = HeadProposer(head_of(parts, new_cache=None, step=looking))
    sequence, context = toy_sequence(model), words(rng, 200)
    for _ in read_prompt(model, sequence, context, chunk_tokens=90, states=proposer):
        pass
    assert sequence.head is None
    assert_guesses(proposer.propose(context, 3), guesses(parts, context, 3))
    assert seen == [199] * 3
    assert sequence.cache[0].offset == 199  # type: ignore[attr-defined]
    proposer.end()


def test_a_recurrent_model_keeps_its_newest_state(parts: SplitModel) -> None:
    """It cannot return by a token, so nothing is read again; there is no guess before the next one."""
    model: Any = tiny("qwen3_5")
    found = split(model)
    assert found is not None
    rng = random.Random(8)
    sequence, context = CachedSequence(lambda: make_prompt_cache(model)), words(rng, 40)
    proposer = HeadProposer(head_of(found))
    for _ in read_prompt(model, sequence, context, chunk_tokens=16, states=proposer, snapshots=[20, 39]):
        pass
    proposer.end()
    shorter = [*context[:20], *words(rng, 8)]
    sequence.reuse(shorter)
    proposer.begin(sequence, shorter)
    assert sequence.tokens == shorter[:20]
    assert sequence.state is not None
    assert sequence.state[0] == 19
