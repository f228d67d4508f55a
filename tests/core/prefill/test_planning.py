"""Plans of whole chats: what is read of them, with which scorer, and what is told where something fails."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer
from msgspec.structs import replace

from core.decoding.answer import MemoryGuard
from core.errors import DraftModelError, NotEnoughMemoryError, PromptTooLongError
from core.events import Change, MemoryNeed, ReadingPace
from core.events.models import CHUNK_TOKENS
from core.prefill.forecast import PrefillClock
from core.prefill.plan import (
    ASKS_FOR_ALL,
    NOTHING_STANDS_OUT,
    Planning,
    Preference,
    preference_by_size,
)
from core.prefill.read import read_prompt
from core.prefill.reading import Unmeasured
from core.prefill.scorers import SCORERS
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep
from tests.core.architectures import VOCABULARY
from tests.core.prefill.readings import (
    ABOUT_THE_OTTER,
    ABOUT_THE_WALRUS,
    AUTO,
    DENSE,
    DOCUMENT,
    SAID,
    SPARSE,
    Measured,
    answer_to,
    asked,
    failing,
    read,
)

COLUMNS = Preference(True, True, "by a test")


@pytest.fixture(scope="module")
def tokenizer(toy_folder: Path) -> TokenizerWrapper:
    return load_tokenizer(toy_folder)


# ---- which scorer, and where it fails


def test_a_scorer_with_a_draft_model_needs_one_that_reads_the_text(tokenizer: TokenizerWrapper) -> None:
    settings = SPARSE | {"prefill.scorer": "draft-model"}
    with pytest.raises(DraftModelError, match="“draft-model” needs a draft model"):
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
        answer.sequence.ahead_columns = held
    answer.model.model = Unlucky(answer.model.model, ValueError("no luck"))
    found = read(answer)
    reason = "skipping failed (no luck), so all of it was read"
    ahead = f"{held} tokens were read before the question; " if held else ""
    assert found.answer.reading_reason == ahead + reason
    assert found.answer.changes == [Change("prefill.mode", "on", "off", reason)]
    assert (found.answer.sparse, found.answer.scorer, found.answer.stats.kept_tokens) == (False, "", 0)
    assert found.held == list(range(len(answer.ids) - 1))
    assert found.answer.stats.read_tokens == len(answer.ids) - 1 - held


def test_skipping_that_fails_keeps_what_earlier_turns_skipped(tokenizer: TokenizerWrapper) -> None:
    chat = asked(ABOUT_THE_WALRUS)
    one = read(answer_to(tokenizer, chat, SPARSE)).answer
    chat = (*chat, SAID, *asked(ABOUT_THE_OTTER))
    answer = answer_to(tokenizer, chat, SPARSE | {"prefill.read_on": "off"}, one.sequence)
    skipped = answer.sequence.skipped
    answer.model.model = Unlucky(answer.model.model, ValueError("no luck"))
    found = read(answer).answer
    begins = f"skipping failed (no luck), so all of it was read; {skipped:,} earlier ones were skipped"
    assert found.reading_reason.startswith(begins)
    assert found.sequence.skipped == skipped > 0


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
    assert forced.reading_reason == "sparse prefill is on"


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


@pytest.mark.sweep
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


def test_models_below_a_billion_parameters_prefer_passages() -> None:
    for parameters, small in ((999_999_999, True), (1_000_000_000, False)):
        assert preference_by_size(parameters) == Preference(small, small, "by its size")


# ---- what is announced to the clock


class Announced(PrefillClock):
    """Keeps what is to come."""

    def __init__(self, pace: ReadingPace | None) -> None:
        super().__init__(pace)
        self.scoring: list[tuple[ReadingPace | None, ReadingPace | None, bool]] = []
        self.reading: list[tuple[float, float]] = []
        self.probed: list[ReadingPace | None] = []

    def guess(self, pace: ReadingPace | None) -> None:
        self.probed.append(pace)
        super().guess(pace)

    def expect_scoring(self, pace: ReadingPace | None, *, guess: ReadingPace | None, attends: bool) -> None:
        self.scoring.append((pace, guess, attends))
        super().expect_scoring(pace, guess=guess, attends=attends)

    def expect_reading(self, tokens: float, before_tokens: float) -> None:
        self.reading.append((tokens, before_tokens))
        super().expect_reading(tokens, before_tokens)


class Paced(Unmeasured):
    """`scorer_s`: of a token of a scorer, which gets its times. A timing gives `probed`."""

    def __init__(self, scorer_s: float | None, probed: ReadingPace | None = None) -> None:
        self._scorer_s, self._probed = scorer_s, probed
        self.times: list[tuple[str, float, float]] = []

    def scoring_s(self, scorer: str) -> float | None:
        return self._scorer_s

    def scored(self, scorer: str, tokens: float, seconds: float) -> None:
        self.times.append((scorer, tokens, seconds))

    def probe(self) -> ReadingPace | None:
        return self._probed


@pytest.mark.parametrize("model_s", [None, 0.25])
@pytest.mark.parametrize("scorer_s", [None, 0.5])
def test_the_time_of_scoring_is_as_measured_or_as_of_a_model_of_its_size(
    tokenizer: TokenizerWrapper, model_s: float | None, scorer_s: float | None
) -> None:
    """A short timing of the model is made once, where it is not known and the text is long enough."""
    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE)
    answer.model.info = replace(answer.model.info, parameters=212_000_000)
    pace = Paced(scorer_s, ReadingPace(0.75, 0.001))
    clock = Announced(model_s and ReadingPace(model_s, 0.0))
    list(Planning(answer, clock, pace, None, None, COLUMNS).plan())
    measured = scorer_s and ReadingPace(scorer_s, 0.0)
    assert clock.scoring == [(measured, ReadingPace((model_s or 0.75) / 10, 0.0), False)]
    assert clock.probed == ([] if model_s else [ReadingPace(0.75, 0.001)])
    assert [name for name, _, _ in pace.times] == ["lexical"]
    tokens = len(answer.ids)
    first, then = clock.reading
    assert first == (tokens - 1, 0)
    assert tokens / 4 < then[0] < tokens
    assert then[1] == 0


@pytest.mark.parametrize("measured", [None, ReadingPace(0.125, 0.0)])
def test_the_time_of_scoring_with_a_draft_model_is_that_of_the_draft_model(
    tokenizer: TokenizerWrapper, measured: ReadingPace | None
) -> None:
    class Drafts:
        def scoring(self, reference: str, *, drafts: bool) -> Any:
            info = SimpleNamespace(parameters=answer.model.info.parameters // 4)
            loaded = SimpleNamespace(info=info, why_not_read=lambda ids: "")
            return SimpleNamespace(loaded=loaded, pace=SimpleNamespace(pace=measured), sequence=None)

    answer = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE | {"prefill.scorer": "draft-model"})
    answer.model.info = replace(answer.model.info, parameters=200_000_000)
    clock = Announced(ReadingPace(0.25, 0.001))
    list(Planning(answer, clock, Paced(0.5), Drafts(), None, COLUMNS).plan())
    assert clock.scoring[0] == (measured, ReadingPace(0.25 / 4, 0.001 / 4), True)


@pytest.mark.parametrize(("tokens", "is_probed"), [(255, False), (256, True)])
def test_short_texts_are_not_worth_a_timing(
    tokenizer: TokenizerWrapper, tokens: int, is_probed: bool
) -> None:
    answer, clock = answer_to(tokenizer, [5] * tokens, SPARSE), Announced(None)
    list(Planning(answer, clock, Paced(None), None, None, COLUMNS).plan())
    assert clock.probed == [None] * is_probed
    assert clock.scoring == [(None, None, False)]


def test_scoring_is_timed_from_what_is_left_of_it(
    tokenizer: TokenizerWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps on which nothing was computed don't count."""
    now = 0.0

    def score(inputs: ScorerInputs) -> Scoring:
        nonlocal now
        for left, took_s in ((100.0, 7.0), (60.0, 2.0), (60.0, 5.0), (10.0, 3.0)):
            now += took_s
            yield ScoringStep(int(100 - left), left)
        return Scored(np.ones(len(inputs.passages), np.float32), True)

    monkeypatch.setitem(SCORERS, "lexical", replace(SCORERS["lexical"], score=score))
    answer, pace = answer_to(tokenizer, asked(ABOUT_THE_OTTER), SPARSE), Paced(None)
    answer.clock, answer.requested_s = lambda: now, 0.0
    list(Planning(answer, Announced(None), pace, None, None, COLUMNS).plan())
    assert pace.times == [("lexical", 90.0, 5.0)]
    assert answer.stats.score_s == 17.0
    assert answer.stats.scored_tokens == len(answer.ids)
