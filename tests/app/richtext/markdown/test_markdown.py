"""Markdown: pieces, and that every visible character still knows where it came from."""

from __future__ import annotations

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.richtext.markdown.markdown import parse_block
from app.richtext.markdown.piece import Piece, gap_px, open_code_piece, plain_piece
from app.richtext.markdown.spans import source_at


def parse(source: str) -> tuple[Piece, ...]:
    return parse_block(source, 0, len(source))


def one(source: str) -> Piece:
    (piece,) = parse(source)
    return piece


def styled(piece: Piece, style: str) -> list[str]:
    return [piece.text[s.start : s.end] for s in piece.styles if s.style == style]


def test_inline_styles() -> None:
    piece = one(
        'A **bold *both* word**, `code`, ~~gone~~ and [a link](https://example.org "A title") a link.'
    )
    assert piece.text == "A bold both word, code, gone and a link a link."
    assert styled(piece, "bold") == ["bold both word"]
    assert styled(piece, "italic") == ["both"]
    assert styled(piece, "code") == ["code"]
    assert styled(piece, "strike") == ["gone"]
    assert styled(piece, "link") == ["a link"]


def test_text_behind_a_link_is_not_taken_from_inside_its_address() -> None:
    source = "[a](https://b(c)d 'e) f') d e"
    piece = one(source)
    assert piece.text == "a d e"
    place = piece.text.index(" d")
    assert source_at(piece.segments, place) == source.rindex(" d")


def test_lists_and_their_markers() -> None:
    pieces = parse("3. three\n4. four\n   - deep\n\n     more\n")
    assert [(p.text, p.marker, p.depth) for p in pieces] == [
        ("three", "3.", 1),
        ("four", "4.", 1),
        ("deep", "•", 2),
        ("more", "", 2),
    ]


def test_an_item_that_starts_with_a_list_keeps_its_marker() -> None:
    assert [(p.text, p.marker) for p in parse("1. - a")] == [("", "1."), ("a", "•")]


def test_headings_quotes_rules_and_code() -> None:
    pieces = parse("## Head *it* ##\n\n> said\n> so\n\n---\n\n    indented\n")
    assert [(p.kind, p.text, p.level, p.quotes) for p in pieces] == [
        ("heading", "Head it", 2, 0),
        ("text", "said\nso", 0, 1),
        ("rule", "", 0, 0),
        ("code", "    indented", 0, 0),
    ]


def test_fenced_code_is_shown_as_written() -> None:
    piece = one("```python title=x\ndef f():\n\n    return '**'\n```\n")
    assert (piece.kind, piece.language) == ("code", "python")
    assert piece.text == "def f():\n\n    return '**'"
    assert source_at(piece.segments, 0) == 18


UNFENCED = (
    "def tide(hours):\n    if hours:\n\treturn 'low'\n    return 'high'",
    "    else:\n        `x` = **1**\n    return x",
    "harbour:\n  quay: 4 m\n    pier: 3 m",
    "  quay: 4 m\n  *pier*: 3 m",
)


@pytest.mark.parametrize("source", UNFENCED)
def test_code_that_nobody_fenced_keeps_its_indent_when_it_is_closed(source: str) -> None:
    piece = one(source)
    streamed = plain_piece(source, 0, len(source)).text
    assert piece.kind == ("code" if source.startswith("    ") else "text")
    indents = [line[: len(line) - len(line.lstrip())] for line in streamed.split("\n")]
    assert [line[: len(line) - len(line.lstrip())] for line in piece.text.split("\n")] == indents
    for place, character in enumerate(piece.text):
        assert (source[source_at(piece.segments, place) or 0]) == character
    assert styled(piece, "italic") in ([], ["pier"])


def test_a_single_space_before_an_answer_and_those_inside_lists_and_quotes_are_no_indent() -> None:
    assert one(" Sure.").text == "Sure."
    assert one("- a\n  b").text == "a\nb"
    assert one("> a\n>  b").text == "a\nb"
    assert one("  $x$ is").text == "x is"


def test_tables_stand_in_columns() -> None:
    piece = one("| a | long |\n|---|---|\n| 長い | **x** |\n")
    assert piece.kind == "table"
    assert piece.text == "a\tlong\n長い\tx"
    assert styled(piece, "bold") == ["a", "long", "x"]
    assert [(cell.row, cell.column, piece.text[cell.start : cell.end]) for cell in piece.cells] == [
        (0, 0, "a"),
        (0, 1, "long"),
        (1, 0, "長い"),
        (1, 1, "x"),
    ]


def test_columns_are_aligned_as_asked() -> None:
    assert one("|a|b|c|\n|:-|:-:|-:|\n|1|2|3|\n").aligns == ("left", "center", "right")


def test_only_the_web_and_mail_are_links() -> None:
    piece = one(
        "[a](https://e.org/x) [b](mailto:x@e.org) [c](file:///etc/passwd) [d](javascript:x) [e](y.md)"
    )
    assert piece.text == "a b [c](file:///etc/passwd) [d](javascript:x) [e](y.md)"
    assert [s.target for s in piece.styles] == ["https://e.org/x", "mailto:x@e.org"]
    assert (piece.link_at(0), piece.link_at(1), piece.link_at(2)) == ("https://e.org/x", "", "mailto:x@e.org")


def test_an_address_in_plain_text_is_a_link() -> None:
    piece = one("See https://e.org/a_b_(c). Or (https://e.org/d), not `https://e.org/code` or http://.")
    assert [s.target for s in piece.styles if s.style == "link"] == [
        "https://e.org/a_b_(c)",
        "https://e.org/d",
    ]
    assert styled(piece, "link") == ["https://e.org/a_b_(c)", "https://e.org/d"]


