"""Calls as models get them wrong: types by the schema, marks inside values, errors in JSON, other names."""

from __future__ import annotations

import json

import pytest

from core.answer_format import AnswerFormat, ParsedAnswer, parse_answer
from core.answer_format.syntaxes import SYNTAXES
from core.answer_format.values import BrokenValueError, UnfinishedValueError, read_value
from core.events import Tool

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "maybe": {"type": ["string", "null"]},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "list": {"type": "array"},
        "object": {"$ref": "#/$defs/O"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "choice": {"enum": ["1", "2"]},
        "invalid": {"type": [{}, "integer"], "enum": 5, "anyOf": True, "oneOf": {}, "allOf": [3]},
    },
    "$defs": {"O": {"type": "object"}},
}
TOOL = Tool("f", "", json.dumps(SCHEMA))
HERMES, TAGS = AnswerFormat(calls=("hermes",)), AnswerFormat(calls=("function_tags",))
GLM, LLAMA, PYTHON, OLMO = (AnswerFormat(calls=(name,)) for name in ("glm", "llama3", "lfm2", "olmo3"))


CONTROL = ("<|", "<｜")


def arguments(text: str, format: AnswerFormat) -> dict[str, object]:
    parsed = parse_answer(text, format, (TOOL,))
    assert (parsed.text, [call.name for call in parsed.calls]) == ("", ["f"]), parsed
    found = json.loads(parsed.calls[0].arguments)
    assert isinstance(found, dict)
    return found


def tagged(key: str, value: str) -> str:
    return f"<tool_call>\n<function=f>\n<parameter={key}>\n{value}\n</parameter>\n</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("maybe", "123", "123"),
        ("maybe", "null", None),
        ("text", "null", "null"),
        ("text", "007", "007"),
        ("text", "true", "true"),
        ("text", '{"a": 1}', '{"a": 1}'),
        ("count", "3", 3),
        ("count", "2026-11-25", "2026-11-25"),
        ("count", "3.0", 3),
        ("count", "12345678901234567890", 12345678901234567890),
        ("count", "+5", 5),
        *((key, each, each) for key in ("either", "unknown") for each in ("+4915112345", "007", "5.", ".5")),
        ("ratio", "1.5", 1.5),
        ("ratio", "2", 2),
        ("flag", "True", True),
        ("flag", "false", False),
        ("flag", "maybe", "maybe"),
        ("list", '["a", 1]', ["a", 1]),
        ("list", "['a', True, None]", ["a", True, None]),
        ("object", '{"a": {"b": []}}', {"a": {"b": []}}),
        ("either", "5", 5),
        ("either", "five", "five"),
        ("choice", "1", "1"),
        ("invalid", "1", 1),
        ("unknown", "7", 7),
        ("unknown", "seven", "seven"),
        ("text", "a\n  b", "a\n  b"),
        ("text", "", ""),
    ],
)
def test_tagged_values_have_the_types_of_the_schema(key: str, written: str, value: object) -> None:
    assert arguments(tagged(key, written), TAGS) == {key: value}
    keyed = f"<tool_call>f\n<arg_key>{key}</arg_key>\n<arg_value>{written}</arg_value>\n</tool_call>"
    assert arguments(keyed, GLM) == {key: value}


@pytest.mark.parametrize(
    "value",
    ["a</parameter>b", "</parameter>", "x</function>y", "</tool_call>", "<tool_call>", "<parameter=q>"],
)
def test_a_value_may_hold_marks(value: str) -> None:
    assert arguments(tagged("text", value), TAGS) == {"text": value}
    call = json.dumps({"name": "f", "arguments": {"text": value}})
    assert arguments(f"<tool_call>{call}</tool_call>", HERMES) == {"text": value}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ('{"text": "a\nb\tc"}', {"text": "a\nb\tc"}),
        ('{"list": [1, 2,], "count": 3,}', {"list": [1, 2], "count": 3}),
        ("{'text': 'it\\'s', 'flag': True}", {"text": "it's", "flag": True}),
        ('{"text": "\\u00fc \\ud83d\\ude00 \\n \\d"}', {"text": "ü 😀 \n \\d"}),
        ('"{\\"count\\": 3}"', {"count": 3}),
        ('{"count": -1.5e3}', {"count": -1500.0}),
        ("{}", {}),
    ],
)
def test_json_is_read_with_its_errors(written: str, value: object) -> None:
    assert arguments(f'<tool_call>{{"name": "f", "arguments": {written}}}</tool_call>', HERMES) == value
    assert arguments(f'{{"name": "f", "parameters": {written}}}', LLAMA) == value


@pytest.mark.parametrize(
    "text", ["{", '{"a', '{"a"', '{"a":', '{"a": tru', '{"a": "\\', '{"a": "\\u00', "[1", "["]
)
def test_a_value_that_ends_early_is_unfinished(text: str) -> None:
    with pytest.raises(UnfinishedValueError):
        read_value(text)


