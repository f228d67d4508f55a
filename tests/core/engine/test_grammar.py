"""Answers by a grammar: always what it allows, and the same with forced tokens drafted as without.

On one architecture of each kind of cache, with every drafter, as chains and as trees. The models are random,
so strings and lists have bounds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper

from core.engine.engine import Engine
from core.errors import GrammarError
from core.events import Finished, Generate, Grammar, Message, Token
from core.kv.mlx_lm_caches import why_no_rollback
from core.settings import Settings, assign_all
from tests.core.engine.test_conformance import (
    ONE_OF_EACH,
    VARIANT_IDS,
    VARIANTS,
    engine_of,
    few,
    settings,
    told,
)
from tests.core.engine.test_shaped import asking, ids, prompt_of
from tests.core.thinking_toy import SWITCHED, write_thinking_toy
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

OFF = ("off", "fast")
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "first_name": {"type": "string", "maxLength": 6},
        "kind": {"enum": ["alpha", "alpine", "beta"]},
        "orders": {
            "type": "array",
            "minItems": 1,
            "maxItems": 3,
            "items": {
                "type": "object",
                "properties": {
                    "product_identifier": {"type": "string", "maxLength": 4},
                    "quantity": {"type": "integer", "minimum": 0, "maximum": 99},
                },
                "required": ["product_identifier", "quantity"],
                "additionalProperties": False,
            },
        },
        "done": {"type": "boolean"},
    },
    "required": ["first_name", "kind", "orders", "done"],
    "additionalProperties": False,
}
SAMPLINGS: dict[str, dict[str, object]] = {
    "greedy": {},
    "sampled": {"sampling.temperature": 0.8, "sampling.top_p": 0.9, "sampling.frequency_penalty": 0.4},
}
each = pytest.mark.parametrize(
    ("architecture", "variant"),
    [
        pytest.param(
            *(architecture, variant),
            id=f"{name}-{architecture}",
            marks=few(architecture, variant),
        )
        for architecture in ONE_OF_EACH
        for variant, name in zip([OFF, *VARIANTS], ["off", *VARIANT_IDS])
    ],
)


@pytest.fixture
def engine(architecture: str, engines: dict[str, Engine], tokenizer: TokenizerWrapper) -> Engine:
    if architecture not in engines:
        engines[architecture] = engine_of(architecture, tokenizer)
        engines[architecture].loaded.eos = frozenset({0, 2})
    engines[architecture].forget(tables=True)
    return engines[architecture]


def by_schema(schema: dict[str, Any] = SCHEMA, *, drafts: bool = True, **also: Any) -> Generate:
    return asking(grammar=Grammar("json_schema", json.dumps(schema), drafts), **also)


def text_of(tokens: Sequence[Token]) -> str:
    return "".join(token.text for token in tokens)


@each
@pytest.mark.parametrize("sampling", thinned(SAMPLINGS, keep=["sampled"]))
def test_drafting_what_is_forced_changes_no_token(
    engine: Engine, architecture: str, variant: tuple[str, str], sampling: str, toy_folder: Path
) -> None:
    prompt = prompt_of(architecture)
    values = {**SAMPLINGS[sampling], "sampling.max_tokens": 300}
    plain, ended = told(engine, prompt, settings(OFF, toy_folder, **values), also=by_schema(drafts=False))
    assert ended.stats.accepted == ended.stats.forced == 0
    engine.forget(tables=True)
    chosen = settings(variant, toy_folder, **values)
    drafted, finished = told(engine, prompt, chosen, also=by_schema())
    assert ids(drafted) == ids(plain)
    assert finished.reason == ended.reason == "stop"
    assert drafted[-1].id in engine.loaded.eos
    jsonschema.validate(json.loads(text_of(drafted)), SCHEMA)
    stats = finished.stats
    if why_no_rollback(engine.sequence.cache):
        assert stats.forced == 0
        return
    # Of a token a letter more than half is keys and punctuation.
    assert stats.forced > 0.5 * stats.tokens
    assert stats.accepted >= stats.forced
    if variant == OFF:
        assert stats.accepted == stats.forced
        assert stats.steps == stats.tokens - stats.forced
    elif sampling == "greedy" and architecture == "llama":
        engine.forget(tables=True)
        also, alone = told(engine, prompt, chosen, also=by_schema(drafts=False))
        assert ids(also) == ids(plain)
        assert alone.stats.forced == 0
        assert alone.stats.steps >= stats.steps


@pytest.mark.parametrize("architecture", ["llama", "qwen3_5"])
@pytest.mark.parametrize("drafter", ["off", "auto", "cacheback"])
def test_any_json_object(engine: Engine, architecture: str, drafter: str, toy_folder: Path) -> None:
    also = asking(grammar=Grammar("json_object"), logit_bias={94: -8.0, 62: -8.0, 96: 6.0, 5: 4.0})
    chosen = settings((drafter, "fast"), toy_folder, **{"sampling.max_tokens": 200})
    tokens, finished = told(engine, prompt_of(architecture), chosen, also=also)
    assert finished.reason == "stop"
    assert isinstance(json.loads(text_of(tokens)), dict)


@pytest.mark.parametrize("architecture", ["llama"])
def test_an_answer_by_a_grammar_goes_on_where_it_was_interrupted(
    engine: Engine, architecture: str, toy_folder: Path
) -> None:
    chosen = settings(("cacheback", "fast"), toy_folder, **{"sampling.max_tokens": 300})

    def answer(begun: tuple[int, ...]) -> list[int]:
        request = Generate(
            "r",
            (Message("user", "Who ordered what?"),),
            chosen,
            continuation=begun,
            grammar=Grammar("json_schema", json.dumps(SCHEMA)),
        )
        return [event.id for event in engine.generate(request) if isinstance(event, Token)]

    whole = answer(())
    for cut in (1, 5, 17, 60):
        assert answer(tuple(whole[:cut])) == whole[cut:]
    with pytest.raises(GrammarError, match="does not allow"):
        answer((whole[0], whole[0]))


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("drafter", ["off", "auto"])
def test_a_turn_after_an_answer_by_a_grammar_gives_what_a_cold_one_gives(
    engine: Engine, architecture: str, drafter: str, toy_folder: Path
) -> None:
    chosen = settings((drafter, "fast"), toy_folder, **{"sampling.max_tokens": 40})
    prompt = prompt_of(architecture)
    first, _ = told(engine, prompt, chosen, also=by_schema())
    assert len(first) == 40
    follow = [*prompt, *ids(first), *prompt]
    warm, finished = told(engine, follow, chosen)
    assert finished.stats.reused_tokens >= len(prompt) + 39 - 1
    engine.forget(tables=True)
    cold, _ = told(engine, follow, chosen)
    assert ids(warm) == ids(cold)


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize(
    ("grammar", "named"),
    [
        (Grammar("json_schema", '{"type": "objec"}'), "objec"),
        (Grammar("json_schema", '{"type": "object", "if": {}}'), "if"),
        (Grammar("json_schema", '{"type": "string", "pattern": "(a"}'), "unclosed group"),
        (Grammar("json_schema", '{"$ref": "#/nowhere"}'), "nowhere"),
        (Grammar("json_schema", "{"), "not JSON"),
        (Grammar("json_schema", "[" * 100_000), "not JSON"),
        (Grammar("json_schema", "[1]"), "not a JSON object"),
        (Grammar("json_schema", ""), "not JSON"),
        (Grammar("json_schema", '{"enum": []}'), "Unsatisfiable"),
        (Grammar("json_schema", '{"$ref": "#"}'), "no text fits"),
        (Grammar("json_schema", '{"const": "\\ud800"}'), "hex escape"),
        (Grammar("json_schema", '{"x-guidance": {"nope": 1}}'), "nope"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else "",
)
def test_a_schema_that_cannot_be_compiled_is_refused_before_anything_is_read(
    engine: Engine, architecture: str, grammar: Grammar, named: str
) -> None:
    with pytest.raises(GrammarError, match=named) as raised:
        next(engine.generate_ids([5, 6, 7], Settings(), also=asking(grammar=grammar)))
    assert raised.value.code == "bad-grammar"
    assert not engine.sequence.tokens


@pytest.mark.parametrize("architecture", ["llama"])
def test_a_tokenizer_that_cannot_be_bridged_is_refused(
    engine: Engine, architecture: str, tokenizer: TokenizerWrapper
) -> None:
    other = engine_of(architecture, tokenizer)
    with pytest.raises(GrammarError, match="end-of-text"):
        next(other.generate_ids([5, 6, 7], Settings(), also=asking(grammar=Grammar("json_object"))))

    class Slow:
        """What a tokenizer without tokenizer.json lacks."""

    loaded = other.loaded
    loaded.eos, loaded.tokenizer = frozenset({0}), Slow()
    with pytest.raises(GrammarError, match=r"tokenizer\.json"):
        next(other.generate_ids([5, 6, 7], Settings(), also=asking(grammar=Grammar("json_object"))))
    other.unload()


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("length", [1, 63, 64, 65, 150])
def test_what_is_forced_may_be_longer_than_a_block(
    engine: Engine, architecture: str, length: int, toy_folder: Path
) -> None:
    schema = {"enum": ["z" * length + "a", "z" * length + "b"]}
    chosen = settings(OFF, toy_folder, **{"sampling.max_tokens": 300})
    prompt = prompt_of(architecture)
    tokens, finished = told(engine, prompt, chosen, also=by_schema(schema))
    assert json.loads(text_of(tokens)) in schema["enum"]
    plain, _ = told(engine, prompt, chosen, also=by_schema(schema, drafts=False))
    assert ids(tokens) == ids(plain)
    # The quote, the letters; the last letter is free, the quote behind it forced; the stop token.
    assert finished.stats.steps <= 3 + length // 64


@pytest.mark.parametrize("architecture", ["llama"])
@pytest.mark.parametrize("most", range(1, 30))
def test_no_more_tokens_than_were_asked_for(
    engine: Engine, architecture: str, most: int, toy_folder: Path
) -> None:
    chosen = settings(("cacheback", "fast"), toy_folder, **{"sampling.max_tokens": most})
    tokens, finished = told(engine, prompt_of(architecture), chosen, also=by_schema())
    assert len(tokens) == most
    assert finished.reason == "length"


@pytest.mark.parametrize("architecture", ["llama"])
def test_logprobs_of_forced_tokens_are_the_models_own(
    engine: Engine, architecture: str, toy_folder: Path
) -> None:
    chosen = settings(("auto", "fast"), toy_folder, **{"sampling.max_tokens": 60})
    prompt = prompt_of(architecture)
    drafted, _ = told(engine, prompt, chosen, also=by_schema(top_logprobs=2))
    plain, _ = told(engine, prompt, chosen, also=by_schema(drafts=False, top_logprobs=2))
    for one, other in zip(drafted, plain, strict=True):
        assert one.logprob == pytest.approx(other.logprob, abs=2e-3)
    assert any((token.logprob or 0.0) < -3.0 for token in drafted)


@pytest.mark.slow
def test_the_skeleton_costs_nearly_no_forwards(starter_engine: Engine) -> None:
    question = "Give me a customer record as JSON: Anna Miller ordered three lanterns and two ropes."
    values = [("drafting.drafter", "off"), ("sampling.max_tokens", 400)]

    def answer(drafts: bool) -> tuple[str, Finished]:
        grammar = Grammar("json_schema", json.dumps(SCHEMA), drafts)
        chosen = assign_all(Settings(), values)
        events = list(
            starter_engine.generate(Generate("r", (Message("user", question),), chosen, grammar=grammar))
        )
        finished = events[-1]
        assert isinstance(finished, Finished)
        return "".join(event.text for event in events if isinstance(event, Token)), finished

    text, finished = answer(True)
    plain, _ = answer(False)
    assert text == plain
    jsonschema.validate(json.loads(text), SCHEMA)
    stats = finished.stats
    assert stats.forced > 0.3 * stats.tokens
    assert stats.steps == stats.tokens - stats.forced


CALL = {
    "type": "object",
    "properties": {"name": {"const": "weather"}, "arguments": SCHEMA},
    "required": ["name", "arguments"],
    "additionalProperties": False,
}


def calls(drafts: bool = True) -> Grammar:
    return Grammar("tool_calls", json.dumps(CALL), drafts, "<tool_call>", "</tool_call>")


@pytest.mark.parametrize("sampling", SAMPLINGS)
@pytest.mark.parametrize("drafter", thinned(["off", "auto", "cacheback"], keep=["cacheback"]))
def test_a_call_among_free_text_keeps_its_schema(toy_engine: Engine, drafter: str, sampling: str) -> None:
    """The toy model begins no call by itself; where one was begun it is whole, and text follows."""
    values = {"drafting.drafter": drafter, "sampling.max_tokens": 400, **SAMPLINGS[sampling]}
    chosen = assign_all(Settings(), values.items())
    begun = tuple(toy_engine.loaded.tokenizer.encode("I look.\n<tool_call>", add_special_tokens=False))

    def answer(drafts: bool) -> tuple[str, Finished]:
        toy_engine.forget(tables=True)
        message = (Message("user", "Who ordered what?"),)
        asked = Generate("r", message, chosen, continuation=begun, grammar=calls(drafts))
        *events, finished = toy_engine.generate(asked)
        assert isinstance(finished, Finished)
        return text_of([event for event in events if isinstance(event, Token)]), finished

    text, finished = answer(True)
    call, mark, rest = text.partition("\n</tool_call>")
    assert mark
    jsonschema.validate(json.loads(call), CALL)
    assert rest or finished.reason == "stop"
    assert finished.stats.forced > 30
    assert answer(False)[0] == text


@pytest.mark.parametrize("drafter", ["off", "auto"])
def test_text_without_a_call_is_what_it_is_without_the_grammar(toy_engine: Engine, drafter: str) -> None:
    """As long as it is text: no grammar allows the stray bytes and control tokens of this random model."""
    values = {"drafting.drafter": drafter, "sampling.max_tokens": 200, "sampling.temperature": 0.9}
    chosen = assign_all(Settings(), values.items())
    loaded = toy_engine.loaded
    no_text = {
        token: -100.0
        for token in range(loaded.info.vocabulary)
        if not loaded.tokenizer.decode([token]).isascii() or token in loaded.tokenizer.added_tokens_decoder
    }
    texts = []
    for grammar in (None, calls()):
        toy_engine.forget(tables=True)
        message = (Message("user", "Who ordered what?"),)
        asked = Generate("r", message, chosen, grammar=grammar, logit_bias=no_text)
        events = list(toy_engine.generate(asked))
        texts.append(text_of([event for event in events if isinstance(event, Token)]))
    assert texts[0] == texts[1] != ""


def test_before_a_call_that_need_not_be_made_a_model_thinks(tmp_path: Path) -> None:
    write_thinking_toy(tmp_path / "toy", SWITCHED)
    engine = Engine()
    engine.load(str(tmp_path / "toy"))
    chosen = assign_all(Settings(), [("chat.thinking", "on"), ("sampling.max_tokens", 8)])
    *_, finished = engine.generate(Generate("r", (Message("user", "Who?"),), chosen, grammar=calls()))
    assert isinstance(finished, Finished)
    assert "chat.thinking" not in [change.setting for change in finished.effective.changes]
    engine.unload()


@pytest.mark.parametrize("asked", ["auto", "on", "off"])
def test_an_answer_by_a_grammar_does_not_think_first_and_says_so(tmp_path: Path, asked: str) -> None:
    write_thinking_toy(tmp_path / "toy", SWITCHED)
    engine = Engine()
    engine.load(str(tmp_path / "toy"))
    chosen = assign_all(Settings(), [("chat.thinking", asked), ("sampling.max_tokens", 8)])
    messages = (Message("user", "Who ordered what?"),)
    request = Generate("r", messages, chosen, grammar=Grammar("json_schema", json.dumps(SCHEMA)))
    *events, finished = engine.generate(request)
    assert isinstance(finished, Finished)
    assert text_of([event for event in events if isinstance(event, Token)]).startswith('{"')
    changes = [change for change in finished.effective.changes if change.setting == "chat.thinking"]
    assert len(changes) == (asked != "off")
    engine.unload()