def test_formulas_are_unicode() -> None:
    piece = one(r"If \(x_1^2 \leq \frac{a+b}{2}\) and $\alpha \in \mathbb{R}$, then **so**.")
    assert piece.text == "If x₁² ≤ (a+b)/2 and α ∈ ℝ, then so."
    assert styled(piece, "bold") == ["so"]


def test_prices_are_not_formulas() -> None:
    assert one("It costs $5, not $10 or $HOME/x.").text == "It costs $5, not $10 or $HOME/x."


def test_a_formula_over_several_lines_is_one_paragraph() -> None:
    source = "So:\n\\[\na\n- b\n= c \\\\\n+ d\n\\]\nEnd."
    assert [piece.text for piece in parse(source)] == ["So:", "a − b = c\n+ d", "End."]


def test_html_and_link_definitions_are_just_text() -> None:
    assert one("<b>x</b> <!-- y -->").text == "<b>x</b> <!-- y -->"
    assert one("[a]: https://example.org").text == "[a]: https://example.org"


def test_images_are_described_not_fetched() -> None:
    assert one("![a cat](https://example.org/cat.png) sits").text == "a cat sits"


def test_escapes_entities_and_hard_breaks() -> None:
    source = "a\\*b &amp; c  \nd\\\ne"
    piece = one(source)
    assert piece.text == "a*b & c\nd\ne"
    assert source_at(piece.segments, piece.text.index("*")) == source.index("*")
    assert source_at(piece.segments, piece.text.index("&")) == source.index("&")


def test_windows_line_ends() -> None:
    source = "one\r\ntwo **x**\r\n"
    piece = one(source)
    place = piece.text.index("x")
    assert source_at(piece.segments, place) == source.index("x")


words = st.sampled_from(
    [
        "word",
        "**b**",
        "*i*",
        "`c`",
        "``a ` b``",
        "[l](u)",
        "\\*",
        "&lt;",
        "<http://e.org>",
        "a_b_c",
        "*",
        "日本",
        "🙂",
    ]
)
inlines = st.lists(words, min_size=1, max_size=8).map(" ".join)
blocks = st.one_of(
    inlines,
    inlines.map("# {}".format),
    inlines.map("> {}".format),
    st.lists(inlines, min_size=1, max_size=3).map(
        lambda items: "\n".join(f"{n}. {i}" for n, i in enumerate(items, 1))
    ),
    st.lists(inlines, min_size=1, max_size=3).map(lambda items: "\n".join(f"- {i}\n  - {i}" for i in items)),
    inlines.map("```py\n{}\n\n  x\n```".format),
    st.tuples(inlines, inlines).map(lambda rows: f"| {rows[0]} | b |\n|--|--|\n| {rows[1]} | c |"),
)
documents = st.lists(blocks, min_size=1, max_size=4).map("\n\n".join)


@given(documents, st.sampled_from(["", "before\n\n"]))
def test_every_visible_character_comes_from_its_own_character(source: str, before: str) -> None:
    whole = before + source
    last = -1
    for piece in parse_block(whole, len(before), len(whole)):
        for place, character in enumerate(piece.text):
            origin = source_at(piece.segments, place)
            if origin is None:  # only what parts a table's cells is put in
                assert piece.kind == "table"
                assert character in "\t\n"
                continue
            assert origin >= len(before)
            written = whole[origin]
            if written == "&" != character:
                assert html.unescape(whole[origin : whole.index(";", origin) + 1]) == character
            else:
                assert written == character or (written, character) == ("\n", " ")
            assert origin > last
            last = origin


@given(documents)
def test_segments_run_in_order(source: str) -> None:
    for piece in parse(source):
        ends = [(0, 0), *((s.end, s.source + s.length) for s in piece.segments)]
        for (end, source_end), segment in zip(ends, piece.segments):
            assert segment.start >= end
            assert segment.source >= source_end
        assert piece.source_start <= piece.source_end <= len(source)


def test_the_open_piece_is_the_source_without_breaks_around_it() -> None:
    source = "done\n\n\nopen **text\n"
    piece = plain_piece(source, 6, len(source))
    assert piece.text == "open **text"
    assert source_at(piece.segments, 0) == 7


def test_open_code_holds_back_what_may_become_its_end() -> None:
    source = "```py\nx = 1\n``"
    assert open_code_piece(source, 0, 6, len(source), "py").text == "x = 1"
    assert open_code_piece(source, 0, 6, 6, "py").text == ""


def test_gaps() -> None:
    paragraph, item, code = one("a"), one("- a"), one("```\na\n```")
    assert gap_px(paragraph, paragraph) == 11
    assert gap_px(paragraph, item) == 8
    assert gap_px(item, item) == 5
    assert gap_px(item, paragraph) == 11
    assert gap_px(code, paragraph) == 12


@pytest.mark.parametrize(
    "source",
    [
        "- ab\n\tcd",
        "\n- ab\r\tcd",
        "- ab\n\t\tcd",
        "- ab\n \tcd",
        "1. x\n\n\tyy zz\n\tqq",
        "> a\n>\tb",
        "- a\n  - b\n\tcc",
        "10) a\n\tb\n\t\tc",
    ],
)
def test_a_line_behind_a_tab_is_where_it_stands(source: str) -> None:
    for piece in parse_block(source, 0, len(source)):
        for segment in piece.segments:
            shown = piece.text[segment.start : segment.end]
            written = source[segment.source : segment.source + segment.length]
            assert shown.split() == written.split()
