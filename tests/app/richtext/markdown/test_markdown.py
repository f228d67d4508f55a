"""Markdown: pieces, and that every visible character still knows where it came from."""

from __future__ import annotations

import html
import re
import unicodedata
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token as Node

from app.richtext.markdown.blocks import BlockSplitter
from app.richtext.markdown.inline import may_open
from app.richtext.markdown.markdown import parse_block
from app.richtext.markdown.piece import Piece, gap_px, open_code_piece, plain_piece, source_at
from app.richtext.selection import everything, selected_text


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


@pytest.mark.parametrize(
    "text", ["It costs $5, not $10 or $HOME/x.", "US$5 and US$6", "$HOME/$USER", "A$2, A$3 or A$x$"]
)
def test_prices_are_not_formulas(text: str) -> None:
    assert one(text).text == text


def test_formulas_beside_letters() -> None:
    assert one("设$x$为正数, 은 $y$는, the $n$th").text == "设x为正数, 은 y는, the nth"


CJK_EMPHASIS = [
    ("**重要：**请注意，**“术语”**的意思。", "重要：请注意，“术语”的意思。", ["重要：", "“术语”"]),
    ("**핵심(core)**은 글", "핵심(core)은 글", ["핵심(core)"]),
    ("これは**「引用」**です", "これは「引用」です", ["「引用」"]),
    ("ข้อความ**(ตัวหนา)**ต่อ", "ข้อความ(ตัวหนา)ต่อ", ["(ตัวหนา)"]),
    ("a**(b)**c", "a**(b)**c", []),
]


@pytest.mark.parametrize(("source", "text", "bold"), CJK_EMPHASIS)
def test_emphasis_beside_letters_that_have_no_spaces(source: str, text: str, bold: list[str]) -> None:
    assert (one(source).text, styled(one(source), "bold")) == (text, bold)


def test_a_link_ends_where_a_chinese_sentence_goes_on() -> None:
    piece = one("见https://e.org/a，然后 https://e.org/wiki/中文。看https://e.org/b然后 http://e.org/ü")
    links = ["https://e.org/a", "https://e.org/wiki/中文", "https://e.org/b", "http://e.org/ü"]
    assert styled(piece, "link") == links


def test_a_break_tag_breaks_the_line() -> None:
    assert one("a<br>b<BR />\n c").text == "a\nb\nc"
    piece = one("| a |\n|---|\n| b<br/>c |\n")
    assert piece.text == "a\nb\u2028c"


def test_a_row_keeps_the_cells_beyond_its_head() -> None:
    source = "> | a | b |\n> |---|---|\n> | 40 | | 40 | x \\| y | `z` |\n"
    piece = one(source)
    assert piece.text == "a\tb\n40\t\t40\tx | y\tz"
    for place, character in enumerate(piece.text):
        origin = source_at(piece.segments, place)
        assert origin is None or source[origin] == character


def test_tasks_footnotes_and_definitions() -> None:
    source = "- [ ] **a**\n- [x] b\n- [x]c\n1. [X] d\n"
    assert [(p.marker, p.text) for p in parse(source)] == [
        ("☐", "a"), ("☑", "b"), ("•", "[x]c"), ("1. ☑", "d"),
    ]  # fmt: skip
    assert one("A fact[^1] but [^a-z].").text == "A fact[1] but [^a-z]."
    notes = parse("[^1]: one\nmore\n[^long]: `two`\n")
    assert [(p.marker, p.text, p.depth) for p in notes] == [("[1]", "one\nmore", 1), ("[long]", "two", 1)]
    term, first, second = parse("Term\n: *one*\n: two\n")
    assert (styled(term, "bold"), first.text, first.depth, second.text) == (["Term"], "one", 1, "two")
    assert one("time\n:) a").text == "time\n:) a"


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
def test_what_is_shown_is_the_text_of_the_parsers_tokens(source: str) -> None:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.validateLink = may_open  # type: ignore[method-assign,assignment]
    shown = "".join(_visible(node) for node in parser.parse(source))
    assert "".join("".join(piece.text.split()) for piece in parse(source)) == "".join(shown.split())


def _visible(node: Node) -> str:
    if node.children and node.type in ("inline", "image"):
        return "".join(map(_visible, node.children))
    return node.content


def numbered(text: str) -> str:
    """`text` with another number of four digits for each @, in order."""
    numbers = count(1000)
    return re.sub("@", lambda _: str(next(numbers)), text)


INLINE = [
    "@", "**@**", "*@ **@***", "_@_", "~~@~~", "`@`", "`` ` @ ``", "[@](https://e.org 'T')",
    "![@](https://e.org)", "<@>", "<b>@</b>", "&lt;@&gt;", "\\*@\\*", "[^@]", "$x_{@}$",
    "$\\frac{@}{@}y$", "$\\sqrt[@]{@}z$",
    "\\(@^{@}\\)", "$@", "@<br>@", "重要**「@」**的", "https://e.org/@，", "[@", "]@", "(*@",
    "@\n@", "@  \n@",
    "\\begin{cases} @ & @ \\\\[2pt] @ \\end{cases}", "$\\unknown{@}$", "`@", "**@", "~~@", "\t@", "🙂@",
    "[a]: @", "$\\begin{pmatrix} @ & @ \\\\ @ \\end{pmatrix}^@$", "$@ \\over @$", "[@](javascript:@)",
]  # fmt: skip
BLOCKS = [
    "%s", "# %s", "> %s", "> - %s\n>\n> %s", "- [ ] %s\n- [x] @\n  - %s", "1. %s\n2. %s", "* %s\n\n  %s",
    "Term %s\n: %s\n: @", "[^@]: %s\n[^n]: @", "```py\n%s\n```", "~~~\n%s", "    %s", "%s\n===",
    "$$\n@ + @\n$$\n%s", "\\[\n@ \\\\ @\n\\]", "%s\n***\n%s", "<div>%s</div>", "+ %s\n%s", "> > %s\n%s",
    "| @ | @ |\n|---|:-:|\n| @ | | @<br>@ | @ \\| @ |\n| `@` | **@** |\n\n%s",
    "@ | @\n--|--\n@ | [@](u) | x | @\n@",
]  # fmt: skip
inline_parts = st.lists(st.sampled_from(INLINE), min_size=1, max_size=5).map(" ".join)
block_parts = st.sampled_from(BLOCKS).flatmap(
    lambda form: st.tuples(*[inline_parts] * form.count("%s")).map(lambda parts: form % parts)
)


@settings(max_examples=400, suppress_health_check=list(HealthCheck))
@given(st.lists(block_parts, min_size=1, max_size=5), st.sampled_from(["\n\n", "\n"]))
def test_every_number_of_any_markdown_is_shown_once_and_in_order(parts: list[str], between: str) -> None:
    source = numbered(between.join(parts))
    splitter = BlockSplitter()
    blocks = [*splitter.feed(source), *splitter.finish()]
    pieces = [piece for block in blocks for piece in parse_block(source, block.start, block.end)]
    shown = "\n".join(f"{piece.marker} {piece.language} {piece.text}" for piece in pieces)
    written = re.findall(r"\d{4}", source)
    assert re.findall(r"\d{4}", unicodedata.normalize("NFKC", shown)) == written
    copied = unicodedata.normalize("NFKC", selected_text(pieces, everything(pieces)))
    if not any(piece.language for piece in pieces):
        assert re.findall(r"\d{4}", copied) == written


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
