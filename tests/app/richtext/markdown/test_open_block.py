"""A block that is still being written: read on from where it is certain, and no more of it again."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from msgspec.structs import replace
from pytestqt.qtbot import QtBot

from app.chat.answer_body import AnswerBody
from app.chat.answer_text import AnswerText
from app.richtext import text_canvas
from app.richtext.markdown.markdown import parse_block, read_open
from app.richtext.markdown.math_rules import open_formula
from app.richtext.markdown.piece import Piece
from tests.app.chat.written import token

_FLUSH = 12

LINES = [
    "- a b\n",
    "  - c **d**\n",
    "    1. e\n",
    "    2. f\n",
    "> q one\n",
    "> q *two*\n",
    ">\n",
    "> - in\n",
    ">   more\n",
    "\n",
    "  para `x`\n",
    "    code\n",
    "1. one\n",
    "   - deep\n",
    "   > quote\n",
    "   >\n",
    "  ```\n",
    "  x = 1\n",
    "  $$\n",
    "  a + b\n",
    "\\[\n",
    "\\]\n",
    "  | a | b |\n",
    "  |---|---|\n",
    "  | 1 | 2 |\n",
    "***\n",
    "- - x\n",
    "  -\n",
    "-\n",
    "  ---\n",
    "lazy words\n",
    "# head\n",
    "  ## sub\n",
    "      wide\n",
    "-\ttab\n",
    "-      wide\n",
    "10. ten\n",
    "    in ten\n",
    "  <think>\n",
    "  2. two\n",
]


def whole(source: str, start: int, end: int, before: str = "") -> object:
    return replace(read_open(source, start, end, before), certain=0, start=start, before=before)


def streamed(source: str, size: int) -> Iterator[AnswerText]:
    """The answer after each flush, and finished."""
    text = AnswerText()
    for number, at in enumerate(range(0, len(source), size)):
        text.append([token(source[at : at + size], position=number)])
        yield text
    text.finish()
    yield text


@pytest.mark.sweep
@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from(LINES), min_size=2, max_size=9), st.sampled_from([1, 2, 5, 9]))
def test_read_on_it_is_what_it_is_when_read_as_a_whole(lines: list[str], size: int) -> None:
    source = "".join(lines)
    on = [text.pieces for text in streamed(source, size)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.chat.answer_text.read_open", whole)
        anew = [text.pieces for text in streamed(source, size)]
    for step, (one, other) in enumerate(zip(on, anew, strict=True)):
        assert one == other, source[: (step + 1) * size]


# Fragments of hostile answers: tags, quotes, code and tables in each other.
FRAGMENTS = [
    "<think>", "</think>", "</thinking>", "[/THINK]", "`", "```", "~~~", "\n", "\n\n", "\r", "\r\n",
    "    ", "> ", "- ", "1. ", "9999) ", "* ", "# ", "|", "-", ":-", "-|-", "$$", "\\[", "\\]", "**", "<br>",
    "word ",
]  # fmt: skip


def read_in_parts(source: str, size: int) -> AnswerText:
    *_, text = streamed(source, size)
    return text


@pytest.mark.sweep
@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(FRAGMENTS), min_size=4, max_size=40).map("".join), st.sampled_from([1, 3, 8]))
@example("a\n```\n</think>\n```\nb</thinking>c", 1000)
@example("a [/THINK] b </think> c", 1)
@example("> a\n    > \n    > b\n    > 1. c\n", 1)
@example("> a\n    > ~~~\n    > > b\n", 1)
@example("- a\rm|\n  -::", 1)
@example("9999) [\n9|\n      -:-", 1)
@example("\n>t\n*\n", 1)
@example("1.\n   * )\n\n", 1)
@example("a\r\n- \r\n", 1)
@example("- a\n# y \r\n", 1)
def test_an_answer_reads_the_same_in_flushes_of_any_size(source: str, size: int) -> None:
    parts, whole = read_in_parts(source, size), read_in_parts(source, len(source))
    assert parts.pieces == whole.pieces
    assert parts.thoughts == whole.thoughts
    assert parts.answer_source == whole.answer_source


@pytest.mark.parametrize(
    ("source", "certain", "before", "rest"),
    [
        ("- a\n  - b\n  - c\n  - d", ["a", "b"], "- #\n", "  - c\n  - d"),
        ("- a\n  1. b\n     - c\n     - d\n     - e", ["a", "b", "c"], "- #\n  1. #\n", "     - d\n     - e"),
        ("> a\n>\n> b\n>\n> c", ["a"], "", "> b\n>\n> c"),
        ("> - a\n>\n>   b\n>   c", ["a"], "> - #\n", ">   b\n>   c"),
        ("-\n  a\n\n  b\n  c", ["a"], "- #\n", "  b\n  c"),
        ("- a\n  b\n  c", [], "", "- a\n  b\n  c"),
        # The formula may still end, and then its lines are no list.
        ("- a\n  $$\n  - b\n  - c\n  - d", [], "", "- a\n  $$\n  - b\n  - c\n  - d"),
        ("- a\n  - b\n  $$\n  - c\n  - d", ["a"], "- #\n", "  - b\n  $$\n  - c\n  - d"),
    ],
)
def test_from_where_it_is_read_on(source: str, certain: list[str], before: str, rest: str) -> None:
    read = read_open(source, 0, len(source))
    assert [piece.text for piece in read.pieces[: read.certain]] == certain
    assert (read.before, source[read.start :]) == (before, rest)
    assert parse_block(source, read.start, len(source), read.before) == read.pieces[read.certain :]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("- a\n  $$\n  b\n  c", 1),
        ("- $$\n  b\n  $$\n  c", None),
        ("- $$\n  b\n\n  c", None),
        ("> \\[\n> b\n> \\]\n> c", None),
        ("a\n> \\[\n> b", 1),
        ("plain\nwords", None),
        # More may follow in the last line, and then it is a paragraph with a formula in it.
        ("$$\na\n$$", 0),
    ],
)
def test_where_a_formula_may_go_on(text: str, line: int | None) -> None:
    assert open_formula(text) == line


def nested(count: int) -> str:
    return "- The berths:\n" + "".join(
        f"  - berth {number:03} of the **north** quay is let\n" for number in range(count)
    )


def numbered(count: int) -> str:
    return "".join(f"{number:03}. berth of the **north** quay is let\n" for number in range(100, 100 + count))


def quoted(count: int) -> str:
    return "".join(f"> Rule {number:03} of the *harbour* says so.\n>\n" for number in range(count))


def in_paragraphs(count: int) -> str:
    return "1. The rules:\n" + "".join(
        f"\n   Rule {number:03} of the *harbour* says so.\n" for number in range(count)
    )


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many characters the parser was given, each time."""
    given_: list[int] = []
    parse = MarkdownIt.parse

    def counted(self: MarkdownIt, text: str, env: object = None) -> object:
        given_.append(len(text))
        return parse(self, text, env)

    monkeypatch.setattr(MarkdownIt, "parse", counted)
    return given_


