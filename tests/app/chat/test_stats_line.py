"""The footer's figures, as the design words them."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from app.chat.answer_text import PartFigures, TokenTable
from app.chat.stats_line import (
    StatsPart,
    break_parts,
    change_text,
    cut_off_parts,
    details_text,
    finished_parts,
    live_parts,
    plain_text,
)
from core.events import Change, Stats
from tests.app.chat.written import finished, tokens_of

STATS = Stats(
    prompt_tokens=28020,
    read_tokens=28020,
    tokens=214,
    accepted=148,
    bonus=50,
    normal=16,
    steps=66,
    tested=231,
    drafted=300,
    mean_per_step=214 / 66,
    ttft_s=0.41,
    tokens_per_s=58.43,
)


def test_the_whole_line() -> None:
    assert plain_text(finished_parts(finished(STATS))) == (
        "58.4 tok/s · TTFT 0.41 s · 214 tokens · 148/231 drafts accepted (64%) · mean 3.2/step"
        " · ngram-simple · read all 28,020 tokens"
    )


def test_an_answer_that_was_thought_about_has_its_own_figures_and_those_of_all() -> None:
    alone = PartFigures(58, 19, 1.64)
    line = plain_text(finished_parts(finished(STATS), alone=alone))
    assert "· answer 58 tokens in 1.64 s, 19 from drafts (33%) · 214 tokens with the thought ·" in line
    plain = plain_text(finished_parts(finished(STATS), alone=PartFigures(58, None, 1.64)))
    assert "· answer 58 tokens in 1.64 s · 214 tokens with the thought ·" in plain
    assert finished_parts(finished(STATS), alone=PartFigures(0, None, 0.0))


def test_the_speed_stands_out_and_nothing_else() -> None:
    assert [part.emphasis for part in finished_parts(finished(STATS))] == ["strong"] + ["plain"] * 6


def test_what_was_cached_and_what_was_skipped_are_two_things() -> None:
    stats = Stats(prompt_tokens=3868, reused_tokens=100, read_tokens=1272, skipped_tokens=2496)
    said = plain_text(finished_parts(finished(stats)))
    assert "read 1,272 of 3,868 tokens, 100 cached, 2,496 skipped" in said


def test_while_it_is_written_the_speed_is_the_gauge_s_alone() -> None:
    table = TokenTable()
    table.extend(tokens_of("One{ two| three^ four} five"))
    assert plain_text(live_parts(table)) == "TTFT 0.44 s · 5 tokens · mean 1.7/step"
    assert plain_text(cut_off_parts(table)).startswith("50.0 tok/s · TTFT 0.44 s")


def test_who_points_at_a_figure_is_told_why_it_is_so() -> None:
    stats = Stats(prompt_tokens=28020, read_tokens=5620)
    done = finished(
        stats,
        gate="resting: only 3% of the prompt repeats",
        reading="sparse",
        reading_reason="28,020 tokens are new",
        scorer="draft-model",
    )
    details = {part.text: part.detail for part in finished_parts(done) if part.detail}
    assert details == {
        "ngram-simple": "Resting: only 3% of the prompt repeats.",
        "read 5,620 of 28,020 tokens": "Passages chosen by draft model. 28,020 tokens are new.",
    }
    assert details_text(finished_parts(done)) == " ".join(details.values())
    whole = finished_parts(finished(STATS, reading_reason="all of the text is kept"))
    assert whole[-1].detail == "All of the text is kept."
    assert not details_text(finished_parts(finished(STATS)))


def test_without_a_drafter_there_are_no_drafts_to_count() -> None:
    line = plain_text(finished_parts(finished(Stats(tokens=1), drafter="off")))
    assert "drafts" not in line
    assert "· off ·" in line
    assert "1 token ·" in line


def test_a_drafter_that_never_drafted_says_so() -> None:
    assert "no drafts tested" in plain_text(finished_parts(finished(Stats(tokens=5))))


def test_how_it_ended() -> None:
    assert finished_parts(finished(reason="cancelled"))[-1] == StatsPart("stopped by you")
    assert finished_parts(finished(reason="length"))[-1] == StatsPart("stopped at the token limit")


def test_cut_off_has_what_the_tokens_tell_and_the_reason_in_danger() -> None:
    table = TokenTable()
    table.extend(tokens_of("One{ two| three^ four} five"))
    parts = cut_off_parts(table)
    assert plain_text(parts) == "50.0 tok/s · TTFT 0.44 s · 5 tokens · mean 1.7/step · stopped early"
    assert parts[-1].emphasis == "danger"
    assert plain_text(cut_off_parts(TokenTable())) == "stopped early"


def test_changes_are_plain_sentences() -> None:
    change = Change("sampling.max_tokens", "1024", "512", "the context ends there")
    assert change_text(change) == "Length 512 instead of 1,024: the context ends there."
    assert change_text(Change("new.thing", "a", "b", "why.")) == "new.thing b instead of a: why."
    assert change_text(Change("prefill.mode", "on", "off", "why")) == "Reading Whole instead of Quick: why."


widths = st.lists(st.integers(1, 40), min_size=1, max_size=9)


@given(widths, st.integers(10, 120))
def test_lines_break_only_between_figures_and_fit(sizes: list[int], width: int) -> None:
    parts = [StatsPart("x" * size) for size in sizes]
    lines = break_parts(parts, width, lambda part: len(part.text))
    assert [part for line in lines for part in line] == parts
    for line in lines:
        assert len(line) == 1 or len(plain_text(line)) <= width
    for line, following in itertools.pairwise(lines):
        assert len(plain_text([*line, following[0]])) > width


def test_speed_tokens_and_share_read_are_always_shown() -> None:
    done = finished(Stats(prompt_tokens=28020, read_tokens=5620, tokens=214, tokens_per_s=58.4, tested=9))
    shown = [part.text for part in finished_parts(done) if not part.minor]
    assert shown == ["58.4 tok/s", "214 tokens", "read 5,620 of 28,020 tokens"]
    stopped = finished_parts(finished(reason="length"))
    assert not stopped[-1].minor
