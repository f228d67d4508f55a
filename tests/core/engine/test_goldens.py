"""The events of answers are those of the golden file: every drafter, cache, kind of prefill and option.

Block costs are fixed instead of measured. The ids are those of tiny random models, so where mlx-lm's own
greedy ids are other ones, on another kind of processor, nothing can be compared.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.drafting.gate import default_cost
from core.engine.engine import Engine
from core.events import Attachment, Event, Finished, Gauges, Generate, Grammar, Message, Token, Tool, encode
from core.machine.profile import PACES
from core.machine.width_cost import COSTS, LiveCost
from core.settings import Settings, assign_all
from core.settings.declaration import declared, read
from tests.core import golden
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.support import engine_of
from tests.core.engine.test_quantised import wide_once
from tests.core.headed_models import write_headed_model
from tests.core.toy import write_toy_model
from tests.thinned import thinned

TOKENS = 40
SAMPLED = {"sampling.temperature": 0.4, "sampling.top_p": 0.95, "sampling.repetition_penalty": 1.05}
USUAL = {
    "sampling.max_tokens": TOKENS,
    "gate.mode": "always",
    "ngram_simple.n_min": 1,
    "ngram_mod.n": 4,
    "prefill.mode": "off",
}
SPARSE = {"prefill.mode": "on", "prefill.keep_pct": 20}
SCHEMA = {
    "type": "object",
    "properties": {"kind": {"enum": ["alpha", "beta"]}, "name": {"type": "string", "maxLength": 4}},
    "required": ["kind", "name"],
    "additionalProperties": False,
}
BY_SCHEMA = {"grammar": Grammar("json_schema", json.dumps(SCHEMA))}
TOWNS = "\n\n".join(f"The harbour of town {n} has {3 * n} boats and one light." for n in range(24))
QUESTION = Message("user", "abc abc abc. How many boats has town 7?")
DOCUMENT = Message("user", "How many boats has town 7?", (Attachment("towns.txt", TOWNS),))
CALLS = (Tool("boats", "Counts boats.", json.dumps(SCHEMA)),)

# Stands for the toy model.
DRAFT_MODEL = "DRAFT-MODEL"

# Model, drafter, settings, and what else the request has. Requests without messages are the ids of `PROMPT`.
Case = tuple[str, str, Mapping[str, Any], Mapping[str, Any]]
CASES: dict[str, Case] = {
    **{f"{name} greedy": ("llama", name, {}, {})
       for name in ("off", "auto", "ngram-simple", "ngram-mod", "frequency", "cacheback", "draft-model")},
    **{f"{name} sampled": ("llama", name, SAMPLED, {})
       for name in ("off", "auto", "ngram-simple", "ngram-mod", "frequency", "cacheback", "draft-model")},
    "auto with the draft model": ("llama", "auto", {"draft_model.model": DRAFT_MODEL}, {}),
    "cacheback with the paper's tree": ("llama", "cacheback", {"cacheback.tree": "paper"}, {}),
    "gate": ("llama", "ngram-simple", {"gate.mode": "auto"}, {}),
    "prediction": ("llama", "auto", {}, {"prediction": "to be drafted from"}),
    "bias and likely tokens": ("llama", "auto", {}, {"logit_bias": {33: 4.0}, "top_logprobs": 2}),
    "mtp greedy": ("qwen3_5 with a head", "mtp", {}, {}),
    "mtp sampled": ("qwen3_5 with a head", "mtp", SAMPLED, {}),
    "mtp in auto": ("qwen3_5 with a head", "auto", {}, {}),
    "mtp that the model lacks": ("llama", "mtp", {}, {}),
    "recurrent off": ("qwen3_5", "off", {}, {}),
    "recurrent cacheback": ("qwen3_5", "cacheback", {}, {}),
    "recurrent auto sampled": ("qwen3_5", "auto", SAMPLED, {}),
    "window cacheback": ("gemma3_text", "cacheback", {}, {}),
    "chunked ngram-mod": ("llama4", "ngram-mod", {}, {}),
    "quantised auto": ("wide llama", "auto", {"kv.bits": "8"}, {}),
    "quantised cacheback": ("wide llama", "cacheback", {"kv.bits": "4"}, {}),
    "quantised window sampled": ("wide gemma3_text", "ngram-simple", {"kv.bits": "8", **SAMPLED}, {}),
    "schema": ("long", "auto", {}, {"messages": (QUESTION,), **BY_SCHEMA}),
    "schema sampled": ("long", "ngram-simple", SAMPLED, {"messages": (QUESTION,), **BY_SCHEMA}),
    "tools": ("long", "auto", {}, {"messages": (QUESTION,), "tools": CALLS}),
    "stop text": ("long", "ngram-mod", {}, {"messages": (QUESTION,), "stops": ("e", "a")}),
    "continuation": ("long", "auto", {}, {"messages": (QUESTION,), "continuation": (40, 41, 42)}),
    "raw": ("long", "frequency", {}, {"messages": (QUESTION,), "raw": True}),
    "dense document": ("long", "auto", {}, {"messages": (DOCUMENT,)}),
    "sparse by words": ("long", "auto", {**SPARSE, "prefill.scorer": "lexical"}, {"messages": (DOCUMENT,)}),
    "sparse by the draft model": (
        "long", "draft-model", {**SPARSE, "prefill.scorer": "draft-model"}, {"messages": (DOCUMENT,)}),
    "sparse with fixed chunks": (
        "long", "cacheback", {**SPARSE, "prefill.scorer": "lexical", "prefill.passages": "fixed"},
        {"messages": (DOCUMENT,)}),
    "sparse by a schema": (
        "long", "auto", {**SPARSE, "prefill.scorer": "lexical"}, {"messages": (DOCUMENT,), **BY_SCHEMA}),
}  # fmt: skip
LATER = (DOCUMENT, Message("assistant", "Some."), Message("user", "And what has town 11?"))

FEW = [
    "auto greedy",
    "cacheback sampled",
    "ngram-mod greedy",
    "prediction",
    "mtp greedy",
    "recurrent cacheback",
    "window cacheback",
    "quantised cacheback",
    "schema",
    "tools",
    "sparse by words",
]

_STEPS_A_LINE = 10
# What the cases are about, in `Finished`: a figure more, or one that follows from these, changes no case.
_STATS = {
    *("prompt_tokens", "reused_tokens", "disk_tokens", "read_tokens", "skipped_tokens", "read_on_tokens"),
    *("scored_tokens", "kept_tokens", "tokens", "accepted", "bonus", "normal", "steps", "drafted", "tested"),
    *("forced", "prediction_accepted", "prediction_rejected", "positions", "occupancy", "table"),
}
_EFFECTIVE = {
    *("drafter", "settings", "gate", "changes", "reading", "reading_reason", "scorer", "format", "exactness"),
    "unmatched",
}
_VARYING = ("_s", "_us_median", "_ms_median", "_us_p99", "_bytes", "seconds_left", "fraction", "request")


@pytest.fixture(autouse=True)
def fixed_costs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps cost what a block of their width usually does, and nothing was timed before by other tests."""
    for store in (PACES, COSTS):
        monkeypatch.setattr(store, "load", lambda key: None)
    measured = LiveCost.step
    monkeypatch.setattr(
        LiveCost, "step", lambda self, width, _, **kind: measured(self, width, default_cost(width) / 100)
    )


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, TokenizerWrapper], Engine]]:
    """Engines by the names in `CASES`, each with nothing in its caches."""
    made: dict[str, Engine] = {}

    def engine(name: str, tokenizer: TokenizerWrapper) -> Engine:
        if name not in made:
            folder = tmp_path_factory.mktemp("models") / "model"
            if name.endswith("with a head"):
                write_headed_model(folder, name.split()[0])
            elif name == "long":
                write_toy_model(folder, max_position_embeddings=4096)
            if folder.exists():
                made[name] = Engine()
                made[name].load(str(folder))
                made[name].loaded.eos = frozenset()
                made[name].try_out()
            else:
                wide = name.removeprefix("wide ")
                made[name] = engine_of(wide, tokenizer, model=wide_once(wide) if wide != name else None)
        made[name].forget(tables=True)
        return made[name]

    yield engine
    for each in made.values():
        each.unload()


