"""The map as numbers, cells and headings, and the words of reading: titles, times, phases, estimates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from app.chat import strings
from app.chat.reading_map import (
    MapCell,
    Stretch,
    cells,
    covered,
    dense_estimate,
    facts_of,
    heading_level,
    heading_levels,
    is_worth_showing,
    kept_passages,
    labels,
    passage_at,
    passage_states,
    passages_of,
    playhead,
    position_of_character,
    read_so_far,
    sections,
    stretches,
)
from app.session.reading import ReadingTotals, totals_of
from core.events import Passage, PrefillProgress, ReadingMap


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


@pytest.mark.parametrize(
    ("kept", "width", "read", "shown"),
    [
        ("KK--K-", 6, (), "RR--R-"),
        ("KK--K-", 6, (0,), "kk--k-"),
        ("KK--K-", 6, (10,), "Rk--k-"),
        ("KK--K-", 6, (11,), "RR--k-"),
        ("K-", 4, (), "RR--"),
        ("", 3, (), "..."),
    ],
)
def test_cells_follow_the_reading(kept: str, width: int, read: tuple[int, ...], shown: str) -> None:
    assert states(cells(passages(kept), width, *read)) == shown


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
    assert kept_passages(found.passages) == 4
    assert playhead(found, 10) == pytest.approx(0.8)
    assert totals_of(found) == ReadingTotals(chosen=20, earlier=20, skipped=10)


def test_what_was_remembered_is_not_on_the_map() -> None:
    reading = map_of("K-", start=700)
    assert covered(reading) == (700, 720)
    assert playhead(reading, 5) == 0.25
    found = passage_at(reading, 0.6)
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
        ("2026 Budget", 0),
        ("The Harbour", 0),
        ("plain words", 0),
        ("", 0),
        ("12", 0),
    ],
)
def test_headings(line: str, level: int) -> None:
    assert heading_level(line) == level


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("# Handbook\n\n## Purpose\nwords\n## Crew\n### Watches\nmore", ["Purpose", "Crew"]),
        ("# Only\ntext", ["Only"]),
        ("no headings here", []),
        ("# draftlight\n\nIt drafts.\n\n# usage notes\n\nRun it.", ["draftlight", "usage notes"]),
        # Shell prompts.
        ("# ls -l /etc", []),
        ("Then:\n\n# apt install -y nginx\n\nand wait.", []),
        ("# whoami\nroot\n# uptime\n 19:16 up", []),
        # Lines of a paragraph, and fenced code.
        ("Ships that enter report at berth\n7 Weather stations away.\nPart A of it is closed", []),
        ("```\n# a comment\n```", []),
    ],
)
def test_sections_are_the_headings_that_come_more_than_once(text: str, names: list[str]) -> None:
    found = sections(text)
    assert [name for _, name in found] == names
    assert all(text[at:].lstrip("# ").startswith(name) for at, name in found)


def test_labels_of_headings_that_begin_alike_can_be_told_apart() -> None:
    heads = [f"Chapter 3. Before the ferry {end}" for end in ("leaves", "arrives", "arrives", "is built")]
    text = "".join(f"{head}\n\n{'x ' * 100}\n\n" for head in heads)
    passages = [replace(PASSAGES[0], start=0, end=len(text), source=0, first_char=0, last_char=len(text))]
    found = labels(replace(MAP, passages=tuple(passages)), {0: ("a.txt", text)})
    names = [words for _, words in found]
    assert len(names) == len(set(names)) == 3  # the head of the second page of a chapter is no new one
    assert [name.split()[-1] for name in names] == ["leaves", "arrives", "built"]


def test_lines_of_the_body_are_no_headings() -> None:
    assert heading_levels(["Rules:", "", "1 Stop", "2 Wait", "3 Go"])[2:4] == [0, 0]
    lines = ["7.2 Fog", "Slow down.", "", "# Crew", "7 Weather", "It rains."]
    assert heading_levels(lines) == [2, 0, 0, 1, 1, 0]


PASSAGES = tuple(Passage(32 * n, 32 * n + 32, n % 4 == 0, 0.5) for n in range(100))
MAP = ReadingMap("r", "draft-model", 4000, 800, PASSAGES)


def test_a_card_is_for_many_tokens_or_for_a_few_that_take_long() -> None:
    assert not is_worth_showing(PrefillProgress("r", 0, 200, 0))
    assert is_worth_showing(PrefillProgress("r", 0, 300, 0))
    for seconds_left, shown in ((None, False), (0.5, False), (12.0, True)):
        progress = PrefillProgress("r", 5000, 5100, 5000, seconds_left=seconds_left)
        assert is_worth_showing(progress) is shown


def test_dense_reading() -> None:
    facts = facts_of(PrefillProgress("r", 7005, 28020, 0, 112, fraction=0.25), None, None, 0.0)
    assert (facts.title, facts.left) == ("Reading 28,020 tokens", "1 min 52 s left")
    assert (facts.done, facts.fraction) == ("7,005 of 28,020 tokens read", 0.25)
    assert facts.phases == ()
    # What was reused does not count as read, and a map that was given up is not shown.
    rest = PrefillProgress("r", 632, 5620, 120)
    assert facts_of(rest, None, None, 0.0).title == "Reading 5,500 tokens"
    assert (read_so_far(rest), read_so_far(PrefillProgress("r", 0, 5620, 120))) == (512, 0)
    given_up = facts_of(PrefillProgress("r", 1000, 4000, 0, 9.0), MAP, 4.6, 0.0)
    assert (given_up.title, given_up.phases) == ("Reading 4,000 tokens", ())


def test_scoring_and_sparse_reading() -> None:
    scoring = PrefillProgress("r", 0, 4000, 0, None, "scoring", 1000, fraction=0.025)
    facts = facts_of(scoring, None, None, 0.0)
    assert (facts.title, facts.left, facts.fraction) == ("Choosing passages…", "", 0.025)
    assert [(phase.title, phase.state) for phase in facts.phases] == [
        ("Scoring", "active"),
        ("Chosen", "ahead"),
        ("Reading", "ahead"),
    ]
    assert facts.phases[0].note == "1,000 of 4,000 tokens"
    progress = PrefillProgress("r", 200, 800, 0, 2.0, "reading", 4000, 800, fraction=0.3, passages=25)
    progress = replace(progress, tokens_per_s=300.0)
    facts = facts_of(progress, MAP, 4.6, 0.0)
    assert (facts.title, facts.fraction) == ("Reading 25 passages", 0.3)
    assert facts.done == "200 of 800 kept tokens read"
    assert [(phase.note, phase.state) for phase in facts.phases] == [
        ("100 passages by draft model, 4.6 s", "done"),
        ("800 of 3,200 tokens (25%)", "done"),
        ("300 tok/s", "active"),
    ]
    # The prompt's last token is in the map, and not yet in the cache when all others are.
    reading = ReadingMap("r", "draft-model", 4000, 646, PASSAGES)
    for reused in (0, 100):
        progress = PrefillProgress("r", reused + 323, reused + 645, reused, 2.0, "reading", 4000, 646)
        facts = facts_of(progress, reading, 4.6, 0.0)
        assert facts.done == "323 of 646 kept tokens read"


def test_reading_on_counts_what_is_read_now() -> None:
    later = tuple(replace(p, kept=p.kept or n % 4 == 1, earlier=p.kept) for n, p in enumerate(PASSAGES))
    reading = ReadingMap("r", "lexical", 4000, 800, later)
    progress = PrefillProgress("r", 1000, 1640, 800, 2.0, "reading", 0, 840)
    facts = facts_of(progress, reading, None, 0.0)
    assert facts.done == strings.READING_KEPT.format(done=200, kept=840)
    assert facts.phases[1].note == strings.CHOSEN_NOTE.format(chosen=800, all=3200, percent=25)


def test_estimates_need_a_time() -> None:
    assert dense_estimate(28_020, 112.08) == "All 28,020 tokens, about 1 min 52 s"
    assert dense_estimate(28_020, None) == "All 28,020 tokens"


def test_passages_are_counted_as_the_document_tab_counts_them() -> None:
    document = [replace(passage, source=0) for passage in PASSAGES[:96]]
    reading = replace(MAP, passages=(*document, *PASSAGES[96:]))
    progress = PrefillProgress("r", 200, 800, 0, 2.0, "reading", 4000, 800)
    notes = [phase.note for phase in facts_of(progress, reading, None, 0.0).phases]
    assert notes[0] == f"{len(passages_of(reading, 0))} passages by draft model"
