"""Plans of whole chats: what is reused, quoted, attended to and skipped, and what is told of it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer
from msgspec.structs import replace

from core.decoding.answer import MemoryGuard
from core.errors import DraftModelError, NotEnoughMemoryError, PromptTooLongError
from core.events import Change, MemoryNeed, Message
from core.events.models import CHUNK_TOKENS
from core.kv.positions import Columns
from core.prefill.layout import Passages
from core.prefill.plan import (
    ASKS_FOR_ALL,
    CHOSEN_COLUMNS,
    NOTHING_STANDS_OUT,
    OF_BEGUN,
    Preference,
    excerpt,
    preference_by_size,
    to_quote,
)
from core.prefill.read import read_prompt
from core.prefill.reading import Unmeasured
from core.prefill.scorers import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep
from core.settings.prefill import Prefill
from tests.core.architectures import VOCABULARY
from tests.core.prefill.readings import (
    ABOUT_THE_OTTER,
    ABOUT_THE_WALRUS,
    AUTO,
    DENSE,
    DOCUMENT,
    SPARSE,
    Measured,
    Read,
    answer_to,
    asked,
    read,
)

COLUMNS = Preference(True, True, "by a test")
NO_COLUMNS = Preference(True, False, "by a test")
SAID = Message("assistant", "Under a tree.")


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
    sequence = one.answer.sequence
    sequence.append(one.answer.ids[-1:])  # as decoding does; the model's columns do not matter here
    sequence.truncate(len(one.answer.ids) - 1)
    answer = answer_to(tokenizer, asked(second, *before, SAID), settings, sequence)
    return one, read(answer, **parts)


def failing(error: Exception | None) -> Any:
    """A scorer that raises, or whose scores are not numbers."""

    def score(inputs: ScorerInputs) -> Scoring:
        yield ScoringStep(0)
        if error is not None:
            raise error
        return Scored(np.full(len(inputs.passages), np.nan, np.float32), True)

    return replace(SCORERS["lexical"], score=score)


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
    assert two.answer.reading_reason == "all of what was read before is kept"
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


def test_models_below_a_billion_parameters_prefer_passages() -> None:
    for parameters, small in ((999_999_999, True), (1_000_000_000, False)):
        assert preference_by_size(parameters) == Preference(small, small, "by its size")


# ---- which scorer, and where it fails


def test_a_scorer_with_a_draft_model_needs_one_that_reads_the_text(tokenizer: TokenizerWrapper) -> None:
    settings = SPARSE | {"prefill.scorer": "draft-model"}
    with pytest.raises(DraftModelError, match="no draft model for the scorer “draft-model”"):
        read(answer_to(tokenizer, asked(ABOUT_THE_OTTER), settings))
    calls: list[tuple[str, bool]] = []

    class Drafts:
        def scoring(self, reference: str, *, drafts: bool) -> Any:
            calls.append((reference, drafts))
            return SimpleNamespace(loaded=SimpleNamespace(why_not_read=lambda ids: "it is too short"))

    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), settings)
    found = read(answer, drafts=Drafts()).answer
    assert calls == [("", False)]
    assert found.changes[0] == Change("prefill.scorer", "draft-model", "fusion", "it is too short")
    assert found.scorer in ("fusion", "lexical")
    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), settings)
    answer.most_tokens = len(answer.ids) - 1
    found = read(answer, drafts=Drafts()).answer
    assert len(calls) == 1
    assert found.changes[0].reason == "a draft model cannot read more than the context"


@pytest.mark.parametrize("error", [ValueError("no luck"), None])
def test_a_scorer_that_fails_has_all_of_it_read(
    tokenizer: TokenizerWrapper, monkeypatch: pytest.MonkeyPatch, error: Exception | None
) -> None:
    monkeypatch.setitem(SCORERS, "lexical", failing(error))
    found = read(answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE))
    reason = f"scoring failed ({error or 'the scores are not numbers'}), so all of it was read"
    assert found.answer.reading_reason == reason
    assert found.answer.changes == [Change("prefill.mode", "on", "off", reason)]
    assert (found.answer.sparse, found.answer.scorer, found.maps) == (False, "", [])
    assert found.held == list(range(len(found.answer.ids) - 1))
    beyond = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE)
    beyond.most_tokens = len(beyond.ids) - 1
    with pytest.raises(ValueError, match="no luck" if error else "not numbers"):
        read(beyond)


@pytest.mark.parametrize("turns", [1, 2])
def test_exhausted_memory_while_scoring_is_raised(
    tokenizer: TokenizerWrapper, monkeypatch: pytest.MonkeyPatch, turns: int
) -> None:
    chat, sequence = asked(ABOUT_THE_WALRUS), None
    if turns == 2:
        sequence = read(answer_to(tokenizer, chat, SPARSE)).answer.sequence
        chat = asked(ABOUT_THE_OTTER, *chat, SAID)
    monkeypatch.setitem(SCORERS, "lexical", failing(MemoryError()))
    with pytest.raises(MemoryError):
        read(answer_to(tokenizer, chat, SPARSE, sequence))


class Unlucky:
    """The model, whose second pass over more than one token raises."""

    def __init__(self, model: Any, error: Exception) -> None:
        self._model, self._error, self.passes = model, error, 0

    def __call__(self, block: Any, cache: Any = None) -> Any:
        self.passes += 1
        if self.passes == 2:
            raise self._error
        return self._model(block, cache=cache)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)


@pytest.mark.parametrize("held", [0, 100])
def test_skipping_that_fails_has_all_of_it_read(tokenizer: TokenizerWrapper, held: int) -> None:
    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE)
    if held:
        for _ in read_prompt(answer.model.model, answer.sequence, answer.ids[: held + 1], chunk_tokens=64):
            pass
    answer.model.model = Unlucky(answer.model.model, ValueError("no luck"))
    found = read(answer)
    reason = "skipping failed (no luck), so all of it was read"
    assert found.answer.reading_reason == reason
    assert found.answer.changes == [Change("prefill.mode", "on", "off", reason)]
    assert (found.answer.sparse, found.answer.scorer, found.answer.stats.kept_tokens) == (False, "", 0)
    assert found.held == list(range(len(answer.ids) - 1))
    assert found.answer.stats.read_tokens == len(answer.ids) - 1 - held


@pytest.mark.parametrize(
    ("error", "most"),
    [(NotEnoughMemoryError("no room", ""), 0), (MemoryError(), 0), (ValueError("no luck"), 1)],
)
def test_what_cannot_be_read_otherwise_is_raised_and_leaves_what_was_there(
    tokenizer: TokenizerWrapper, error: Exception, most: int
) -> None:
    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE)
    if most:
        answer.most_tokens = len(answer.ids) - 1
    answer.model.model = Unlucky(answer.model.model, error)
    with pytest.raises(type(error)):
        read(answer)
    assert answer.sequence.tokens == []


# ---- decisions on a whole chat


@pytest.mark.parametrize(
    ("words", "sparse", "reason"),
    [
        (ABOUT_THE_OTTER, True, ""),
        ("Sum this up.", False, NOTHING_STANDS_OUT),
        ("How many are there?", False, ASKS_FOR_ALL),
    ],
)
def test_auto_reads_all_where_no_passage_answers(
    tokenizer: TokenizerWrapper, words: str, sparse: bool, reason: str
) -> None:
    found = read(answer_to(tokenizer, asked(words), AUTO), pace=Measured(0.1)).answer
    assert found.sparse is sparse
    assert found.scorer == ("lexical" if sparse else "")
    if not sparse:
        assert found.reading_reason == reason
        assert found.changes == [Change("prefill.mode", "auto", "off", reason)]
    forced = read(answer_to(tokenizer, asked(words), SPARSE)).answer
    assert (forced.sparse, forced.changes, forced.unmatched) == (True, [], not sparse)
    assert forced.reading_reason == "asked for"


@pytest.mark.parametrize("over", [0, 1])
def test_a_prompt_beyond_the_context_is_read_anew(tokenizer: TokenizerWrapper, over: int) -> None:
    """As soon as it is a token too long; what was cached for another question is dropped."""
    one = read(answer_to(tokenizer, asked(ABOUT_THE_WALRUS), DENSE))
    chat = asked(ABOUT_THE_OTTER, *asked(ABOUT_THE_WALRUS), SAID)
    answer = answer_to(tokenizer, chat, SPARSE | {"prefill.keep_pct": 40}, one.answer.sequence)
    answer.most_tokens = len(answer.ids) - over
    found = read(answer)
    assert found.answer.stats.reused_tokens == (0 if over else len(one.answer.ids) - 1)
    assert ("more than the context takes" in found.answer.reading_reason) == bool(over)
    if over:
        assert found.answer.reading_reason.startswith(f"{len(answer.ids):,} tokens are more than")
        assert len(found.held) + 1 <= 0.75 * answer.most_tokens
        assert not found.maps[0].all_fits


def test_what_was_refused_and_does_not_fit_is_told(tokenizer: TokenizerWrapper) -> None:
    answer = answer_to(tokenizer, asked("How many are there?"), AUTO)
    answer.most_tokens = len(answer.ids) - 1
    found = read(answer).answer
    change = found.changes[0]
    assert (change.setting, change.asked, change.used) == ("prefill.keep_pct", "100", "25")
    assert change.reason == found.reading_reason
    tiny = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE)
    tiny.most_tokens = 200
    with pytest.raises(PromptTooLongError):
        read(tiny)
    assert tiny.sequence.tokens == []


def test_a_share_that_does_not_fit_is_lowered_and_told_once(tokenizer: TokenizerWrapper) -> None:
    document = DOCUMENT * 3
    for words, mode, asked_pct in ((ABOUT_THE_OTTER, SPARSE, "90"), ("How many are there?", AUTO, "100")):
        answer = answer_to(tokenizer, asked(words, document=document), mode | {"prefill.keep_pct": 90})
        answer.most_tokens = len(answer.ids) - 1
        found = read(answer)
        (change,) = found.answer.changes
        assert (change.setting, change.asked) == ("prefill.keep_pct", asked_pct)
        assert 0 < float(change.used) < 90
        assert len(found.held) < 0.75 * answer.most_tokens
        assert len(found.held) > 0.75 * answer.most_tokens - 64  # no more than a passage is left


def test_a_question_about_what_was_read_before_needs_no_passage_of_the_new_text(
    tokenizer: TokenizerWrapper,
) -> None:
    before = asked("Hm?")
    one = read(answer_to(tokenizer, before, DENSE))
    text = "Nothing else is told in it, at no place. " * 16
    second = asked(ABOUT_THE_OTTER, document=text)[0]
    chat = (*before, SAID, second)
    found = read(answer_to(tokenizer, chat, AUTO, one.answer.sequence), pace=Measured(0.1))
    assert found.answer.sparse
    assert not found.answer.unmatched
    alone = read(answer_to(tokenizer, (second,), AUTO), pace=Measured(0.1))
    assert alone.answer.reading_reason == NOTHING_STANDS_OUT


# ---- chunks and snapshots


def test_chunks_are_as_large_as_the_memory_allows(tokenizer: TokenizerWrapper) -> None:
    need = MemoryNeed(working=10 * CHUNK_TOKENS)
    sizes = []
    for left in (1 << 30, 50 * 10):
        answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), DENSE | {"prefill.chunk_tokens": 128})
        found = read(answer, guard=MemoryGuard(need, lambda left=left: left))
        done = [step.done_tokens for step in found.steps]
        sizes.append(max(np.diff(done)))
        reason = "the memory does not suffice for larger chunks"
        change = [] if left > 1000 else [Change("prefill.chunk_tokens", "128", "32", reason)]
        assert answer.changes == change
    assert sizes == [128, 32]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("architecture", ["qwen3_5", "gemma3_text"])
def test_a_cache_that_forgets_can_return_to_where_later_prompts_leave(
    tokenizer: TokenizerWrapper, architecture: str, sparse: bool
) -> None:
    """To branches of the chat, the question and the end; not to two places within a few tokens."""
    chat = asked(ABOUT_THE_OTTER)
    answer = answer_to(tokenizer, chat, SPARSE if sparse else DENSE, architecture=architecture)
    end = len(answer.ids) - 1
    answer.branches = (150, 165, 166, 300, end + 1)
    found = read(answer)
    question = int(np.argmax(found.reading.layout.question))
    head = int(np.argmin(found.reading.layout.protected))
    assert head >= 16
    lengths = [each.length for each in answer.sequence.snapshots]
    wanted = [head, 150, 166, 300, question, end]
    assert end - question >= 16
    if sparse:  # only at places that were read
        assert lengths[-1] == end
        assert set(lengths) <= {*wanted, end - 2}
    else:
        assert lengths == wanted
    plain = answer_to(tokenizer, chat, DENSE)
    plain.branches = (150,)
    read(plain)
    assert plain.sequence.snapshots == ()


@pytest.mark.parametrize("ids", [[5] * 40, list(range(4, VOCABULARY)) * 4])
def test_a_prompt_of_ids_ends_with_its_question(tokenizer: TokenizerWrapper, ids: list[int]) -> None:
    found = read(answer_to(tokenizer, ids, SPARSE))
    assert found.reading.layout.question.sum() == min(64, len(ids))
    assert found.reading.layout.texts == ()
    assert found.answer.sparse == (len(ids) > 600)
    assert found.answer.sequence.tokens == ids[:-1]


def test_a_machine_that_was_not_measured_knows_nothing() -> None:
    pace = Unmeasured()
    pace.timed(10, 0, 1.0)
    pace.scored("lexical", 10, 1.0)
    assert [pace.pace, pace.dense_s(10), pace.scoring_s("lexical"), pace.probe()] == [None] * 4
