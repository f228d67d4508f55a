"""Answers taken apart: what is said and what is called, however the text was cut."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from core.errors import InternalError
from core.events import Tool
from core.serve.tools.choice import choose
from core.serve.tools.parsers import parser
from core.serve.tools.pieces import CallArguments, CallBegun, ForcedCall, MarkedCalls, Piece, Pieces, Said
from tests.app.session.words import INFO

PARAMETERS = {"type": "object", "properties": {"town": {"type": "string"}, "days": {"type": "integer"}}}
WEATHER = Tool("weather", "Tells it.", json.dumps(PARAMETERS))
CALL = '<tool_call>\n{"name": "weather", "arguments": {"town": "Köln", "days": 2}}\n</tool_call>'
# One call of each form that mlx-lm ships a parser for.
FORMS = {
    "json_tools": CALL,
    "qwen3_coder": "<tool_call>\n<function=weather>\n<parameter=town>\nKöln\n</parameter>\n"
    "<parameter=days>\n2\n</parameter>\n</function>\n</tool_call>",
    "glm47": "<tool_call>weather\n<arg_key>town</arg_key>\n<arg_value>Köln</arg_value>\n"
    "<arg_key>days</arg_key>\n<arg_value>2</arg_value>\n</tool_call>",
    "mistral": '[TOOL_CALLS]weather[ARGS]{"town": "Köln", "days": 2}',
    "pythonic": '<|tool_call_start|>[weather(town="Köln", days=2)]<|tool_call_end|>',
    "minimax_m2": '<minimax:tool_call>\n<invoke name="weather">\n<parameter name="town">Köln</parameter>\n'
    '<parameter name="days">2</parameter>\n</invoke>\n</minimax:tool_call>',
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.weather:0"
    '<|tool_call_argument_begin|>{"town": "Köln", "days": 2}<|tool_call_end|><|tool_calls_section_end|>',
    "minicpm5": '<function name="weather"><param name="town">Köln</param>'
    '<param name="days">2</param></function>',
}


def taken(pieces: Pieces, parts: Iterable[str]) -> tuple[str, list[tuple[str, object]]]:
    found: list[Piece] = []
    for part in parts:
        found += pieces.add(part)
    found += pieces.end()
    said = "".join(piece.text for piece in found if isinstance(piece, Said))
    begun = [piece for piece in found if isinstance(piece, CallBegun)]
    assert [piece.index for piece in begun] == list(range(len(begun)))
    assert len({piece.id for piece in begun}) == len(begun) == pieces.calls
    told = [
        "".join(one.text for one in found if isinstance(one, CallArguments) and one.index == piece.index)
        for piece in begun
    ]
    return said, [(piece.name, json.loads(text)) for piece, text in zip(begun, told)]


def marked(name: str = "json_tools", most: int | None = None) -> MarkedCalls:
    return MarkedCalls(parser(name), (WEATHER,), most)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_of_a_call_is_found_among_text(name: str) -> None:
    said, calls = taken(marked(name), f"Let me see.\n{FORMS[name]}")
    assert said == "Let me see."
    assert calls == [("weather", {"town": "Köln", "days": 2})]


@given(st.data())
def test_however_the_text_is_cut(data: st.DataObject) -> None:
    text = f"Before <tool it.\n{CALL}\n{CALL}\nAfter <."
    cuts = sorted(data.draw(st.sets(st.integers(0, len(text)), max_size=20)))
    parts = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)])]
    said, calls = taken(marked(), parts)
    assert said == "Before <tool it.\nAfter <."
    assert [name for name, _ in calls] == ["weather", "weather"]


@given(st.text(alphabet="<tol_ca>{}/\n x", max_size=60), st.integers(1, 7))
def test_what_is_no_call_is_said_to_the_letter(text: str, size: int) -> None:
    parts = [text[at : at + size] for at in range(0, len(text), size)]
    said, calls = taken(marked(), parts)
    assert not calls
    assert said.split() == text.split()


@pytest.mark.parametrize(
    "inside",
    ["not json", "[]", '{"name": 3}', '{"arguments": {}}', '{"name": "f", "arguments": [1]}', "{" * 5000, ""],
)
def test_a_call_that_is_none_is_said_as_it_stands(inside: str) -> None:
    text = f"<tool_call>{inside}</tool_call>"
    assert taken(marked(), [text]) == (text, [])


def test_a_call_that_ends_with_the_answer_counts_if_it_is_whole() -> None:
    whole = '<tool_call>{"name": "weather", "arguments": {}}'
    assert taken(marked(), [whole]) == ("", [("weather", {})])
    assert taken(marked(), [whole[:-4]]) == (whole[:-4], [])


def test_text_is_not_held_back_longer_than_it_may_be_a_mark() -> None:
    pieces = marked()
    assert list(pieces.add("Hello <")) == [Said("Hello")]
    assert list(pieces.add("b> you")) == [Said(" <b> you")]


def test_one_call_is_all_there_may_be() -> None:
    assert taken(marked(most=1), [CALL + CALL])[1] == [("weather", {"town": "Köln", "days": 2})]


def test_the_arguments_of_a_forced_call_come_as_they_are_written() -> None:
    text = '{"name": "weather", "arguments": {"town": "Köln", "more": {"days": 2}}}'
    pieces = ForcedCall()
    told = [len([*pieces.add(letter)]) for letter in text]
    assert sum(told) > 20
    for size in (1, 3, 1000):
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        assert taken(ForcedCall(), parts) == ("", [("weather", {"town": "Köln", "more": {"days": 2}})])


def test_a_forced_call_that_was_cut_off_is_told_as_far_as_it_is() -> None:
    pieces = ForcedCall()
    found = [*pieces.add('{"name": "weather", "arguments": {"town": "K'), *pieces.end()]
    assert [piece.text for piece in found if isinstance(piece, CallArguments)] == ['{"town": "K']
    assert taken(ForcedCall(), ['{"name": "wea']) == ('{"name": "wea', [])


def test_parsers_are_loaded_without_mlx() -> None:
    """In a process of its own: here MLX is loaded already."""
    code = (
        "import sys; from core.serve.tools.parsers import parser;"
        f"[parser(name) for name in {[*FORMS, 'laguna', 'gemma4', 'longcat', 'muse_spark', 'kimi_k3']}];"
        "sys.exit('mlx' in sys.modules or 'mlx.core' in sys.modules or 'mlx_lm' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], timeout=60).returncode == 0


def test_a_parser_that_is_not_there_is_named() -> None:
    with pytest.raises(InternalError, match="nothing_like_it"):
        parser("nothing_like_it")


def test_references_of_a_forced_calls_schema_point_where_it_stands() -> None:
    parameters = {
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"items": {"$ref": "#/$defs/A"}}},
    }
    tools = [Tool("f", "", json.dumps(parameters)), Tool("g", "", json.dumps(parameters))]
    text = choose(tools, "required").grammar(INFO).text  # type: ignore[union-attr]
    assert text.count('"#/anyOf/0/properties/arguments/$defs/A"') == 2
    assert text.count('"#/anyOf/1/properties/arguments/$defs/A"') == 2
    one = choose(tools, "auto", name="g").grammar(INFO).text  # type: ignore[union-attr]
    assert one.count('"#/properties/arguments/$defs/A"') == 2
    assert '"f"' not in one


STRICT = '{"type":"object","properties":{"k":{"enum":["a"]}},"required":["k"]}'


def test_calls_that_need_not_be_made_keep_the_schemas_of_strict_tools() -> None:
    info = replace(INFO, tool_parser="json_tools")
    tools = [Tool("f", "", STRICT), Tool("g", "", STRICT)]
    assert choose(tools, "auto").grammar(info) is None
    kept = choose(tools, "auto", strict=["g"])
    grammar = kept.grammar(info)
    assert grammar is not None
    assert (grammar.kind, grammar.begin, grammar.end) == ("tool_calls", "<tool_call>", "</tool_call>")
    free, strict = json.loads(grammar.text)["anyOf"]
    assert free["properties"]["arguments"] == {"type": "object"}
    assert strict["properties"]["arguments"] == json.loads(STRICT)
    assert not kept.pieces(info).loose


def test_where_a_models_calls_are_of_another_form_nothing_keeps_them() -> None:
    info = replace(INFO, tool_parser="mistral")
    loose = choose([Tool("f", "", STRICT)], "auto", strict=["f"])
    assert loose.grammar(info) is None
    assert loose.pieces(info).loose
    assert not choose([Tool("f", "", STRICT)], "auto").pieces(info).loose
