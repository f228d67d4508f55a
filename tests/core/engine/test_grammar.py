"""Answers by a grammar: what it allows, whatever of it is forced; what cannot be compiled is refused."""

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
from core.settings import Settings, assign_all
from tests.core.engine.support import engine_of, settings, told, written
from tests.core.engine.test_shaped import asking, ids, prompt_of
from tests.core.thinking_toy import SWITCHED, write_thinking_toy
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

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


@pytest.mark.parametrize("architecture", ["llama", "qwen3_5"])
@pytest.mark.parametrize("drafter", ["off", "auto", "cacheback"])
def test_any_json_object(engine: Engine, architecture: str, drafter: str, toy_folder: Path) -> None:
    also = asking(grammar=Grammar("json_object"), logit_bias={94: -8.0, 62: -8.0, 96: 6.0, 5: 4.0})
    chosen = settings(drafter, toy_folder, **{"sampling.max_tokens": 200})
    tokens, finished = told(engine, prompt_of(architecture), chosen, also=also)
    assert finished.reason == "stop"
    assert isinstance(json.loads(text_of(tokens)), dict)


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
@pytest.mark.parametrize("length", [1, 64, 150])
def test_what_is_forced_may_be_longer_than_a_block(
    engine: Engine, architecture: str, length: int, toy_folder: Path
) -> None:
    schema = {"enum": ["z" * length + "a", "z" * length + "b"]}
    chosen = settings("off", toy_folder, **{"sampling.max_tokens": 300})
    prompt = prompt_of(architecture)
    tokens, finished = told(engine, prompt, chosen, also=by_schema(schema))
    assert json.loads(text_of(tokens)) in schema["enum"]
    plain, _ = told(engine, prompt, chosen, also=by_schema(schema, drafts=False))
    assert ids(tokens) == ids(plain)
    # The quote, the letters; the last letter is free, the quote behind it forced; the stop token.
    assert finished.stats.steps <= 3 + length // 64


CALL = {
    "type": "object",
    "properties": {"name": {"const": "weather"}, "arguments": SCHEMA},
    "required": ["name", "arguments"],
    "additionalProperties": False,
}


def calls(drafts: bool = True) -> Grammar:
    return Grammar("tool_calls", json.dumps(CALL), drafts, "<tool_call>", "</tool_call>")


@pytest.mark.sweep
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
        tokens, finished = written(toy_engine.generate(asked))
        return text_of(tokens), finished

    text, finished = answer(True)
    call, mark, rest = text.partition("\n</tool_call>")
    assert mark
    jsonschema.validate(json.loads(call), CALL)
    assert rest or finished.reason == "stop"
    assert finished.stats.forced > 30
    assert answer(False)[0] == text


@pytest.mark.sweep
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
    _, finished = written(engine.generate(Generate("r", (Message("user", "Who?"),), chosen, grammar=calls())))
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
    tokens, finished = written(engine.generate(request))
    assert text_of(tokens).startswith('{"')
    changes = [change for change in finished.effective.changes if change.setting == "chat.thinking"]
    assert len(changes) == (asked != "off")
    engine.unload()
