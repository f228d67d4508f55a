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


TAGS = {"bold": "b", "italic": "i", "code": "c", "strike": "s", "link": "a", "formula": "f", "display": "d"}


def seen(source: str) -> list[str]:
    """The pieces: kind, quotes as `>`, depth as `·`, marker, and the text with its styles in tags."""
    lines = []
    for piece in parse(source):
        marks: list[tuple[int, int, int, str]] = []
        for style in piece.styles:
            if tag := TAGS.get(style.style):
                address = (
                    "" if style.target in ("", piece.text[style.start : style.end]) else f" {style.target}"
                )
                marks += [(style.start, 1, -style.end, f"<{tag}{address}>")]
                marks += [(style.end, 0, -style.start, f"</{tag}>")]
        text = list(piece.text)
        for at, _, _, mark in sorted(marks, reverse=True):
            text.insert(at, mark)
        kind = "" if piece.kind == "text" else f"{piece.kind}{piece.level or ''}: "
        marker = f"{piece.marker} " if piece.marker else ""
        lines.append(f"{kind}{'>' * piece.quotes}{'·' * piece.depth}{marker}{''.join(text)}")
    return lines


@pytest.mark.parametrize(
    ("source", "pieces"),
    [
        (
            "A **bold *both* word**, `code`, ~~gone~~ and [a link](https://e.org 'A title').",
            ["A <b>bold <i>both</i> word</b>, <c>code</c>, <s>gone</s> and <a https://e.org>a link</a>."],
        ),
        ("3. three\n4. four\n   - deep\n\n     more\n", ["·3. three", "·4. four", "··• deep", "··more"]),
        ("1. - a", ["·1. ", "··• a"]),
        (
            "## Head *it* ##\n\n> said\n> so\n\n---\n\n    indented\n",
            ["heading2: Head <i>it</i>", ">said\nso", "rule: ", "code:     indented"],
        ),
        ("```python title=x\ndef f():\n\n    return '**'\n```\n", ["code: def f():\n\n    return '**'"]),
        ("```sh\r\ncc \\\r\n  -o x \n\r\n```\r\n", ["code: cc \\\n  -o x \n"]),
        ("    a\r\n\r\n    b", ["code:     a\n\n    b"]),
        # A single space before an answer, and those inside lists and quotes, are no indent.
        (" Sure.", ["Sure."]),
        ("- a\n  b", ["·• a\nb"]),
        ("> a\n>  b", [">a\nb"]),
        ("  $x$ is", ["x is"]),
        ("| a | long |\n|---|---|\n| 長い | **x** |\n", ["table: <b>a</b>\t<b>long</b>\n長い\t<b>x</b>"]),
        # Only the web and mail are links.
        (
            "[a](https://e.org/x) [b](mailto:x@e.org) [c](file:///etc/passwd) [d](javascript:x) [e](y.md)",
            [
                "<a https://e.org/x>a</a> <a mailto:x@e.org>b</a> [c](file:///etc/passwd) [d](javascript:x)"
                " [e](y.md)"
            ],
        ),
        (
            "See https://e.org/a_b_(c). Or (https://e.org/d), not `https://e.org/code` or http://.",
            [
                "See <a>https://e.org/a_b_(c)</a>. Or (<a>https://e.org/d</a>), not <c>https://e.org/code</c>"
                " or http://."
            ],
        ),
        (
            r"If \(x_1^2 \leq \frac{a+b}{2}\) and $\alpha \in \mathbb{R}$, then **so**.",
            [r"If <f x_1^2 \leq \frac{a+b}{2}>\(x_1^2 \leq \frac{a+b}{2}\)</f> and α ∈ ℝ, then <b>so</b>."],
        ),
        # A formula that is not simple is its source with its marks, to be typeset.
        ("$$ x^2 $$\n", ["<d  x^2 >$$ x^2 $$</d>"]),
        ("- ```math\n  \\sqrt{x}\n  ```\n", ["·• <d \\sqrt{x}>$$\n\\sqrt{x}\n$$</d>"]),
        # Prices, and formulas beside letters.
        *(
            (text, [text])
            for text in ("It costs $5, not $10 or $HOME/x.", "US$5 and US$6", "A$2, A$3 or A$x$")
        ),
        ("设$x$为正数, 은 $y$는, the $n$th", ["设x为正数, 은 y는, the nth"]),
        # Emphasis beside letters that have no spaces, and links where a Chinese sentence goes on.
        ("**重要：**请注意，**“术语”**的意思。", ["<b>重要：</b>请注意，<b>“术语”</b>的意思。"]),
        ("**핵심(core)**은 글", ["<b>핵심(core)</b>은 글"]),
        ("これは**「引用」**です", ["これは<b>「引用」</b>です"]),
        ("ข้อความ**(ตัวหนา)**ต่อ", ["ข้อความ<b>(ตัวหนา)</b>ต่อ"]),
        ("a**(b)**c", ["a**(b)**c"]),
        (
            "见https://e.org/a，然后 https://e.org/wiki/中文。看https://e.org/b然后 http://e.org/ü",
            [
                "见<a>https://e.org/a</a>，然后 <a>https://e.org/wiki/中文</a>。看<a>https://e.org/b</a>然后"
                " <a>http://e.org/ü</a>"
            ],
        ),
        ("a<br>b<BR />\n c", ["a\nb\nc"]),
        ("| a |\n|---|\n| b<br/>c |\n", ["table: <b>a</b>\nb\u2028c"]),
        # A row keeps the cells beyond its head.
        (
            "> | a | b |\n> |---|---|\n> | 40 | | 40 | x \\| y | `z` |\n",
            ["table: ><b>a</b>\t<b>b</b>\n40\t\t40\tx | y\t<c>z</c>"],
        ),
        ("- [ ] **a**\n- [x] b\n- [x]c\n1. [X] d\n", ["·☐ <b>a</b>", "·☑ b", "·• [x]c", "·1. ☑ d"]),
        ("A fact[^1] but [^a-z].", ["A fact[1] but [^a-z]."]),
        ("[^1]: one\nmore\n[^long]: `two`\n", ["·[1] one\nmore", "·[long] <c>two</c>"]),
        ("Term\n: *one*\n: two\n", ["<b>Term</b>", "·<i>one</i>", "·two"]),
        ("time\n:) a", ["time\n:) a"]),
        (
            "So:\n\\[\na\n- b\n= c \\\\\n+ d\n\\]\nEnd.",
            ["So:", "<d \na\n- b\n= c \\\\\n+ d\n>\\[\na\n- b\n= c \\\\\n+ d\n\\]</d>", "End."],
        ),
        # HTML and link definitions are just text; images are described, not fetched.
        ("<b>x</b> <!-- y -->", ["<b>x</b> <!-- y -->"]),
        ("![a cat](https://example.org/cat.png) sits", ["<a https://example.org/cat.png>a cat</a> sits"]),
        ("a\\*b &amp; c  \nd\\\ne", ["a*b & c\nd\ne"]),
    ],
)
def test_what_is_seen(source: str, pieces: list[str]) -> None:
    assert seen(source) == pieces


