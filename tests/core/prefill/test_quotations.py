"""Later questions of a chat: what is quoted before them, and which columns of earlier text they attend to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer
from msgspec.structs import replace

from core.kv.positions import Columns
from core.prefill.layout import Passages
from core.prefill.plan import (
    CHOSEN_COLUMNS,
    OF_BEGUN,
    Preference,
    excerpt,
    to_quote,
)
from core.prefill.read import read_prompt
from core.prefill.scorers import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep
from core.settings.prefill import Prefill
from tests.core.prefill.readings import (
    ABOUT_THE_OTTER,
    ABOUT_THE_WALRUS,
    AUTO,
    DENSE,
    DOCUMENT,
    SAID,
    SPARSE,
    Measured,
    Read,
    answer_to,
    asked,
    failing,
    read,
)

COLUMNS = Preference(True, True, "by a test")
NO_COLUMNS = Preference(True, False, "by a test")


@pytest.fixture(scope="module")
def tokenizer(toy_folder: Path) -> TokenizerWrapper:
    return load_tokenizer(toy_folder)


def two_turns(
    tokenizer: TokenizerWrapper,
    second: str,
    first: dict[str, object] = SPARSE,
    settings: dict[str, object] = AUTO,
    **parts: Any,
) -> tuple[Read, Read]:
    """A question about the walrus, and `second` after its answer."""
    before = asked(ABOUT_THE_WALRUS)
    one = read(answer_to(tokenizer, before, first))
    answer = answer_to(tokenizer, asked(second, *before, SAID), settings, one.answer.sequence)
    return one, read(answer, **parts)


# ---- quotations


@hypothesis_settings(max_examples=50)
@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=30),
    st.integers(0, 50),
    st.floats(1, 100),
    st.integers(0, 600),
    st.booleans(),
    st.integers(0, 2**31),
)
# What fills the share, half of it, or the context exactly.
@example([1] * 8, 4, 12.5, 600, True, 0)
@example([1] * 8, 4, 25.0, 600, True, 1)
@example([8] * 8, 4, 50.0, 32, True, 181)
def test_what_is_quoted_follows_its_rule(
    lengths: list[int], start: int, keep_pct: float, room_tokens: int, stands_out: bool, seed: int
) -> None:
    """Of the passages that a fresh reading would choose, the best that were skipped, up to half of the share
    and into the context."""
    rng = np.random.default_rng(seed)
    tokens = sum(lengths)
    bounds = start + np.cumsum([0, *lengths])
    is_read = np.append(np.ones(start, np.bool_), rng.random(tokens) < 0.3)
    if not start:
        is_read[0] = True
    columns = Columns.at(np.flatnonzero(np.append(is_read, True)).astype(np.int32))
    passages = Passages(bounds[:-1].astype(np.int32), int(bounds[-1]), np.empty(0, np.int32))
    scores = rng.integers(0, 4, len(lengths)).astype(np.float32)  # with equal ones
    found = to_quote(columns, passages, Scored(scores, stands_out), Prefill(keep_pct=keep_pct), room_tokens)
    wanted, chosen = keep_pct / 100 * tokens, list[int]()
    taken = quoted = marks = 0
    for at in sorted(range(len(lengths)), key=lambda at: (-scores[at], at)):
        if taken >= wanted or not stands_out:
            break
        taken += lengths[at]
        skipped = [place for place in range(bounds[at], bounds[at + 1]) if not is_read[place]]
        if skipped:
            marks += 8
            if quoted < wanted / 2 and quoted + len(skipped) + marks <= room_tokens:
                chosen += skipped
            quoted += len(skipped)
    assert found.dtype == np.int32
    assert found.tolist() == sorted(chosen)


def test_a_quotation_has_its_passages_as_text_with_marked_gaps(tokenizer: TokenizerWrapper) -> None:
    answer = answer_to(tokenizer, [5, 6], SPARSE)
    text = "  alpha beta gamma delta "
    end = tokenizer.convert_tokens_to_ids("<|end|>")
    ids = [*tokenizer.encode(text, add_special_tokens=False), end]
    first, second = text.index("alpha"), text.index("delta")
    places = np.array([*range(first, first + 5), *range(second - 1, len(ids))], np.int32)
    found = excerpt(ids, places, answer.model)
    assert tokenizer.decode(found) == "[…]\nalpha\n[…]\ndelta <|end|>\n[…]\n\n"
    assert end not in found
    alone = excerpt(ids, np.array([first], np.int32), answer.model)
    assert tokenizer.decode(alone) == "[…]\na\n[…]\n\n"


def test_a_later_question_is_preceded_by_what_it_makes_relevant(tokenizer: TokenizerWrapper) -> None:
    one, two = two_turns(tokenizer, ABOUT_THE_OTTER)
    plain = answer_to(tokenizer, asked(ABOUT_THE_OTTER, *asked(ABOUT_THE_WALRUS), SAID), SPARSE).ids
    answer, quoted = two.answer, two.reading.seen
    skipped = answer.sequence.skipped
    positions = two.reading._plan.text.quoted
    found = excerpt(plain, positions, answer.model)
    text = str(tokenizer.decode(plain))
    at = len(tokenizer.encode(text[: text.rindex(ABOUT_THE_OTTER)], add_special_tokens=False))
    assert answer.ids == [*plain[:at], *found, *plain[at:]]
    assert answer.stats.read_on_tokens == len(positions) > 0
    assert "otter" in tokenizer.decode(found)
    assert answer.reading_reason.endswith(
        f"; {skipped:,} earlier ones were skipped, {len(positions):,} of them are quoted before the question"
    )
    assert answer.sequence.tokens == answer.ids[:-1]
    assert len(two.reading.layout.protected) == len(answer.ids)
    assert two.reading.layout.always_read[at : at + len(found)].all()
    assert tokenizer.decode([answer.ids[n] for n in np.flatnonzero(two.reading.layout.question)]).strip() == (
        ABOUT_THE_OTTER
    )
    words = two.reading.words
    assert not ((words.owners >= at) & (words.owners < at + len(found))).any()
    assert words.owners.max() == len(answer.ids) - 1
    assert set(positions.tolist()).isdisjoint(two.held)
    assert set(quoted.tolist()) == {*positions.tolist(), *two.held}
    assert one.answer.stats.read_on_tokens == 0
    assert not answer.unmatched


@pytest.mark.parametrize(
    ("words", "settings", "ends", "unmatched"),
    [
        (ABOUT_THE_OTTER, {"prefill.read_on": "off"}, "earlier ones were skipped", False),
        ("Hm?", {}, "earlier ones were skipped, and nothing in them matches this question", True),
        ("Continue the text.", {}, "earlier ones were skipped", False),
    ],
)
def test_where_nothing_is_quoted_the_reason_says_why(
    tokenizer: TokenizerWrapper, words: str, settings: dict[str, object], ends: str, unmatched: bool
) -> None:
    _, two = two_turns(tokenizer, words, settings=AUTO | settings)
    assert two.answer.stats.read_on_tokens == 0
    assert two.answer.reading_reason.endswith(ends)
    assert "quoted" not in two.answer.reading_reason
    assert two.answer.unmatched is unmatched


def test_a_regenerated_question_is_not_preceded_by_a_second_quotation(tokenizer: TokenizerWrapper) -> None:
    _, two = two_turns(tokenizer, ABOUT_THE_OTTER, settings=AUTO | {"prefill.read_on": "off"})
    chat = asked(ABOUT_THE_OTTER, *asked(ABOUT_THE_WALRUS), SAID)
    again = read(answer_to(tokenizer, chat, AUTO, two.answer.sequence))
    assert again.answer.stats.read_on_tokens == 0
    assert again.answer.stats.reused_tokens == two.answer.sequence.columns.count


@pytest.mark.parametrize("stands_out", [False, True])
@pytest.mark.parametrize(("words", "by_words"), [(ABOUT_THE_OTTER, True), ("Hm?", False)])
def test_a_question_is_unmatched_where_neither_scores_nor_words_match(
    tokenizer: TokenizerWrapper, monkeypatch: pytest.MonkeyPatch, words: str, by_words: bool, stands_out: bool
) -> None:
    def score(inputs: ScorerInputs) -> Scoring:
        yield ScoringStep(0)
        return Scored(np.zeros(len(inputs.passages), np.float32), stands_out)

    one = read(answer_to(tokenizer, asked(ABOUT_THE_WALRUS), SPARSE))
    monkeypatch.setitem(SCORERS, "lexical", replace(SCORERS["lexical"], score=score))
    chat = asked(words, *asked(ABOUT_THE_WALRUS), SAID)
    two = read(answer_to(tokenizer, chat, AUTO, one.answer.sequence))
    assert two.answer.unmatched is not (stands_out or by_words)
    assert ("quoted" in two.answer.reading_reason) is stands_out


@pytest.mark.parametrize("error", [ValueError("no luck"), None])
def test_a_failed_comparison_is_told_and_quotes_nothing(
    tokenizer: TokenizerWrapper, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    one = read(answer_to(tokenizer, asked(ABOUT_THE_WALRUS), SPARSE))
    monkeypatch.setitem(SCORERS, "lexical", failing(error))
    chat = asked(ABOUT_THE_OTTER, *asked(ABOUT_THE_WALRUS), SAID)
    two = read(answer_to(tokenizer, chat, AUTO, one.answer.sequence))
    why = str(error or "the scores are not numbers")
    assert two.answer.reading_reason.endswith(f", and comparing them with this question failed ({why})")
    assert two.answer.stats.read_on_tokens == 0


@pytest.mark.parametrize("room", [0, 30, 200, 4000])
def test_a_quotation_leaves_half_of_the_free_context(tokenizer: TokenizerWrapper, room: int) -> None:
    one = read(answer_to(tokenizer, asked(ABOUT_THE_WALRUS), SPARSE))
    answer = answer_to(
        tokenizer, asked(ABOUT_THE_OTTER, *asked(ABOUT_THE_WALRUS), SAID), SPARSE, one.answer.sequence
    )
    before = len(answer.ids)
    answer.context_tokens = answer.held_tokens + 2 * room
    two = read(answer)
    assert len(two.answer.ids) - before <= room
    assert (len(two.answer.ids) > before) == (room > 100)


# ---- chosen columns of what was read


def test_a_small_model_attends_to_the_passages_that_match(tokenizer: TokenizerWrapper) -> None:
    one, two = two_turns(tokenizer, ABOUT_THE_OTTER, DENSE, AUTO, preference=COLUMNS)
    whole, answer = one.answer.sequence, two.answer
    at = int(np.argmax(two.reading.layout.question))
    assert answer.reading_reason == f"{CHOSEN_COLUMNS} (by a test)"
    assert (answer.sparse, answer.scorer, answer.changes) == (False, "lexical", [])
    assert answer.sequence is not whole
    assert whole.tokens == answer.ids[:at]
    assert whole.skipped == 0
    assert answer.sequence.tokens == answer.ids[:-1]
    assert answer.unattended == answer.sequence.skipped > 0
    (found,) = two.maps
    kept = {place for each in found.passages if each.kept for place in range(each.start, each.end)}
    assert set(two.held) == kept - {len(answer.ids) - 1}
    assert found.read_tokens == answer.stats.kept_tokens == len(kept)
    assert found.held_tokens == found.prompt_tokens == len(answer.ids)
    last = int(np.flatnonzero(two.reading.layout.source >= 0)[-1])
    assert set(range(last + 1, len(answer.ids))) <= kept
    assert "otter" in DOCUMENT[min(p.first_char for p in found.passages if p.kept and p.first_char > 99) :]
    stats = answer.stats
    assert stats.reused_tokens == len(one.answer.ids) - 1
    assert stats.read_tokens + stats.reused_tokens == len(answer.ids) - 1
    done = [step.done_tokens for step in two.steps if step.phase == "reading"]
    assert done == sorted(done)
    assert done[-1] == two.steps[-1].total_tokens == len(answer.ids) - 1


@pytest.mark.parametrize(
    ("settings", "preference", "attends"),
    [
        ({}, COLUMNS, True),
        ({}, NO_COLUMNS, False),
        ({"prefill.mode": "on"}, COLUMNS, False),
        ({"prefill.mode": "off"}, COLUMNS, False),
        ({"prefill.keep_pct": 100}, COLUMNS, False),
        ({"prefill.threshold_tokens": 1}, COLUMNS, True),  # filled in below
        ({"prefill.threshold_tokens": 0}, COLUMNS, False),
    ],
)
def test_columns_are_chosen_of_long_texts_where_that_is_left_to_draftlight(
    tokenizer: TokenizerWrapper, settings: dict[str, object], preference: Preference, attends: bool
) -> None:
    one = read(answer_to(tokenizer, asked(ABOUT_THE_WALRUS), DENSE))
    if "prefill.threshold_tokens" in settings:  # as long as the threshold, or a token shorter
        settings = {"prefill.threshold_tokens": len(one.answer.ids) - attends}
    chat = asked(ABOUT_THE_OTTER, *asked(ABOUT_THE_WALRUS), SAID)
    answer = answer_to(tokenizer, chat, AUTO | settings, one.answer.sequence)
    two = read(answer, preference=preference)
    assert bool(two.answer.unattended) is attends
    assert (CHOSEN_COLUMNS in two.answer.reading_reason) is attends


def test_the_same_question_again_attends_to_chosen_columns(tokenizer: TokenizerWrapper) -> None:
    """Its own tokens were read among all columns, so they are read again."""
    chat = asked(ABOUT_THE_WALRUS)
    one = read(answer_to(tokenizer, chat, DENSE))
    whole = one.answer.sequence
    two = read(answer_to(tokenizer, chat, AUTO, whole), preference=COLUMNS)
    at = int(np.argmax(two.reading.layout.question))
    assert two.answer.unattended
    assert two.answer.stats.reused_tokens == len(whole.tokens) == at
    assert two.answer.stats.read_tokens == len(two.answer.ids) - 1 - at


def test_where_all_columns_are_kept_nothing_is_changed(tokenizer: TokenizerWrapper) -> None:
    _, two = two_turns(
        tokenizer, ABOUT_THE_OTTER, DENSE, AUTO | {"prefill.keep_pct": 99.9}, preference=COLUMNS
    )
    assert two.answer.reading_reason == "the answer attends to all of the text read before"
    assert (two.answer.unattended, two.answer.changes, two.answer.scorer) == (0, [], "")
    assert two.maps == []


@pytest.mark.parametrize(("preference", "begun"), [(COLUMNS, True), (NO_COLUMNS, False)])
def test_of_a_document_that_was_read_in_part_chosen_columns_serve_too(
    tokenizer: TokenizerWrapper, preference: Preference, begun: bool
) -> None:
    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), AUTO | {"prefill.patience_s": 1.0})
    for _ in read_prompt(answer.model.model, answer.sequence, answer.ids[:351], chunk_tokens=64):
        pass
    planned = answer.sequence
    two = read(answer, preference=preference, pace=Measured(0.1))
    reason = (
        f"{len(answer.ids) - 350:,} tokens are new, about {0.1 * (len(answer.ids) - 350):.0f} s to read whole"
    )
    assert two.answer.reading_reason == (f"{reason}; {OF_BEGUN}" if begun else reason)
    assert two.answer.sparse
    assert bool(two.answer.unattended) is begun
    assert (planned is two.answer.sequence) is not begun
    assert planned.skipped == (0 if begun else two.answer.sequence.skipped)
    kept = {place for each in two.maps[0].passages if each.kept for place in range(each.start, each.end)}
    assert set(two.held) == (kept if begun else {*range(350), *kept}) - {len(answer.ids) - 1}
    assert two.maps[0].passages[0].start == (0 if begun else 350)
