"""A document's text in blocks."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from app.chat.reading_map import Stretch
from app.panels.document_paint import MOST_CHARACTERS, BlockPart, TextBlock, block_at, blocks_of, parts_of

TEXT = "7.2 Fog\nFirst line\nsecond line\n\nNew paragraph"


def test_lines_headings_and_paragraphs() -> None:
    assert blocks_of(TEXT) == (
        TextBlock(0, 7, heading=True),
        TextBlock(8, 18, opens=True, closes=False),
        TextBlock(19, 30, opens=False, closes=True),
        TextBlock(32, 45),
    )
    assert blocks_of("") == ()
    assert blocks_of("\n \n") == ()


@given(st.text("ab \n#1.", max_size=300))
def test_blocks_hold_all_that_can_be_seen(text: str) -> None:
    found = blocks_of(text)
    assert "".join("".join(text[b.start : b.end] for b in found).split()) == "".join(text.split())
    assert all(one.end <= other.start for one, other in pairwise(found))
    if found:
        assert found[0].opens
        assert found[-1].closes


def test_hard_wrapped_prose_is_one_block() -> None:
    """Lists, code and short lines keep their breaks."""
    wrapped = (
        "A vessel that leaves in fog sounds one long blast\nevery two minutes, and waits at the pilot\nbuoy."
    )
    text = f"{wrapped}\n\n- one entry of a list that is as long as the lines of prose above\n- two\n    code"
    assert [text[block.start : block.end] for block in blocks_of(text)] == [
        wrapped,
        "- one entry of a list that is as long as the lines of prose above",
        "- two",
        "    code",
    ]


def test_very_long_lines_are_cut_at_words() -> None:
    text = "word " * 2_000
    found = blocks_of(text)
    assert all(block.end - block.start <= MOST_CHARACTERS for block in found)
    assert "".join(text[block.start : block.end] for block in found) == text
    assert all(text[block.end - 1] == " " for block in found[:-1])
    assert [block.opens for block in found] == [True] + [False] * (len(found) - 1)
    assert len(blocks_of("x" * 10_000)) == 5


def test_what_of_a_block_is_read() -> None:
    stretches = (Stretch(0, 10), Stretch(20, 40), Stretch(50, 60))
    starts = [stretch.first for stretch in stretches]
    assert parts_of(TextBlock(5, 30), stretches, starts) == (BlockPart(0, 5, 0), BlockPart(15, 25, 1))
    assert parts_of(TextBlock(25, 35), stretches, starts) == (BlockPart(0, 10, 1),)
    assert parts_of(TextBlock(40, 50), stretches, starts) == ()
    assert parts_of(TextBlock(0, 5), (), ()) == ()


def test_the_block_of_a_character() -> None:
    starts = [block.start for block in blocks_of(TEXT)]
    assert [block_at(starts, place) for place in (0, 7, 8, 31, 32, 99)] == [0, 0, 1, 2, 3, 3]