def prompt_of(model: str) -> list[int]:
    return prompt_with_repetition(random.Random(model))


def settings(drafter: str, draft_model: Path, values: Mapping[str, Any]) -> Settings:
    model = {"draft_model.model": DRAFT_MODEL} if drafter == "draft-model" else {}
    chosen = {**USUAL, "drafting.drafter": drafter, **model, **values}
    given = {key: str(draft_model) if each == DRAFT_MODEL else each for key, each in chosen.items()}
    return assign_all(Settings(), given.items())


def asked(engine: Engine, model: str, chosen: Settings, more: Mapping[str, Any]) -> list[Event]:
    engine.loaded.eos = frozenset({0}) if "grammar" in more else frozenset()  # a grammar must be able to end
    if "messages" in more:
        return list(engine.generate(Generate("1", settings=chosen, **more)))
    return list(engine.generate_ids(prompt_of(model), chosen, also=Generate("1", (), **more)))


def lines_of(events: Iterable[Event], draft_model: Path) -> Iterator[str]:
    """Some steps a line and one for each other event, without what differs between runs."""
    events = [each for each in events if not isinstance(each, Gauges)]
    for is_token, some in groupby(events, lambda each: isinstance(each, Token)):
        if is_token:
            tokens = [each for each in some if isinstance(each, Token)]
            steps = [" ".join(map(_token, step)) for _, step in groupby(tokens, lambda each: each.step)]
            yield from (
                " | ".join(steps[at : at + _STEPS_A_LINE]) for at in range(0, len(steps), _STEPS_A_LINE)
            )
            yield json.dumps("".join(each.text for each in tokens))
        else:
            lines = (_other(each).replace(str(draft_model), DRAFT_MODEL) for each in some)
            yield from (line for line, _ in groupby(lines))  # progress within a chunk depends on the time


