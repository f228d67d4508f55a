"""The engine as one matrix: whatever drafts, an answer is that of plain decoding, and all it reports is true.

A case is a chat on one architecture with one drafter. It is drawn by seed how the chat is sampled, read,
cached and verified, and for each turn what is asked for (a grammar, a prediction, a bias, …), how the answer
ends, and what comes before it (more text, an edit, another chat, a question apart, a restart). Each answer is
compared with that of an engine that drafts nothing and starts cold (or, where passages were skipped, has read
the same turns), and with mlx-lm's own loop where nothing but the likeliest tokens is asked for. `assert_true`
is what holds after any answer.

Registration alone puts a drafter in here. `make test` has every drafter on Llama, two on each other kind of
cache, four kinds of heads, and two models that see, in whose chats rows of images stand between tokens; the
sweeps have all pairs, all heads, and all models that see.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.models.cache import QuantizedKVCache, make_prompt_cache
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace

from core.engine.engine import Engine
from core.events import (
    FIRST_IMAGE_ROW,
    Event,
    Finished,
    Gauges,
    Generate,
    Grammar,
    Message,
    PrefillProgress,
    Token,
)
from core.heads.draft_head import DraftHead
from core.heads.head_loader import load_head
from core.kv.mlx_lm_caches import leaves
from core.kv.saved_files import SavedFiles
from core.models.loader import LoadedModel
from core.models.parts import rotations
from core.settings import Settings
from core.settings.declaration import declared, read
from core.settings.prefill import KvCache
from tests.core.architectures import ARCHITECTURES, FULL, build, wide
from tests.core.decoding.test_loop import assert_cache_equals_cold_start, prompt_with_repetition
from tests.core.engine.support import DRAFTING, ONE_OF_EACH, engine_of, settings
from tests.core.engine.test_sparse_session import prompt_of
from tests.core.headed_models import CONFIGS, write_headed_model
from tests.core.published_heads import OTHERS, write_drafted_model
from tests.core.seeing import FAMILIES, image, write_seeing_model, write_seeing_tokenizer
from tests.core.toy import write_toy_model

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

CONTEXT_TOKENS = 2048
TURNS = 3
CHAT = "a chat"
# Saved chats are loaded if they have so many tokens.
LEAST_SAVED_TOKENS = 256
# Ids of more than a byte's worth are parts of characters; without them, what is written can be predicted.
# Control tokens that stand in a predicted text are no tokens of it.
ASCII = {token: -100.0 for token in range(260) if token in (1, 2, 3) or token > 97}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 6},
        "kind": {"enum": ["alpha", "alpine", "beta"]},
        "counts": {"type": "array", "maxItems": 2, "items": {"type": "integer", "minimum": 0, "maximum": 99}},
    },
    "required": ["first_name", "kind", "counts"],
    "additionalProperties": False,
}
SAMPLINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "sampled": {"sampling.temperature": 0.4, "sampling.top_p": 0.95, "sampling.top_k": 40},
    "repetition": {"sampling.repetition_penalty": 1.1},
    # Below 1 and 0 they make answers that repeat themselves, so that drafts are accepted early.
    "rewarded": {"sampling.repetition_penalty": 0.8, "sampling.temperature": 0.7},
    "penalties": {"sampling.frequency_penalty": 0.8, "sampling.presence_penalty": 0.5},
    "negative": {"sampling.frequency_penalty": -0.2, "sampling.presence_penalty": -1.0},
    "no repeat": {"sampling.no_repeat_ngram_size": 4, "sampling.presence_penalty": -1.0},
}
DENSE: dict[str, object] = {"prefill.mode": "off"}
SPARSE = {
    "prefill.mode": "on",
    "prefill.scorer": "lexical",
    "prefill.passages": "fixed",
    "prefill.keep_pct": 7,
}
WISHES = ("bias", "logprobs", "prediction", "grammar", "stop repeating")
BEFORE = ("more", "edit", "another chat", "apart", "restart")
ENDS = ("length", "cancel", "stop token", "stop text", "abandoned")
# As short as what a penalty looks back on, shorter, and longer.
LENGTHS = (1, 30, 63, 64, 65, 300)
SOURCES = {"ngram-mod": {"table"}, "mtp": {"head"}, "draft-model": {"draft model"}}
NOT_QUANTISED = ("gpt_oss", "deepseek_v3")
# Chats with a head in the model's file, an assistant, a block drafter; the others are sweeps.
FEW_HEADS = {"qwen3_5": 2, "gemma4-small": 1, "dflash": 1}
WITH_HEAD = " with a head"
# Chats of models that see, whose prompts have rows of images; the others are sweeps.
FEW_SEEING = {"qwen3_5": 1, "gemma4 both ways": 2}
SEEING = " that sees"
# Tokens drafted in each chat of a drafter that may draft.
DRAFTED: dict[str, list[int]] = {}


class Case(NamedTuple):
    """A chat. `seed` draws the rest. `architecture` ends with `WITH_HEAD` where the model has one, with
    `SEEING` where the chat has images.
    """

    architecture: str
    drafter: str
    sampling: str
    reading: str
    bits: str
    exactness: str
    seed: int


def cases() -> Iterator[Any]:
    """All pairs, with the rest dealt out evenly."""
    dealt = [list(SAMPLINGS), ["dense", "dense", "sparse"], ["off", "off", "8", "off", "4"], ["fast"] * 10]
    dealt[-1].append("exact")
    few = {"llama": DRAFTING * 3, "llama4": ["auto", "cacheback", "ngram-mod"]}
    seed = 0
    for architecture in (*ONE_OF_EACH, *(name for name in ARCHITECTURES if name not in ONE_OF_EACH)):
        quick = few.get(architecture, ["auto", "cacheback"] * 3) if architecture in ONE_OF_EACH else []
        first = {"llama": len(DRAFTING)}.get(architecture, 2)
        for number, drafter in enumerate([*quick, *DRAFTING]):
            case = Case(architecture, drafter, *(each[seed % len(each)] for each in dealt), seed)
            # Further rounds of the same drafters, with other draws, are sweeps.
            marks = () if number < min(first, len(quick)) else pytest.mark.sweep
            yield pytest.param(case, id="-".join(map(str, case)), marks=marks)
            seed += 1
    dealt[2] = ["off"]
    for name in (*CONFIGS, *OTHERS):
        for number, drafter in enumerate(["mtp", "auto"] * 2):
            case = Case(f"{name}{WITH_HEAD}", drafter, *(each[seed % len(each)] for each in dealt), seed)
            marks = () if number < FEW_HEADS.get(name, 0) else pytest.mark.sweep
            yield pytest.param(case, id="-".join(map(str, case)), marks=marks)
            seed += 1
    for name in FAMILIES:
        for number, drafter in enumerate(["auto", "cacheback", *DRAFTING]):
            case = Case(f"{name}{SEEING}", drafter, *(each[seed % len(each)] for each in dealt), seed)
            marks = () if number < FEW_SEEING.get(name, 0) else pytest.mark.sweep
            yield pytest.param(case, id="-".join(map(str, case)), marks=marks)
            seed += 1


@cache
def model_of(architecture: str, *, quantised: bool) -> Any:
    """Wide heads are needed for quantised caches."""
    if quantised:
        return wide(architecture, CONTEXT_TOKENS)
    spec = ARCHITECTURES[architecture]
    return build({**spec.config, "max_position_embeddings": CONTEXT_TOKENS}, spec.weight_scale)


@pytest.fixture(scope="module")
def plains() -> Iterator[dict[object, Engine]]:
    """Engines that draft nothing, by model and cache."""
    made: dict[object, Engine] = {}
    yield made
    for each in made.values():
        each.unload()


@pytest.fixture
def plain(
    case: Case,
    plains: dict[object, Engine],
    tokenizer: TokenizerWrapper,
    tmp_path_factory: pytest.TempPathFactory,
) -> Engine:
    key = (case.architecture, case.bits)
    # A folder identifies the model in files of saved chats.
    folder = tmp_path_factory.mktemp("models") / "model"
    name = case.architecture.removesuffix(WITH_HEAD).removesuffix(SEEING)
    if key not in plains and name != case.architecture:
        if case.architecture.endswith(SEEING):
            write_seeing_model(folder, name)
        else:
            (write_headed_model if name in CONFIGS else write_drafted_model)(folder, name)
        plains[key] = Engine()
        plains[key].load(str(folder))
        plains[key].try_out()
    elif key not in plains:
        write_toy_model(folder)
        model = model_of(case.architecture, quantised=case.bits != "off")
        kv = KvCache(case.bits)  # type: ignore[arg-type]
        plains[key] = engine_of(case.architecture, tokenizer, str(folder), model, kv, CONTEXT_TOKENS)
    plains[key].forget(tables=True)
    return plains[key]


class Answer(NamedTuple):
    """What an engine told of the answer to `prompt`. `finished`: None if it was abandoned."""

    prompt: list[int]
    asked: Generate
    events: list[Event]
    finished: Finished | None

    @property
    def tokens(self) -> list[Token]:
        return [event for event in self.events if isinstance(event, Token)]

    @property
    def ids(self) -> list[int]:
        return [token.id for token in self.tokens]

    @property
    def text(self) -> str:
        return "".join(token.text for token in self.tokens)


def answer(
    engine: Engine,
    prompt: Sequence[int],
    asked: Generate,
    *,
    most: int = 10**9,
    abandons: bool = False,
    eos: frozenset[int] = frozenset(),
) -> Answer:
    """The answer, cancelled or abandoned after `most` tokens."""
    told: list[Event] = []
    count = 0
    engine.loaded.eos = eos
    events = engine.generate_ids(prompt, asked.settings, lambda: count >= most, also=asked)
    for event in events:
        told.append(event)
        count += isinstance(event, Token)
        if abandons and count >= most:
            events.close()  # type: ignore[attr-defined]
            break
    engine.loaded.eos = frozenset()
    finished = told[-1] if isinstance(told[-1], Finished) else None
    return Answer([*prompt], asked, told, finished)


class Chat:
    """A drawn chat: `text` is all that was asked and answered."""

    def __init__(self, case: Case, plain: Engine, home: Path, draft_model: Path) -> None:
        self.case, self.plain, self.loaded = case, plain, plain.loaded
        self.rng, self.draft_model = random.Random(case.seed), draft_model
        self.kinds = {type(each).__name__ for each in leaves(make_prompt_cache(self.loaded.model))}
        self.sparse = case.reading == "sparse"
        self.values = {**SAMPLINGS[case.sampling], **(SPARSE if self.sparse else DENSE)}
        self.values |= {"kv.bits": case.bits, "prefill.chunk_tokens": self.rng.choice((32, 100, 512))}
        self.values["gate.mode"] = self.rng.choice(("auto", "always"))
        self.head: DraftHead | None = None
        if case.architecture.endswith(WITH_HEAD):
            self.values["draft_model.model"] = ""
            self.head = load_head(self.loaded.model, Path(self.loaded.info.path))
        self.files = SavedFiles(home / "contexts")
        self.pictures: tuple[Message, ...] = ()
        if self.sees:
            self.draft_model = home / "draft"  # asked only while no image is held
            write_toy_model(self.draft_model)
            write_seeing_tokenizer(self.draft_model, case.architecture.removesuffix(SEEING))
            sizes = enumerate(((40, 24), (64, 32), (17, 90)))
            self.pictures = (Message("user", "", images=tuple(image(home, at, *size) for at, size in sizes)),)
        self.rotations = found_rotations(self.loaded)
        self.text: list[int] = []
        self.drafted = 0
        self.engine = self.started()

    def started(self) -> Engine:
        """An engine after a start of the worker."""
        engine = Engine(saved_files=self.files)
        engine.use(self.loaded)
        return engine

    @property
    def sees(self) -> bool:
        return self.case.architecture.endswith(SEEING)

    def with_image(self, text: Sequence[int]) -> list[int]:
        """`text` with the rows of an image before one of its tokens, if the model sees."""
        if not self.sees:
            return [*text]
        family = self.engine._session.eyes().family
        rows, at = family.rows_of(self.rng.choice(self.pictures[0].images)), self.rng.randrange(len(text))
        return [*text[:at], *rows, *text[at:]]

    def cut(self, text: Sequence[int], length: int) -> list[int]:
        """The beginning of `text`, which divides no image."""
        while 0 < length < len(text) and min(text[length - 1 : length + 1]) >= FIRST_IMAGE_ROW:
            length -= 1
        return [*text[:length]]

    def settings(self, drafter: str, **values: object) -> Settings:
        exactness = {"decoding.exactness": self.case.exactness}
        return settings(drafter, self.draft_model, **{**exactness, **self.values, **values})

    def turn(self, number: int) -> None:
        """A turn, with what comes before it."""
        rng = self.rng
        before = rng.choice(BEFORE) if number else "start"
        held = self.go_on(before)
        wishes = set(rng.sample(WISHES, rng.choice((0, 1, 1, 2))))
        tokens = 300 if "grammar" in wishes else rng.choice((60, 60, 60, 17, 2, 1))
        eos = frozenset({0, 2}) if "grammar" in wishes else frozenset[int]()
        if not self.sparse:
            self.plain.forget(tables=True)
        expected = answer(self.plain, self.text, self.asked("off", wishes, tokens), eos=eos)
        assert expected.finished is not None
        assert_true(expected)

        # What a cache that forgets lost cannot be skipped again as it was, so there an answer is whole.
        ends = ENDS if not self.sparse or self.kinds == {FULL} else ENDS[:1]
        end = (
            rng.choice(ends)
            if "grammar" not in wishes and min(len(expected.text), 3 * len(expected.ids)) > 9
            else "length"
        )
        asked = self.asked(self.case.drafter, wishes, tokens, expected)
        wanted, text, reason = expected.ids, expected.text, expected.finished.reason
        most = rng.randint(1, len(wanted)) if end in ("cancel", "abandoned") else 10**9
        if end == "stop token":
            eos = frozenset({rng.choice(wanted[3:])})
            wanted = wanted[: next(at for at, token in enumerate(wanted) if token in eos) + 1]
            reason = "stop"
        elif end == "stop text":
            start = rng.randrange(len(text))
            stop = text[start : start + rng.randint(1, 4)]
            asked, text, reason = replace(asked, stops=("never said", stop)), text[: text.index(stop)], "stop"
        got = answer(self.engine, self.text, asked, most=most, abandons=end == "abandoned", eos=eos)

        note = f"turn {number}: {before}, {sorted(wishes)}, {end}"
        assert got.ids == wanted[: len(got.ids)], note
        assert len(got.ids) >= min(most, len(wanted)) or end == "stop text", note
        assert end != "stop text" or got.text == text, note
        if got.finished is not None and got.finished.reason == "repetition":
            assert got.finished.repeats_from == expected.finished.repeats_from, note
        self.text += got.ids
        if got.finished is not None:
            # A cancel behind the last token comes too late.
            assert got.finished.reason in {reason, "cancelled" if end == "cancel" else reason}, note
            assert_true(got)
            self.assert_as_expected(got, expected)
            self.assert_reused(got, held, restarted=before == "restart")
            self.drafted += got.finished.stats.drafted
        self.assert_valid(got, [*expected.prompt, *expected.ids])

    def go_on(self, before: str) -> list[int]:
        """What comes before a question, and the question. Returns what the cache held before."""
        rng, sequence = self.rng, self.engine.sequence
        held = list(sequence.tokens)
        if before == "start":
            length = 800 if self.sparse else rng.choice(LENGTHS)
            self.text = self.with_image(prompt_of(self.case.seed, length))
        elif before == "edit" and not self.sparse:
            self.text = self.cut(self.text, rng.randint(1, len(self.text)))
        elif before == "another chat" and not self.sparse:
            chosen = self.settings("auto", **{"sampling.max_tokens": 8})
            answer(self.engine, prompt_with_repetition(rng, 30), Generate("", (), chosen))
        elif before == "restart":
            self.engine.unload()
            assert not list(self.files.folder.glob(".*"))
            self.engine = self.started()
        elif before == "apart":
            self.ask_apart()
        if before != "start":
            more = prompt_with_repetition(rng, rng.randint(1, 20))
            self.text += self.with_image(more) if self.sees and rng.random() < 0.5 else more
        return held

    def ask_apart(self) -> None:
        """A question that knows nothing, and that nothing notices."""
        engine, family = self.engine, self.loaded.info.family
        sequence, held = engine.sequence, list(engine.sequence.tokens)
        figures = [each.figures() for each in engine.memory.tables.for_family(family)]
        chosen = self.settings(self.case.drafter, **{"sampling.max_tokens": 12, **DENSE})
        asked = Generate("", self.pictures, chosen, isolated=True)
        got = answer(engine, [*self.cut(self.text, 200), *prompt_with_repetition(self.rng)], asked)
        assert got.finished is not None
        assert got.finished.stats.reused_tokens == 0
        if got.finished.effective.drafter == "draft-model":
            *_, read = [each for each in got.events if isinstance(each, PrefillProgress)]
            assert read.total_tokens == 2 * (len(got.prompt) - 1), "the draft model forgets, too"
        assert engine.sequence is sequence
        assert sequence.tokens == held
        assert [each.figures() for each in engine.memory.tables.for_family(family)] == figures

    def asked(self, drafter: str, wishes: set[str], tokens: int, expected: Answer | None = None) -> Generate:
        """The next request. What is predicted is a version of the `expected` answer."""
        also: dict[str, Any] = {"stop_repeating": "stop repeating" in wishes}
        if "bias" in wishes:
            also["logit_bias"] = {7: 3.0, 40: -100.0, 41: 2.5, 259: 1.0}
        if "logprobs" in wishes:
            also["top_logprobs"] = 3
        if "grammar" in wishes:
            also["grammar"] = Grammar("json_schema", json.dumps(SCHEMA), drafts=drafter != "off")
        if "prediction" in wishes:
            also["logit_bias"] = ASCII
        if "prediction" in wishes and expected is not None:
            text = expected.text
            half = text[: len(text) // 3] + "?" * 20 + text[len(text) // 2 :]
            odd = "\U0001f600\x00\ud800 <|end|> é" * 5
            also["prediction"] = self.rng.choice((text, text, half, text[::-1], odd))
        chosen = self.settings(drafter, **{"sampling.max_tokens": tokens})
        return Generate("r", self.pictures, chosen, chat=CHAT if expected else "", **also)

    def assert_as_expected(self, got: Answer, expected: Answer) -> None:
        """What else is told is what it is without drafts, and in fewer steps where that is certain."""
        finished, asked = got.finished, got.asked
        assert finished is not None
        stats = finished.stats
        for one, other in zip(got.tokens, expected.tokens):
            assert (one.logprob is None) == (asked.top_logprobs is None)
            for value, wanted in ((one, other), *zip(one.likely, other.likely, strict=True)):
                assert value.logprob == pytest.approx(wanted.logprob, abs=5e-3)
        if asked.grammar is not None and finished.reason == "stop":
            jsonschema.validate(json.loads(got.text), SCHEMA)
        if finished.effective.drafter == "off":
            return
        if asked.grammar is not None and not asked.prediction and len(got.ids) > 40:
            assert stats.forced > 0.3 * stats.tokens
        if asked.prediction and asked.prediction == expected.text and len(got.ids) == len(expected.ids) > 40:
            assert stats.prediction_accepted == len(self.loaded.tokenizer.encode(expected.text))
            assert stats.steps < stats.tokens / 2
        is_plain = self.case.sampling == "greedy" and not (asked.grammar or asked.logit_bias)
        is_plain = is_plain and not self.sees
        if is_plain and not self.sparse and self.case.bits == "off" and finished.reason == "length":
            steps = generate_step(mx.array(got.prompt), self.loaded.model, max_tokens=len(got.ids))
            assert got.ids == [int(token) for token, _ in steps]

    def assert_reused(self, got: Answer, held: list[int], *, restarted: bool) -> None:
        """What the cache held is not read again: all of it, or the shared part where it can be cut."""
        assert got.finished is not None
        stats, prompt = got.finished.stats, got.prompt
        pairs = enumerate(zip(held, prompt))
        shared = next((at for at, (one, other) in pairs if one != other), min(len(held), len(prompt)))
        if restarted:
            assert stats.disk_tokens > 0 or shared < LEAST_SAVED_TOKENS or shared < len(held)
        else:
            assert stats.disk_tokens == 0
            if shared == len(held) or self.engine.sequence.keeps_all:
                assert stats.reused_tokens + stats.skipped_tokens >= min(shared, len(prompt) - 1)

    def assert_valid(self, got: Answer, whole: list[int]) -> None:
        """The cache holds a prefix of what was shown, and nothing that an answer put up is left.

        One that cannot be cut, or that nobody waited for, may hold more of the `whole` answer.
        """
        sequence = self.engine.sequence
        held = sequence.tokens
        cut = sequence.keeps_all and got.finished is not None
        assert held == (self.text if cut else whole)[: len(held)]
        # Accepted tokens of a block that was not taken whole wait, up to eight before one more block.
        block = max(Counter(token.step for token in got.tokens).values(), default=1)
        assert len(held) >= len(self.text) - 1 - (1 if sequence.keeps_all else 8 + block)
        assert sequence.columns.count == len(held) - sequence.skipped
        if self.kinds == {FULL} and self.case.bits == "off" and not (sequence.skipped or self.sees):
            assert_cache_equals_cold_start(self.loaded.model, sequence)
        entries = list(leaves(sequence.cache))
        if self.case.bits != "off" and self.case.architecture not in NOT_QUANTISED:
            kinds = ARCHITECTURES[self.case.architecture].caches
            assert [isinstance(each, QuantizedKVCache) for each in entries] == [
                kind == FULL for kind in kinds
            ]
        if self.head is not None and sequence.head is not None:
            self.assert_head_follows(self.head, whole)
        assert not any("make_mask" in vars(entry) for entry in entries)
        assert found_rotations(self.loaded) == self.rotations

    def assert_head_follows(self, head: DraftHead, whole: list[int]) -> None:
        """The head's cache is what it computes from the hidden states of one pass over the tokens.

        The first token has no hidden state before it, and those that were skipped or loaded have none.
        A model's cache that was set back to a snapshot may hold fewer tokens.
        """
        sequence = self.engine.sequence
        own = sequence.head
        assert own is not None
        held = len(own.tokens)
        assert own.tokens == whole[:held]
        assert own.columns.count == held - own.skipped
        assert own.skipped > sequence.skipped
        if own.skipped > 1 or head.new_cache is None:
            return
        ids, cache = mx.array([own.tokens]), head.new_cache()
        _, states = head.parts.read(ids, make_prompt_cache(self.loaded.model), head.layers)
        head.step(ids[:, 1:], head.fuse(states)[:, :-1], cache)
        for mine, entry in zip(own.cache, cache, strict=True):
            for one, other in ((mine.keys, entry.keys), (mine.values, entry.values)):
                assert mx.abs(one[..., : held - 1, :] - other[..., : held - 1, :]).max().item() < 1e-3


def found_rotations(loaded: LoadedModel) -> list[tuple[int, int]]:
    return [(id(each.owner), id(each.rope)) for each in rotations(loaded.model)]


def assert_true(got: Answer) -> None:
    """What holds after any answer: its figures add up, and each thing that was not done is named."""
    finished, tokens, wanted = got.finished, got.tokens, got.asked.settings
    assert finished is not None
    stats, effective = finished.stats, finished.effective
    assert stats.prompt_tokens == len(got.prompt)
    assert stats.prompt_tokens == stats.reused_tokens + stats.read_tokens + stats.skipped_tokens
    assert stats.disk_tokens <= stats.reused_tokens
    assert stats.tokens == stats.accepted + stats.bonus + stats.normal >= len(tokens)
    assert stats.steps == stats.bonus + stats.normal
    assert stats.forced <= stats.accepted <= stats.tested <= stats.drafted
    assert stats.accepted == sum(each.accepted for each in stats.positions)
    assert stats.tested == sum(each.tested for each in stats.positions)
    assert stats.mean_per_step == pytest.approx(stats.tokens / max(1, stats.steps))
    assert stats.acceptance == pytest.approx(stats.accepted / max(1, stats.tested))
    assert stats.context_used_tokens <= stats.context_tokens == CONTEXT_TOKENS
    assert not stats.occupancy.capacity or stats.occupancy.used <= stats.occupancy.capacity
    if stats.table is not None:
        assert stats.table.used <= stats.table.slots
        assert stats.table.hits <= stats.table.lookups
    *_, gauges = [event for event in got.events if isinstance(event, Gauges)]
    assert (gauges.tokens, gauges.accepted, gauges.tested) == (stats.tokens, stats.accepted, stats.tested)
    if effective.drafter == "off":
        assert gauges.plain_tokens_per_s == 0.0
    elif not stats.drafted:
        assert gauges.plain_tokens_per_s > 0.0

    # Each step that was told whole ends with a token of the model's own; drafted ones have a fitting source.
    assert [token.position for token in tokens] == list(range(len(tokens)))
    for number, step in groupby(tokens, lambda token: token.step):
        *drafted, own = step
        assert {token.origin for token in drafted} <= {"accepted"}
        assert own.origin in ("bonus", "normal") or number == tokens[-1].step
    assert all(bool(token.source) == (token.origin == "accepted") for token in tokens)
    assert all(1 <= token.draft_index <= token.draft_length for token in tokens if token.source)
    sources = {token.source for token in tokens} - {"", "grammar", "prediction"}
    assert effective.drafter == "auto" or sources <= SOURCES.get(effective.drafter, {"n-gram"})

    # The prompt is read from what was there to its end.
    phases = [
        event for event in got.events if isinstance(event, PrefillProgress) and event.phase == "reading"
    ]
    done = [event.done_tokens for event in phases]
    assert done == sorted(done)
    assert done[0] <= stats.reused_tokens
    assert done[-1] == phases[-1].total_tokens

    # No run of tokens comes twice where that is forbidden.
    size = wanted.sampling.no_repeat_ngram_size
    if size and got.asked.grammar is None:
        runs = [tuple(got.ids[at : at + size]) for at in range(len(tokens) - size + 1)]
        assert len(set(runs)) == len(runs)

    # Whatever differs from what was asked for is named, with a reason.
    changed = {change.setting for change in effective.changes}
    assert all(change.reason and change.asked != change.used for change in effective.changes)
    keys = (each.key for each in declared())
    assert {key for key in keys if read(wanted, key) != read(effective.settings, key)} <= changed
    assert (effective.drafter != wanted.drafting.drafter) <= ("drafting.drafter" in changed)
    assert (effective.reading == "sparse") == bool(stats.skipped_tokens)
    assert (wanted.prefill.mode == "on" and not stats.skipped_tokens) <= ("prefill.mode" in changed)
    assert effective.drafter != "off" or stats.drafted == stats.forced
    if effective.drafter != "off":
        assert bool(effective.exactness) == (wanted.decoding.exactness == "exact")


@pytest.mark.parametrize("case", cases())
def test_answers_are_those_of_plain_decoding_and_what_they_report_is_true(
    case: Case, plain: Engine, tmp_path: Path, toy_folder: Path
) -> None:
    chat = Chat(case, plain, tmp_path, toy_folder)
    for number in range(TURNS):
        chat.turn(number)
    chat.ask_apart()
    is_asked = case.drafter != "draft-model" or not chat.sees
    if not chat.engine.sequence.why_no_rollback and case.exactness == "fast" and is_asked:
        DRAFTED.setdefault(case.drafter, []).append(chat.drafted)
        # Nothing may remove the folder of a model that drafts.
        drafts = case.drafter == "draft-model" or (case.drafter == "auto" and not (chat.head or chat.sees))
        assert str(toy_folder) in chat.engine.model_folders or not drafts
    chat.engine.unload()


def test_every_drafter_drafted() -> None:
    """In most of the chats before."""
    for drafter, counts in DRAFTED.items():
        assert sum(count > 0 for count in counts) >= len(counts) // 2, drafter
