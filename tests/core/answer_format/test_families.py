"""The format of an answer is found from its template, and the answer is parsed, however it was cut."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.answer_format import (
    AnswerFormat,
    AnswerSplitter,
    ParsedAnswer,
    Part,
    answer_format,
    answer_opening,
    parse_answer,
    parse_past_answer,
)
from core.answer_format.parser import joined
from core.events import Tool
from tests.core.answer_format.families import CALLING, THINKING, Family

SCHEMA = {"type": "object", "properties": {"town": {"type": "string"}, "days": {"type": "integer"}}}
TOOLS = (Tool("weather", "", json.dumps(SCHEMA)), Tool("clock"))
FAMILIES = (*THINKING, *CALLING)


def format_of(family: Family) -> AnswerFormat:
    return answer_format(family.template, family.tail, family.tokens)


def plain(answer: ParsedAnswer) -> tuple[str, str, list[tuple[str, object]]]:
    return answer.thought, answer.text, [(call.name, json.loads(call.arguments)) for call in answer.calls]


def in_pieces(text: str, format: AnswerFormat, cuts: list[int]) -> ParsedAnswer:
    splitter = AnswerSplitter(format, TOOLS)
    pieces = (text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)]))
    return joined([*(part for piece in pieces for part in splitter.add(piece)), *splitter.end()])


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_an_answer_is_parsed(family: Family) -> None:
    expected = (family.thought, family.text, list(family.calls))
    assert plain(parse_answer(family.answer, format_of(family), TOOLS)) == expected
    assert plain(in_pieces(family.answer, format_of(family), list(range(len(family.answer))))) == expected


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: family.name)
def test_a_format_travels(family: Family) -> None:
    format = format_of(family)
    assert msgspec.json.decode(msgspec.json.encode(format), type=AnswerFormat) == format


@given(st.text(alphabet="<>/think \n", max_size=40))
def test_an_answer_without_a_thought_stays_to_the_letter(text: str) -> None:
    parsed = parse_answer(text, AnswerFormat())
    if not text.lstrip().startswith(("<think>", "<thinking>")):
        assert (parsed.thought, parsed.text) == ("", text)


def test_tags_in_the_middle_are_text() -> None:
    format = answer_format("<think></think>", "<a>")
    for text in ("Write <think>x</think> so.", "```\n<think>\n```", "Use `</think>`."):
        assert parse_answer(text, format) == ParsedAnswer("", text)
    assert parse_answer("<think>a</think>b<think>c</think>", format).text == "b<think>c</think>"


def test_text_is_not_held_longer_than_it_may_begin_a_mark() -> None:
    splitter = AnswerSplitter(answer_format("{{ tools }}<tool_call><think>", "<a>"), TOOLS)
    assert splitter.add("  <th") == []
    assert splitter.add("ere") == [Part("text", "  <there")]
    assert splitter.add(" <b") == [Part("text", " <b")]
    assert splitter.add(" <tool") == []
    assert splitter.add("box>") == [Part("text", " <toolbox>")]


def test_past_answers_may_be_without_their_thought() -> None:
    format = answer_format("<think></think>", "<a><think>\n")
    assert parse_past_answer("Hi.", format) == ParsedAnswer("", "Hi.")
    assert parse_past_answer("Oh.</think>\n\nHi.", format) == ParsedAnswer("Oh.", "Hi.")
    assert parse_past_answer("<think>Oh.</think>\n\nHi.", format) == ParsedAnswer("Oh.", "Hi.")
    written_elsewhere = next(family.answer for family in THINKING if family.name == "harmony")
    for any_format in (format, AnswerFormat(), answer_format("", "<|im_start|>assistant\n")):
        assert parse_past_answer(written_elsewhere, any_format) == ParsedAnswer("Oh.", "Hi <b>.")


@pytest.mark.parametrize("family", THINKING, ids=lambda family: family.name)
def test_an_open_thought_can_be_closed(family: Family) -> None:
    """What a forced answer begins with leaves nothing open."""
    format = format_of(family)
    opening = answer_opening(format, family.tail)
    assert bool(opening) == (format.begins != "text")
    assert parse_answer(f'{opening}{{"a": 1}}', format).text == '{"a": 1}'