def _token(token: Token) -> str:
    drafted = f"@{token.draft_index}/{token.draft_length} {token.source}" if token.source else ""
    likely = f" likely {[each.id for each in token.likely]}" if token.likely else ""
    return f"{token.id}{'' if token.origin == 'normal' else token.origin[0]}{drafted}{likely}"


def _other(event: Event) -> str:
    raw = json.loads(encode(event))
    if isinstance(event, Finished):
        default = Settings()
        raw["effective"]["settings"] = {
            each.key: read(event.effective.settings, each.key)
            for each in declared()
            if read(event.effective.settings, each.key) != read(default, each.key)
        }
        raw["stats"] = {name: value for name, value in raw["stats"].items() if name in _STATS}
        raw["effective"] = {name: value for name, value in raw["effective"].items() if name in _EFFECTIVE}
    return json.dumps(_masked(raw), ensure_ascii=False)


def _masked(raw: Any) -> Any:
    """Without times and memory, and without what is empty or 0; scores with three digits."""
    if isinstance(raw, dict):
        kept = {key: _masked(each) for key, each in raw.items() if not key.endswith(_VARYING)}
        return {key: each for key, each in kept.items() if each or each == "off"}
    if isinstance(raw, list):
        return [_masked(each) for each in raw]
    return round(raw, 3) if isinstance(raw, float) else raw


def plain_ids(engine: Engine, prompt: Sequence[int]) -> list[int]:
    """mlx-lm's own greedy loop."""
    steps = generate_step(mx.array(list(prompt)), engine.loaded.model, max_tokens=TOKENS)
    return [int(token) for token, _ in steps]


def ids_of(events: Iterable[Event]) -> list[int]:
    return [event.id for event in events if isinstance(event, Token)]


@pytest.fixture(scope="module")
def stored_here(engines: Any, tokenizer: TokenizerWrapper) -> Callable[[str], bool]:
    """Whether mlx-lm computes the ids with this model that it did when the golden files were written."""

    @cache
    def is_stored(model: str) -> bool:
        ids = plain_ids(engines(model, tokenizer), prompt_of(model))
        return golden.same("plain", {model: [" ".join(map(str, ids))]})

    return is_stored


@pytest.fixture(scope="module")
def draft_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A draft model that reads as much as the models."""
    folder = tmp_path_factory.mktemp("drafts") / "toy"
    write_toy_model(folder, max_position_embeddings=4096)
    return folder


@pytest.mark.parametrize("name", thinned(CASES, FEW))
def test_events_are_those_of_the_golden_file(
    name: str,
    engines: Any,
    tokenizer: TokenizerWrapper,
    draft_folder: Path,
    stored_here: Callable[[str], bool],
) -> None:
    model, drafter, values, more = CASES[name]
    if not stored_here(model):
        pytest.skip("mlx-lm computes other numbers on this processor")
    engine = engines(model, tokenizer)
    chosen = settings(drafter, draft_folder, values)
    events = asked(engine, model, chosen, more)
    if not ({"messages", "logit_bias"} & more.keys() or values.keys() & {*SAMPLED, "kv.bits"}):
        assert ids_of(events) == plain_ids(engine, prompt_of(model))
    lines = list(lines_of(events, draft_folder))
    # The next turn reuses what the first has read, and the table of its answer.
    if "messages" in more and "sparse" in name:
        again = asked(engine, model, chosen, {**more, "messages": LATER})
    else:
        again = asked(engine, model, chosen, more)
    golden.compare("answers", {name: [*lines, "again", *lines_of(again, draft_folder)]})
