"""Calls whose arguments are given while they are written: the same calls, sooner."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer_format import AnswerFormat, AnswerParser, CallArguments, CallBegun, Delta, Text
from core.answer_format.calls import Json, Named, Python, Tagged
from core.answer_format.parser import joined, parse_answer
from core.answer_format.syntaxes import syntaxes_of
from core.events import Tool
from tests.core.answer_format.families import CALLING, Family
from tests.core.answer_format.test_families import FAMILIES, TOOLS, format_of, plain

FILE = "def f():\n\treturn \"<p>\" + '\\u00e9é😀' # </parameter>\n" * 40 + "end"
TEXT = {"type": "string"}
WRITE = Tool(
    "write",
    "",
    json.dumps(
        {"properties": {"path": {"type": "string"}, "text": {"type": "string"}, "n": {"type": "integer"}}}
    ),
)
ARGUMENTS = {"path": "a.py", "n": 2, "text": FILE}
TAGGED = (
    "<parameter=path>\na.py\n</parameter>\n<parameter=n>\n2\n</parameter>\n"
    f"<parameter=text>\n{FILE}\n</parameter>"
)
AS_JSON = json.dumps(ARGUMENTS)
LONG = {
    "hermes": f'So.\n<tool_call>\n{{"name": "write", "arguments": {AS_JSON}}}\n</tool_call>',
    "function_tags": f"<tool_call>\n<function=write>\n{TAGGED}\n</function>\n</tool_call>",
    "glm": f"<tool_call>write\n<arg_key>path</arg_key>\n<arg_value>a.py</arg_value>\n<arg_key>n</arg_key>\n"
    f"<arg_value>2</arg_value>\n<arg_key>text</arg_key>\n<arg_value>{FILE}</arg_value>\n</tool_call>",
    "mistral": f"[TOOL_CALLS]write[ARGS]{AS_JSON}",
    "kimi_k2": "<|tool_calls_section_begin|><|tool_call_begin|>functions.write:0<|tool_call_argument_begin|>"
    f"{AS_JSON}<|tool_call_end|><|tool_calls_section_end|>",
    "deepseek": "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>write\n```json\n"
    f"{AS_JSON}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
    "minimax_m2": '<minimax:tool_call>\n<invoke name="write">\n<parameter name="path">a.py</parameter>\n'
    f'<parameter name="n">2</parameter>\n<parameter name="text">{FILE}</parameter>\n</invoke>\n'
    "</minimax:tool_call>",
}


def streamed(text: str, format: AnswerFormat, tools: tuple[Tool, ...], step: int = 1) -> list[list[Delta]]:
    """The deltas of each piece of `step` characters, and of the end."""
    parser = AnswerParser(format, tools, streams_calls=True)
    pieces = [parser.add(text[at : at + step]) for at in range(0, len(text), step)]
    return [*pieces, parser.end()]


@pytest.mark.parametrize("step", [1, 3, 10_000])
@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_the_calls_are_those_of_the_whole_answer(family: Family, step: int) -> None:
    deltas = [one for piece in streamed(family.answer, format_of(family), TOOLS, step) for one in piece]
    assert plain(joined(deltas)) == (family.thought, family.text, list(family.calls))


@pytest.mark.parametrize("step", [1, 7])
@pytest.mark.parametrize("name", LONG)
def test_a_long_call_is_given_while_it_is_written(name: str, step: int) -> None:
    text = LONG[name]
    pieces = streamed(text, AnswerFormat(calls=(name,)), (WRITE,), step)
    [call] = joined([one for piece in pieces for one in piece]).calls
    assert json.loads(call.arguments) == ARGUMENTS
    # Nothing waits for more than a tag that ends a value.
    silent = longest = 0
    for piece in pieces[: -80 // step]:
        silent = 0 if piece else silent + step
        longest = max(longest, silent)
    assert longest < 200


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("share", [0.3, 0.6, 0.9])
def test_a_call_that_is_cut_off_stays_incomplete(name: str, share: float) -> None:
    text = LONG[name][: int(share * len(LONG[name]))]
    parser = AnswerParser(AnswerFormat(calls=(name,)), (WRITE,), streams_calls=True)
    deltas = [*(one for letter in text for one in parser.add(letter)), *parser.end()]
    answer = joined(deltas)
    [call] = answer.calls
    assert call.name == "write"
    assert call.arguments.startswith('{"path": "a.py", ')
    with pytest.raises(json.JSONDecodeError):
        json.loads(call.arguments)
    assert "return" not in answer.text
    assert parser.cut_off == ["write"]


def test_a_call_that_breaks_is_no_text() -> None:
    text = '<tool_call>\n{"name": "write", "arguments": {"path": "a" "b"}}\n</tool_call>\nDone.'
    parser = AnswerParser(AnswerFormat(calls=("hermes",)), (WRITE,), streams_calls=True)
    answer = joined([*(one for letter in text for one in parser.add(letter)), *parser.end()])
    assert [call.arguments for call in answer.calls] == ['{"path": "a"']
    assert answer.text.strip() == "Done."
    assert parser.cut_off == ["write"]


def test_a_function_that_was_not_declared_is_text() -> None:
    text = '<tool_call>\n{"name": "other", "arguments": {"path": "a"}}\n</tool_call>'
    deltas = [one for piece in streamed(text, AnswerFormat(calls=("hermes",)), (WRITE,)) for one in piece]
    assert {type(one) for one in deltas} == {Text}


def test_values_are_written_as_in_the_whole_answer() -> None:
    written = (
        r'{"a":1.50,"b":[ ],"c":{"d":null,"e":[true,-2e3,]},"f":"\/\u00e9\ud83d\ude00\ud83dx\n","g":"	"}'
    )
    text = f'<tool_call>{{"name":"write","arguments":{written}}}</tool_call>'
    format = AnswerFormat(calls=("hermes",))
    [whole] = parse_answer(text, format, (WRITE,)).calls
    deltas = [one for piece in streamed(text, format, (WRITE,)) for one in piece]
    assert "".join(one.text for one in deltas if isinstance(one, CallArguments)) == whole.arguments
    assert sum(isinstance(one, CallArguments) for one in deltas) > 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.booleans(), st.integers(1, 9))
def test_any_arguments_are_given_as_they_are(arguments: dict[str, object], escapes: bool, step: int) -> None:
    call = json.dumps({"name": "write", "arguments": arguments}, ensure_ascii=escapes)
    text = f"<tool_call>\n{call}\n</tool_call>"
    format = AnswerFormat(calls=("hermes",))
    deltas = [one for piece in streamed(text, format, (WRITE,), step) for one in piece]
    assert joined(deltas) == parse_answer(text, format, (WRITE,))


def test_every_family_with_marks_and_readable_arguments_begins_early() -> None:
    late = []
    for family in CALLING:
        format = format_of(family)
        forms = {type(form) for each in syntaxes_of(format.calls) for form in each.forms}
        bare = any(each.bare for each in syntaxes_of(format.calls))
        if not family.calls or bare or Python in forms or not forms & {Json, Named, Tagged}:
            continue
        pieces = streamed(family.answer, format, TOOLS)
        begun = next(at for at, piece in enumerate(pieces) if any(isinstance(d, CallBegun) for d in piece))
        if begun >= len(family.answer) - 2:
            late.append(family.name)
    assert set(late) == {"Python list of another template", "name as key"}
