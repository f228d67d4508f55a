"""Parsing of model output into thoughts, text and tool calls while it is generated. Pure."""

from core.answer_format.calls import Call
from core.answer_format.formats import (
    AnswerFormat,
    answer_format,
    answer_opening,
    call_marks,
    lone_closing_tag,
)
from core.answer_format.parser import AnswerSplitter, ParsedAnswer, Part, parse_answer, parse_past_answer
from core.answer_format.values import SCHEMA_DATA, SCHEMA_MAPS

__all__ = [
    "SCHEMA_DATA",
    "SCHEMA_MAPS",
    "AnswerFormat",
    "AnswerSplitter",
    "Call",
    "ParsedAnswer",
    "Part",
    "answer_format",
    "answer_opening",
    "call_marks",
    "lone_closing_tag",
    "parse_answer",
    "parse_past_answer",
]