@pytest.mark.parametrize(
    ("source", "shown", "at"),
    [
        ("[a](https://b(c)d 'e) f') d e", "d", 26),
        ("```python title=x\ndef f()\n```\n", "d", 18),
        ("a\\*b &amp; c  \nd\\\ne", "*", 2),
        ("a\\*b &amp; c  \nd\\\ne", "&", 5),
        ("one\r\ntwo **x**\r\n", "x", 11),
    ],
)
def test_where_a_character_came_from(source: str, shown: str, at: int) -> None:
    piece = one(source)
    assert source[at] == shown
    assert source_at(piece.segments, piece.text.index(shown)) == at


def test_cells_and_their_alignment() -> None:
    piece = one("| a | long |\n|---|---|\n| 長い | **x** |\n")
    assert [(cell.row, cell.column, piece.text[cell.start : cell.end]) for cell in piece.cells] == [
        (0, 0, "a"),
        (0, 1, "long"),
        (1, 0, "長い"),
        (1, 1, "x"),
    ]
    assert one("|a|b|c|\n|:-|:-:|-:|\n|1|2|3|\n").aligns == ("left", "center", "right")
    links = one("[a](https://e.org/x) [b](mailto:x@e.org)")
    assert [links.link_at(place) for place in range(3)] == ["https://e.org/x", "", "mailto:x@e.org"]


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
    parser.validateLink = may_open
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


@pytest.mark.sweep
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
