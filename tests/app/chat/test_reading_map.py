"""The map as numbers: cells, playhead, stretches, headings."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.chat.reading_map import (
    MapCell,
    Stretch,
    cells,
    chosen_passages,
    covered,
    heading_level,
    heading_levels,
    kept_passages,
    passage_at,
    passage_states,
    playhead,
    position_of_character,
    sections,
    skipped_positions,
    skipped_tokens,
    stretches,
)
from core.events import Passage, ReadingMap


def passages(kept: str, start: int = 0, source: int = 0) -> tuple[Passage, ...]:
    """A passage of ten tokens and forty characters for each letter; `K` is kept."""
    return tuple(
        Passage(
            *(start + 10 * n, start + 10 * n + 10, letter in "KE", 0.5),
            *(source, 40 * n, 40 * n + 40),
            earlier=letter == "E",
        )
        for n, letter in enumerate(kept)
    )


def map_of(kept: str, start: int = 0) -> ReadingMap:
    found = passages(kept, start)
    return ReadingMap("r", "lexical", found[-1].end, 10 * kept.count("K"), found)


def states(row: list[MapCell]) -> str:
    return "".join({"empty": ".", "skipped": "-", "kept": "k", "read": "R"}[cell.state] for cell in row)


def test_cells_follow_the_reading() -> None:
    assert states(cells(passages("KK--K-"), 6)) == "RR--R-"
    assert states(cells(passages("KK--K-"), 6, 0)) == "kk--k-"
    assert states(cells(passages("KK--K-"), 6, 10)) == "Rk--k-"
    assert states(cells(passages("KK--K-"), 6, 11)) == "RR--k-"
    assert states(cells(passages("K-", start=500), 4)) == "RR--"
    assert states(cells((), 3)) == "..."


@given(st.text("K-", min_size=1, max_size=400), st.integers(1, 60))
def test_a_kept_passage_is_never_lost_in_a_narrow_strip(kept: str, width: int) -> None:
    row = cells(passages(kept), width)
    assert len(row) == width
    assert ("R" in states(row)) == ("K" in kept)
    assert "." not in states(row)


def test_a_column_shows_the_best_score_that_is_in_it() -> None:
    one, two = Passage(0, 10, False, 0.1), Passage(10, 20, False, 0.9)
    assert cells((one, two), 1) == [MapCell("skipped", 0.9)]


def test_the_playhead_goes_from_kept_to_kept() -> None:
    reading = map_of("-K--K-")
    assert [round(playhead(reading, read), 3) for read in (0, 5, 10, 15, 20)] == [0.167, 0.25, 0.667, 0.75, 1]


def test_what_was_read_earlier_is_neither_read_nor_waiting_now() -> None:
    found = map_of("KESEK")
    assert passage_states(found.passages) == ["read", "earlier", "skipped", "earlier", "read"]
    assert passage_states(found.passages, 10) == ["read", "earlier", "skipped", "earlier", "kept"]
    assert (kept_passages(found.passages), chosen_passages(found.passages)) == (4, 2)
    assert playhead(found, 10) == pytest.approx(0.8)
    assert skipped_tokens(found.passages) == 10


def test_only_true_positions_keep_places_for_what_is_skipped() -> None:
    found = map_of("KSSK")
    assert skipped_positions(found) == 20  # of a chat that an earlier version stored
    assert skipped_positions(replace(found, held_tokens=40)) == 20
    assert skipped_positions(replace(found, held_tokens=20)) == 0


def test_what_was_remembered_is_not_on_the_map() -> None:
    reading = map_of("K-", start=700)
    assert covered(reading) == (700, 720)
    assert playhead(reading, 5) == 0.25
    found = passage_at(reading, 0.6)
    assert found
    assert found.start == 710
    assert passage_at(reading, 0.0) == reading.passages[0]


def test_neighbours_make_one_stretch() -> None:
    assert stretches(passages("-KK-K-")) == (Stretch(40, 120), Stretch(160, 200))
    assert stretches(passages("---")) == ()
    gap = (Passage(0, 10, True, 1.0, 0, 0, 38), Passage(10, 20, True, 1.0, 0, 40, 80))
    assert stretches(gap) == (Stretch(0, 80),)


def test_a_character_has_its_place_on_the_strip() -> None:
    reading = map_of("K-K-")
    assert position_of_character(reading, 0, 60) == 0.375
    assert position_of_character(reading, 1, 60) is None
    assert position_of_character(reading, 0, 1_000) is None


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("# Purpose", 1),
        ("### Deep", 3),
        ("7 Weather", 1),
        ("7.2  Departure in fog", 2),
        ("7.2. Departure", 2),
        ("2026 was a year of storms that nobody in the harbour will forget", 0),
        ("7 vessels left.", 0),
        ("#hashtag", 0),
        ("plain words", 0),
        ("", 0),
        ("12", 0),
    ],
)
def test_headings(line: str, level: int) -> None:
    assert heading_level(line) == level


def test_sections_are_the_headings_that_come_more_than_once() -> None:
    text = "# Handbook\n\n## Purpose\nwords\n## Crew\n### Watches\nmore"
    assert sections(text) == ((text.index("## P"), "Purpose"), (text.index("## C"), "Crew"))
    assert sections("# Only\ntext") == ((0, "Only"),)
    assert sections("no headings here") == ()


def test_lines_of_the_body_are_no_headings() -> None:
    """In the middle of a paragraph, in a numbered list, in fenced code."""
    paragraph = "Ships that enter report at berth\n7 Weather stations away.\nPart A of it is closed"
    numbered = "Rules:\n\n1 Stop\n2 Wait\n3 Go"
    code = "```\n# a comment\n```"
    for text in (paragraph, code):
        assert heading_levels(text.split("\n")) == [0] * len(text.split("\n"))
    assert heading_levels(numbered.split("\n"))[2:4] == [0, 0]
    assert heading_levels(["7.2 Fog", "Slow down.", "", "# Crew", "7 Weather", "It rains."]) == [
        2,
        0,
        0,
        1,
        1,
        0,
    ]
    assert sections(f"{paragraph}\n\n{code}") == ()