@pytest.mark.sweep
@pytest.mark.parametrize("written", [nested, numbered, quoted, in_paragraphs])
def test_the_two_hundredth_item_costs_what_the_second_did(
    parsed: list[int], qtbot: QtBot, monkeypatch: pytest.MonkeyPatch, written: Callable[[int], str]
) -> None:
    """In work, not in seconds: characters parsed and boxes laid out, at most in one flush."""
    laid_out: list[Piece] = []
    box = text_canvas.PieceBox

    def counted(piece: Piece, *rest: object, **more: object) -> object:
        laid_out.append(piece)
        return box(piece, *rest, **more)

    monkeypatch.setattr(text_canvas, "PieceBox", counted)
    body = AnswerBody()
    qtbot.addWidget(body)
    source = written(200)
    item_length = len(written(101)) - len(written(100))
    work: list[tuple[int, int, int]] = []
    for number, at in enumerate(range(0, len(source), _FLUSH)):
        body.append([token(source[at : at + _FLUSH], position=number)])
        work.append((at // item_length, sum(parsed), len(laid_out)))
        parsed.clear()
        laid_out.clear()
    early = [each for each in work if 3 <= each[0] < 30]
    late = [each for each in work if 170 <= each[0] < 197]
    for what in (1, 2):
        assert max(each[what] for each in late) <= max(each[what] for each in early) > 0
    assert max(each[1] for each in work) < 6 * item_length
    assert len(body.boxes) >= 200
