"""A conversation whose document was skip-read: drafters, turns, refusals, errors and cancels."""

from __future__ import annotations

import math
import random
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from msgspec.structs import replace

from core.drafting.registry import DRAFTERS
from core.engine.engine import Engine, never
from core.engine.model_session import DraftModels
from core.errors import DraftModelError, PromptTooLongError
from core.events import Attachment, Event, Finished, Generate, Message, PrefillProgress, ReadingMap, Token
from core.kv.cached_sequence import CachedSequence
from core.machine.profile import PACES
from core.models.parts import rotations
from core.prefill.scorers import SCORERS as SPECS
from core.prefill.scorers.scorer import Scored, ScorerInputs, Scoring, ScoringStep, carried, means_of
from core.settings import Settings, assign_all
from core.settings.prefill import SCORERS
from core.system.paths import cache_dir
from tests.core.architectures import VOCABULARY
from tests.core.prefill.gaps import kept_forward
from tests.core.toy import write_toy_model
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

CONTEXT_TOKENS = 4096
PROMPT_TOKENS = 1000
# The prompts are token IDs, which have no text to embed.
READERS = [name for name in SCORERS if name != "fusion"]
DRAFTING = [name for name, spec in DRAFTERS.items() if spec.drafts and spec.needs_proposer != "head"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy llama with a longer context."""
    path = tmp_path_factory.mktemp("models") / "long-toy"
    write_toy_model(path, max_position_embeddings=CONTEXT_TOKENS)
    return path


@pytest.fixture
def engine(folder: Path) -> Iterator[Engine]:
    engine = endless(folder)
    yield engine
    engine.unload()
    # How fast a test read is not for the next one to know.
    for kept in (cache_dir() / "profiles").glob("pace-*"):
        kept.unlink()


def endless(folder: Path) -> Engine:
    """An engine whose answers end by their length."""
    engine = Engine()
    engine.load(str(folder))
    engine.loaded.eos = frozenset()
    engine.try_out()
    return engine


def settings(folder: Path | None = None, **values: object) -> Settings:
    chosen = {
        "prefill.mode": "on",
        "prefill.scorer": "lexical",
        # The toy's tokens are characters: a sentence is most of its context.
        "prefill.passages": "fixed",
        "prefill.keep_pct": 10,
        "prefill.chunk_tokens": 128,
        "drafting.drafter": "off",
        "gate.mode": "always",
        "sampling.max_tokens": 40,
        "ngram_simple.n_min": 1,
        "ngram_mod.n": 4,
        "ngram_mod.slots": 4096,
        "draft_model.model": str(folder or ""),
        **values,
    }
    return assign_all(Settings(), chosen.items())


def prompt_of(seed: int, tokens: int = PROMPT_TOKENS) -> list[int]:
    """With repetitions, so that there is something to draft."""
    rng = random.Random(seed)
    phrases = [[rng.randrange(4, VOCABULARY) for _ in range(rng.randint(4, 12))] for _ in range(12)]
    out: list[int] = []
    while len(out) < tokens:
        out += rng.choice(phrases)
    return out[:tokens]


def run(
    engine: Engine, prompt: Sequence[int], chosen: Settings, cancelled: Callable[[], bool] = never
) -> tuple[list[int], Finished, list[Event]]:
    finished, events = ended(engine.generate_ids(prompt, chosen, cancelled))
    return [event.id for event in events if isinstance(event, Token)], finished, events


def ended(events: Iterable[Event]) -> tuple[Finished, list[Event]]:
    """The last event, and all of them."""
    *_, finished = told = list(events)
    assert isinstance(finished, Finished)
    return finished, told


def map_of(events: Sequence[Event]) -> ReadingMap:
    (found,) = [event for event in events if isinstance(event, ReadingMap)]
    return found


def dropped(found: ReadingMap) -> list[int]:
    return [at for passage in found.passages if not passage.kept for at in range(passage.start, passage.end)]


def greedy(model: Any, prompt: Sequence[int], skipped: Sequence[int], count: int) -> list[int]:
    """The answer by stock forwards over the tokens that are not skipped, one after the other."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(mx.argmax(kept_forward(model, tokens, skipped)[-1]).item()))
    return tokens[len(prompt) :]


@pytest.mark.sweep
@pytest.mark.parametrize("scorer", READERS)
def test_the_answer_is_that_of_the_kept_tokens_alone(engine: Engine, folder: Path, scorer: str) -> None:
    prompt = prompt_of(1)
    chosen = settings(folder, **{"prefill.scorer": scorer})
    tokens, finished, events = run(engine, prompt, chosen)
    found, stats = map_of(events), finished.stats
    assert finished.effective.reading == "sparse"
    assert finished.effective.scorer == found.scorer == scorer
    assert finished.effective.changes == ()
    assert stats.skipped_tokens == len(dropped(found)) == len(prompt) - found.read_tokens > 300
    assert stats.prompt_tokens == stats.reused_tokens + stats.read_tokens + stats.skipped_tokens
    assert stats.kept_tokens == stats.read_tokens == found.read_tokens
    assert stats.scored_tokens == len(prompt)
    assert 0 < stats.score_s < stats.prefill_s <= stats.ttft_s
    assert tokens[:2] == greedy(engine.loaded.model, prompt, dropped(found), 2)


def test_passages_cover_the_prompt_and_keep_what_must_be_kept(engine: Engine) -> None:
    prompt = prompt_of(2)
    _, _, events = run(engine, prompt, settings(**{"prefill.keep_pct": 15}))
    found = map_of(events)
    assert [p.start for p in found.passages] == [0, *(p.end for p in found.passages[:-1])]
    assert found.passages[-1].end == found.prompt_tokens == len(prompt)
    assert found.passages[0].kept
    assert all(p.kept for p in found.passages if p.end > len(prompt) - 512)
    assert all(0 <= p.score <= 1 for p in found.passages)
    assert sum(p.kept for p in found.passages) == 1 + 5 + 17  # first, ⌈0.15 · 1000 ÷ 32⌉, last 512
    assert all(p.source == -1 for p in found.passages)


def test_progress_tells_both_phases(engine: Engine, folder: Path) -> None:
    chosen = settings(folder, **{"prefill.scorer": "draft-model"})
    _, _, events = run(engine, prompt_of(3), chosen)
    progress = [event for event in events if isinstance(event, PrefillProgress)]
    scoring = [event for event in progress if event.phase == "scoring"]
    reading = [event for event in progress if event.phase == "reading"]
    assert progress == scoring + reading
    assert [e.scored_tokens for e in scoring] == sorted(e.scored_tokens for e in scoring)
    assert (scoring[0].scored_tokens, scoring[-1].scored_tokens) == (0, PROMPT_TOKENS)
    assert len(scoring) > 6
    assert (reading[0].done_tokens, reading[-1].done_tokens) == (0, reading[-1].total_tokens)
    assert {e.kept_tokens for e in reading} == {map_of(events).read_tokens}
    assert all(e.seconds_left is not None for e in progress)
    assert {e.passages for e in scoring} == {0}
    assert {e.passages for e in reading} == {sum(each.kept for each in map_of(events).passages)}
    fractions = [e.fraction for e in progress]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0


def test_drafters_see_the_skipped_passages(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run of tokens that stands only in a skipped passage is drafted after its beginning."""
    prompt = prompt_of(6)
    seen: list[list[int]] = []
    from core.drafting.ngram_simple import NgramSimpleDrafter

    begin = NgramSimpleDrafter.begin

    def noted(self: Any, ids: Sequence[int], *facts: Any) -> None:
        seen.append(list(ids))
        begin(self, ids, *facts)

    monkeypatch.setattr(NgramSimpleDrafter, "begin", noted)
    _, finished, _ = run(engine, prompt, settings(**{"drafting.drafter": "ngram-simple"}))
    assert finished.stats.skipped_tokens > 0
    assert seen == [prompt]


def test_the_next_turn_appends_and_reading_everything_rebuilds(engine: Engine) -> None:
    prompt, more = prompt_of(7), prompt_of(8, 40)
    chosen = settings(**{"sampling.max_tokens": 20})
    answer, _, events = run(engine, prompt, chosen)
    skipped = dropped(map_of(events))
    follow = [*prompt, *answer, *more]

    second, finished, _ = run(engine, follow, assign_all(chosen, [("prefill.mode", "auto")]))
    stats = finished.stats
    assert stats.skipped_tokens == len(skipped)
    assert stats.read_tokens <= len(more) + 1
    assert finished.effective.reading == "sparse"
    assert second[:2] == greedy(engine.loaded.model, follow, skipped, 2)

    whole, finished, _ = run(engine, follow, assign_all(chosen, [("prefill.mode", "off")]))
    assert (finished.effective.reading, finished.stats.skipped_tokens) == ("dense", 0)
    assert finished.stats.read_tokens > len(prompt) - 512
    assert engine.sequence.skipped == 0
    fresh = Engine()
    fresh.use(engine.loaded)
    assert whole == run(fresh, follow, assign_all(chosen, [("prefill.mode", "off")]))[0]


def test_a_dense_prefix_is_reused_and_only_the_document_is_sparse(engine: Engine) -> None:
    system, document = prompt_of(9, 300), prompt_of(10)
    run(engine, system, settings(**{"prefill.mode": "off", "sampling.max_tokens": 1}))
    _, finished, events = run(engine, [*system, *document], settings())
    assert finished.stats.reused_tokens >= 299
    assert map_of(events).passages[0].start == finished.stats.reused_tokens
    assert finished.stats.scored_tokens == 1300 - finished.stats.reused_tokens
    assert engine.sequence.columns.whole is not None
    assert engine.sequence.columns.whole >= 300


def read_slowly(engine: Engine) -> None:
    """As if this machine read 50 tokens a second."""
    for _ in range(100):
        engine._session.profile.timed(512, 0, 10.24)


def test_auto_counts_the_new_tokens_only(engine: Engine) -> None:
    auto = {"prefill.mode": "auto", "prefill.threshold_tokens": 1000}
    read_slowly(engine)
    prompt = prompt_of(11, 900)
    _, finished, _ = run(engine, prompt, settings(**auto))
    assert finished.effective.reading == "dense"
    assert "new tokens" in finished.effective.reading_reason
    _, finished, _ = run(engine, [*prompt, *prompt_of(12, 900)], settings(**auto))
    assert finished.effective.reading == "dense"
    assert finished.effective.changes == ()
    engine.forget()
    _, finished, _ = run(engine, [*prompt, *prompt_of(12, 900)], settings(**auto))
    assert finished.effective.reading == "sparse"


def test_a_short_prompt_that_is_forced_says_that_nothing_was_skipped(engine: Engine) -> None:
    _, finished, events = run(engine, prompt_of(13, 400), settings())
    assert finished.effective.reading == "dense"
    (change,) = finished.effective.changes
    assert (change.setting, change.asked, change.used) == ("prefill.mode", "on", "off")
    assert "no passage could be skipped" in change.reason
    assert not [event for event in events if isinstance(event, ReadingMap)]


def ask(question: str, document: str = "A plain line of text. " * 100, name: str = "a.txt") -> Generate:
    return Generate("r", (Message("user", question, (Attachment(name, document),)),))


LINES = f"{'A plain line of text. ' * 50}Here a zebra crossing begins. {'A plain line of text. ' * 50}"


def test_auto_reads_whole_what_is_soon_read(engine: Engine) -> None:
    """The same prompt, the same settings, another machine."""
    auto = settings(**{"prefill.mode": "auto", "prefill.threshold_tokens": 500, "prefill.patience_s": 1.0})
    request = Generate("r", ask("What is a zebra crossing?", LINES).messages, auto)
    for token_s, expected in ((0.0001, "dense"), (0.1, "sparse")):
        engine.forget()
        for _ in range(200):
            engine._session.profile.timed(512, 0, 512 * token_s)
        finished, events = ended(engine.generate(request))
        assert finished.effective.reading == expected, finished.effective.reading_reason
        assert finished.effective.changes == ()
    assert "s to read whole" in finished.effective.reading_reason
    assert (map_of(events).dense_s or 0) > 10


@pytest.mark.sweep
@pytest.mark.parametrize("words", ["Sum this up.", "Fasse das zusammen."])
def test_where_nothing_stands_out_auto_reads_all_and_says_so(engine: Engine, words: str) -> None:
    auto = settings(**{"prefill.mode": "auto", "prefill.threshold_tokens": 500})
    read_slowly(engine)
    request = Generate("r", ask(words, LINES).messages, auto)
    finished, _ = ended(engine.generate(request))
    assert finished.effective.reading == "dense"
    (change,) = finished.effective.changes
    assert (change.setting, change.asked, change.used) == ("prefill.mode", "auto", "off")
    assert "nothing in the text stands out" in change.reason
    engine.forget()
    forced, _ = ended(engine.generate(Generate("r", request.messages, settings())))
    assert forced.effective.reading == "sparse"


def test_what_readings_take_is_learned(engine: Engine) -> None:
    assert engine.pace is None, "it is not known before anything was read"
    run(engine, prompt_of(14, 900), settings(**{"prefill.mode": "off"}))
    pace = engine.pace
    assert pace is not None
    seconds = pace.seconds(1000)
    assert 0 < seconds < 60
    assert seconds in [each.seconds(1000) for each in PACES.all()]  # for the next start


def test_a_question_for_everything_is_read_whole_in_auto_and_says_why(engine: Engine) -> None:
    auto = settings(**{"prefill.mode": "auto", "prefill.threshold_tokens": 500})
    read_slowly(engine)
    request = ask("How many lines are there?", LINES)
    finished, _ = ended(engine.generate(Generate("r", request.messages, auto)))
    assert finished.effective.reading == "dense"
    (change,) = finished.effective.changes
    assert "whole document" in change.reason
    engine.forget()
    read_slowly(engine)  # the answer was timed, too
    # What an earlier, sparse turn left is not reused for it.
    other, _ = ended(engine.generate(Generate("r", ask("What is a zebra crossing?", LINES).messages, auto)))
    assert other.effective.reading == "sparse"
    again, _ = ended(engine.generate(Generate("r", request.messages, auto)))
    assert again.stats.skipped_tokens == 0


def test_a_question_about_a_document_that_was_read_needs_no_passage_of_the_new_one(engine: Engine) -> None:
    auto = settings(**{"prefill.mode": "auto", "prefill.threshold_tokens": 500})
    read_slowly(engine)
    first = Message("user", "What is green?", (Attachment("a.txt", "The heron of the harbour is green."),))
    finished, _ = ended(engine.generate(Generate("r", (first,), auto)))
    assert finished.effective.reading == "dense"
    text = "Nothing else is told in it, at no place. " * 80
    second = Message("user", "Is the heron of the harbour green?", (Attachment("b.txt", text),))
    finished, _ = ended(engine.generate(Generate("r", (first, Message("assistant", "a"), second), auto)))
    assert finished.effective.reading == "sparse"


@pytest.mark.parametrize("words", ["Continue the text.", "Where is the flow?"])
def test_a_text_that_is_to_go_on_is_read_from_its_end_and_says_so(engine: Engine, words: str) -> None:
    """Three quarters of the places; as many passages as for a question."""
    text = "The flow of the plain is slow. " + "Words go on and on, and nothing else is said here. " * 60
    request = Generate("r", (Message("user", words, (Attachment("a.txt", text),)),), settings())
    finished, events = ended(engine.generate(request))
    found = map_of(events)
    goes_on = words.startswith("Continue")
    assert ("continues the text" in finished.effective.reading_reason) == goes_on
    wanted = math.ceil(0.1 * found.prompt_tokens / 32)
    *_, first_of_the_end = (p for p in found.passages if p.end <= found.prompt_tokens - 512)
    latest = found.passages[: found.passages.index(first_of_the_end) + 1][-round(0.75 * wanted) :]
    assert all(passage.kept for passage in latest) == goes_on


@pytest.mark.parametrize("scorer", ["draft-model"])
def test_what_is_pointed_at_is_read_on_from_there(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch, scorer: str
) -> None:
    """One passage has all the attention, the others hardly any: those behind it are read."""

    def scores(inputs: ScorerInputs) -> Scoring:
        yield ScoringStep(inputs.passages.end)
        found = np.random.default_rng(5).random(len(inputs.ids)).astype(np.float32) * 0.2
        found[320:352] = 1.0
        return Scored(carried(means_of(found, inputs.passages)), True)

    monkeypatch.setitem(SPECS, scorer, replace(SPECS[scorer], score=scores))
    text = "Words go on and on, and nothing else is said here. " * 40
    chosen = settings(folder, **{"prefill.scorer": scorer, "sampling.max_tokens": 1})
    request = Generate("r", (Message("user", "Where is it?", (Attachment("a.txt", text),)),), chosen)
    found = map_of(list(engine.generate(request)))
    first = next(at for at, passage in enumerate(found.passages) if passage.start == 320)
    assert [passage.kept for passage in found.passages[first : first + 5]] == [True] * 5
    assert sum(passage.kept for passage in found.passages) < 40


def test_the_map_points_into_the_documents(engine: Engine) -> None:
    first = "  " + "words of the first paper go on. " * 40
    second = "The second paper talks of zebras and barns at length. " * 40
    messages = (
        Message("user", "Hello", (Attachment("one.txt", first),)),
        Message("assistant", "Hello, I have read it."),
        Message("user", "Where are the zebras?", (Attachment("two.txt", second),)),
    )
    events = list(engine.generate(Generate("r", messages, settings(**{"prefill.keep_pct": 30}))))
    found = map_of(events)
    texts = (first, second)
    assert {passage.source for passage in found.passages} >= {0, 1}
    ids = engine.sequence.tokens
    for passage in found.passages:
        if passage.source < 0:
            continue
        words = texts[passage.source][passage.first_char : passage.last_char]
        told = engine.loaded.tokenizer.decode(ids[passage.start : passage.end])
        assert words.strip() in told
        assert len(words) > 1
    for source in (0, 1):
        own = [p for p in found.passages if p.source == source]
        assert own[0].first_char == (2 if source == 0 else 0)
        assert own[-1].last_char == len(texts[source].rstrip())


def test_the_draft_model_s_cache_is_gone_before_the_target_reads(
    engine: Engine, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[weakref.ref[CachedSequence]] = []
    scoring = DraftModels.scoring

    def noted(self: DraftModels, reference: str, *, drafts: bool) -> Any:
        draft = scoring(self, reference, drafts=drafts)
        held.append(weakref.ref(draft.sequence))
        return draft

    monkeypatch.setattr(DraftModels, "scoring", noted)
    chosen = settings(folder, **{"prefill.scorer": "draft-model"})
    for event in engine.generate_ids(prompt_of(27), chosen):
        if isinstance(event, PrefillProgress) and event.phase == "scoring":
            assert held[0]() is not None
        if isinstance(event, ReadingMap):
            assert held[0]() is None
    assert len(held) == 1


# ---- what goes wrong


@pytest.mark.parametrize("scorer", READERS)
def test_an_error_of_a_scorer_reads_everything_and_says_so(
    engine: Engine, folder: Path, scorer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt = prompt_of(14)
    dense = run(engine, prompt, settings(**{"prefill.mode": "off"}))[0]
    engine.forget()

    def broken(*_: object) -> Any:
        raise ValueError("no luck")

    monkeypatch.setitem(SPECS, scorer, replace(SPECS[scorer], score=broken))
    tokens, finished, _ = run(engine, prompt, settings(folder, **{"prefill.scorer": scorer}))
    assert tokens == dense
    assert (finished.effective.reading, finished.stats.skipped_tokens) == ("dense", 0)
    (change,) = finished.effective.changes
    assert "no luck" in change.reason
    assert engine.sequence.skipped == 0


@lru_cache
def cold(folder: Path, seed: int) -> list[int]:
    """The answer to `prompt_of(seed)` of an engine that did nothing before, all of it read."""
    engine = endless(folder)
    answer = run(engine, prompt_of(seed), settings(**{"prefill.mode": "off"}))[0]
    engine.unload()
    return answer


@pytest.mark.sweep
@pytest.mark.parametrize("call", thinned([1, 2, 3, 5, 9, 14, 15, 17], keep=[1, 5, 15]))
@pytest.mark.parametrize("scorer", READERS)
def test_a_forward_that_fails_at_any_time_leaves_nothing_behind(
    engine: Engine, folder: Path, call: int, scorer: str
) -> None:
    """The next dense answer is that of a fresh engine, and the model is as it was."""
    prompt, chosen = prompt_of(15), settings(folder, **{"prefill.scorer": scorer, "prefill.mode": "on"})
    if scorer == "draft-model":  # loaded before, as loading runs a forward too
        engine._session.drafts.scoring(str(folder), drafts=False)
    model = engine.loaded.model
    before = [(id(r.owner), id(r.rope)) for r in rotations(model)]
    layer = model.layers[1]
    kind = type(layer)
    own = kind.__call__
    calls = 0

    def failing(self: Any, *args: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call:
            raise ValueError("a layer failed")
        return own(self, *args, **options)

    kind.__call__ = failing  # type: ignore[method-assign]
    try:
        _, finished, _ = run(engine, prompt, chosen)
        assert "a layer failed" in str(finished.effective.changes) or calls >= call
    except ValueError:
        pass  # it failed while the answer was written, or while reading densely
    finally:
        kind.__call__ = own  # type: ignore[method-assign]
    assert calls >= call
    assert [(id(r.owner), id(r.rope)) for r in rotations(model)] == before
    assert run(engine, prompt, settings(**{"prefill.mode": "off"}))[0] == cold(folder, 15)


@pytest.mark.sweep
@pytest.mark.parametrize("looks", thinned([0, 1, 4, 9, 12, 14, 15, 18, 25], keep=[1, 9, 14]))
@pytest.mark.parametrize("scorer", READERS)
def test_a_cancel_at_any_time_leaves_nothing_half_read(
    engine: Engine, folder: Path, looks: int, scorer: str
) -> None:
    prompt, chosen = prompt_of(16), settings(folder, **{"prefill.scorer": scorer})
    asked = 0

    def cancelled() -> bool:
        nonlocal asked
        asked += 1
        return asked > looks

    tokens, finished, _ = run(engine, prompt, chosen, cancelled)
    assert finished.reason == "cancelled"
    assert asked == looks + 1
    sequence = engine.sequence
    if not tokens:
        assert sequence.tokens in ([], prompt[:-1])
        assert sequence.skipped == 0 or sequence.tokens
    assert run(engine, prompt, settings(**{"prefill.mode": "off"}))[0] == cold(folder, 16)


def test_a_draft_model_that_cannot_score_is_refused_before_anything_is_read(
    engine: Engine, tmp_path: Path, folder: Path
) -> None:
    prompt = prompt_of(17)
    with pytest.raises(DraftModelError, match="none was chosen"):
        run(engine, prompt, settings(**{"prefill.scorer": "draft-model"}))
    stranger = tmp_path / "stranger"
    write_toy_model(stranger, max_position_embeddings=CONTEXT_TOKENS)
    told = (stranger / "tokenizer.json").read_text().replace("<|system|>", "<|other|>")
    (stranger / "tokenizer.json").write_text(told)
    with pytest.raises(DraftModelError, match="different tokenizers"):
        run(engine, prompt, settings(stranger, **{"prefill.scorer": "draft-model"}))
    assert run(engine, prompt, settings())[1].effective.reading == "sparse"


def test_a_document_longer_than_the_context_is_refused_also_if_little_is_kept(engine: Engine) -> None:
    with pytest.raises(PromptTooLongError, match="more than"):
        run(engine, prompt_of(18, CONTEXT_TOKENS + 100), settings(**{"prefill.keep_pct": 1}))


def test_auto_goes_by_words_whatever_else_is_loaded(engine: Engine, folder: Path) -> None:
    run(engine, prompt_of(20, 600), settings(folder, **{"drafting.drafter": "draft-model"}))
    _, finished, _ = run(engine, prompt_of(19), settings(folder, **{"prefill.scorer": "auto"}))
    assert (finished.effective.reading, finished.effective.scorer) == ("sparse", "lexical")
    assert finished.effective.changes == ()
