"""BlockSplitter: blocks partition the source and close as soon as they can."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.richtext.markdown.blocks import Block, BlockSplitter
from app.richtext.markdown.markdown import parse_block


def split(source: str, size: int = 1000) -> list[str]:
    splitter = BlockSplitter()
    blocks: list[Block] = []
    for at in range(0, len(source), size):
        blocks += splitter.feed(source[at : at + size])
    blocks += splitter.finish()
    return [source[block.start : block.end] for block in blocks]


lines = st.sampled_from(
    [
        "",
        "text",
        "more text",
        "# head",
        "1. one",
        "2. two",
        "- item",
        "   inside",
        "  - sub",
        "> said",
        "```",
        "    x",
    ]
)
documents = st.lists(lines, max_size=16).map("\n".join)


@given(documents, st.integers(1, 7))
def test_blocks_partition_the_source_however_it_comes(source: str, size: int) -> None:
    assert "".join(split(source, size)) == source
    if len(split(source)) == len(split(source, size)):
        assert split(source) == split(source, size)


@pytest.mark.parametrize(
    ("source", "blocks"),
    [
        ("a\nb\n\nc", ["a\nb\n\n", "c"]),
        ("# h\ntext", ["# h\n", "text"]),
        ("text\n```py\nx\n\ny\n```\nafter", ["text\n", "```py\nx\n\ny\n```\n", "after"]),
        ("1. a\n2. b\n\n3. c\n\nend", ["1. a\n", "2. b\n\n", "3. c\n\n", "end"]),
        ("1. a\n\n   ```\n   x\n\n   y\n   ```\n2. b", ["1. a\n\n   ```\n   x\n\n   y\n   ```\n", "2. b"]),
        ("- a\n  - b\n  - c\n- d", ["- a\n  - b\n  - c\n", "- d"]),
        ("page\n12. is not a list", ["page\n12. is not a list"]),
        ("~~~\n```\n~~~\nx", ["~~~\n```\n~~~\n", "x"]),
        ("***\n\ntext", ["***\n\n", "text"]),
        ("    a\n\n\n    b\n\n c", ["    a\n\n\n    b\n\n", " c"]),
    ],
)
def test_where_blocks_end(source: str, blocks: list[str]) -> None:
    assert split(source) == blocks
    assert split(source, 1) == blocks


def test_a_paragraph_closes_with_its_blank_line() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("one\n") == []
    assert splitter.feed("\n") == [Block(0, 5)]
    assert splitter.open_start == 5


@pytest.mark.parametrize(
    ("source", "closed"),
    [
        ("text\n- i", 1),
        ("text\n# ", 1),
        ("text\n1. i", 1),
        ("text\n#", 0),  # a word of a topic, or a heading
        ("text\n- -", 0),  # a rule, or an item
        ("text\n2. i", 0),
        ("$$\n- i", 0),
    ],
)
def test_text_closes_as_soon_as_something_else_has_certainly_begun(source: str, closed: int) -> None:
    assert len(BlockSplitter().feed(source)) == closed


def test_a_list_item_closes_when_the_next_line_has_begun_outside() -> None:
    splitter = BlockSplitter()
    assert splitter.feed("1. one\n\nO") == [Block(0, 8)]
    splitter = BlockSplitter()
    assert splitter.feed("- one\n- t") == [Block(0, 6)]


def test_open_code_is_known_from_its_first_line_on() -> None:
    splitter = BlockSplitter()
    splitter.feed("```python")
    assert splitter.open_code is None
    splitter.feed("\nx = 1")
    code = splitter.open_code
    assert (code.start, code.body, code.language) == (0, 10, "python")
    assert splitter.feed("\n```\n") == [Block(0, 20)]
    assert splitter.open_code is None


def test_an_unclosed_fence_is_code_to_the_end() -> None:
    assert split("```\nx\n\ny") == ["```\nx\n\ny"]


calm = st.lists(
    st.sampled_from(
        ["A *paragraph* of\ntwo lines", "# Title", "1. one\n2. two", "- a\n  - b", "```\nx\n\ny\n```", "> q"]
    ),
    max_size=8,
).map("\n\n".join)


@given(calm)
def test_block_by_block_shows_the_same_words_as_all_at_once(source: str) -> None:
    whole = [piece.text for piece in parse_block(source, 0, len(source))]
    parts: list[str] = []
    at = 0
    for block in split(source):
        parts += [piece.text for piece in parse_block(source, at, at + len(block))]
        at += len(block)
    assert parts == whole