@pytest.mark.parametrize("text", ["x", "{]", '{"a" 1}', "[1 2]", "[" * 5000, '"\\uzzzz"'])
def test_a_value_that_is_none_is_broken(text: str) -> None:
    with pytest.raises(BrokenValueError):
        read_value(text)


@pytest.mark.parametrize(
    "inside",
    ["not json", "[]", '{"name": 3}', '{"arguments": {}}', '{"name": "f", "arguments": [1]}', "{" * 5000, ""],
)
def test_what_is_no_call_stays_text(inside: str) -> None:
    text = f"<tool_call>{inside}</tool_call> So."
    assert parse_answer(text, HERMES, (TOOL,)) == ParsedAnswer("", text)


def test_a_call_of_a_function_that_is_not_declared_stays_text() -> None:
    for text, format in (
        ('<tool_call>{"name": "g", "arguments": {}}</tool_call>', HERMES),
        ('{"name": "g", "parameters": {}}', LLAMA),
        ("<|tool_call_start|>[g()]<|tool_call_end|>", PYTHON),
    ):
        assert parse_answer(text, format, (TOOL,)) == ParsedAnswer("", text)
        assert [call.name for call in parse_answer(text, format).calls] == ["g"]


def test_a_prefix_of_a_name_is_dropped_unless_it_is_declared() -> None:
    text = '<tool_call>{"name": "functions.f", "arguments": {}}</tool_call>'
    assert [call.name for call in parse_answer(text, HERMES, (TOOL,)).calls] == ["f"]
    assert [call.name for call in parse_answer(text, HERMES, (Tool("functions.f"),)).calls] == ["functions.f"]


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("text", "123", "123"),
        ("text", "True", "True"),
        ("text", "1.50", "1.50"),
        ("text", "[1]", "[1]"),
        ("text", "None", None),
        ("maybe", "null", None),
        ("either", "5", 5),
        ("count", "5", 5),
        ("flag", "true", True),
        ("list", "['a', null]", ["a", None]),
        ("choice", "1", "1"),
        ("unknown", "7", 7),
    ],
)
def test_python_values_without_quotes_have_the_types_of_the_schema(
    key: str, written: str, value: object
) -> None:
    for format in (PYTHON, AnswerFormat()):
        assert arguments(f"[f({key}={written})]", format) == {key: value}
    assert arguments(f"<function_calls>f({key}={written})</function_calls>", OLMO) == {key: value}


def test_python_values_in_quotes_have_the_types_of_the_schema() -> None:
    text = """<|tool_call_start|>[f(text="3", count="3", list="['a']", flag='maybe')]<|tool_call_end|>"""
    assert arguments(text, PYTHON) == {"text": "3", "count": 3, "list": ["a"], "flag": "maybe"}


def test_a_call_at_the_end_of_the_answer_counts_if_it_is_whole() -> None:
    whole = '<tool_call>{"name": "f", "arguments": {}}'
    assert arguments(whole, HERMES) == {}
    assert parse_answer(whole[:-1], HERMES, (TOOL,)) == ParsedAnswer("", whole[:-1])


def test_bare_json_is_a_call_at_the_beginning_or_the_end_of_an_answer() -> None:
    call = '{"name": "f", "parameters": {"count": 1}}'
    assert parse_answer(f"{call}\nThat is it.", LLAMA, (TOOL,)).calls
    assert parse_answer(f"I look.\n{call}", LLAMA, (TOOL,)).text == "I look."
    quoted = f"You would write {call} for that."
    assert parse_answer(quoted, LLAMA, (TOOL,)) == ParsedAnswer("", quoted)
    other = '{"name": "Anna", "age": 5}'
    assert parse_answer(other, LLAMA, (TOOL,)) == ParsedAnswer("", other)


def test_long_calls_are_read_in_reasonable_time() -> None:
    code = "if (a) { b(); }\n" * 4000
    call = json.dumps({"name": "f", "parameters": {"text": code}})
    assert arguments(call, LLAMA) == {"text": code}


@pytest.mark.parametrize(
    ("name", "begin", "end"),
    [
        (each.name, begin, end)
        for each in SYNTAXES
        for begin, end in each.marks
        if begin[:2] in CONTROL and end
    ],
)
def test_marks_around_nothing_are_not_shown(name: str, begin: str, end: str) -> None:
    format = AnswerFormat(calls=(name,))
    for inner in ("", " \n"):
        parsed = parse_answer(f"Well.\n{begin}{inner}{end}", format, (TOOL,))
        assert (parsed.text, parsed.calls) == ("Well.", ()), parsed
    kept = parse_answer(f"{begin}nothing{end}", format, (TOOL,))
    assert kept.text == f"{begin}nothing{end}"


def test_empty_marks_may_come_before_a_call() -> None:
    call = '{"name": "f", "parameters": {"text": "a"}}'
    assert arguments(f"<|python_start|><|python_end|>{call}", LLAMA) == {"text": "a"}
    assert arguments(f"<|python_start|>{call}<|python_end|>", LLAMA) == {"text": "a"}
