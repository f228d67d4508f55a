"""The footer's figures, as the design words them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from msgspec.structs import replace

from app.chat.answer_text import PartFigures, TokenTable
from app.chat.stats_line import (
    StatsPart,
    change_text,
    cut_off_parts,
    details_text,
    finished_parts,
    live_parts,
    plain_text,
    tip_text,
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
        "58.4 tok/s · first token 0.41 s · 64% of drafts accepted · 214 tokens"
        " · 148 of 231 drafted tokens accepted · 3.2 tokens per step · ngram-simple · read all 28,020 tokens"
    )


def test_an_answer_that_was_thought_about_has_its_own_figures_and_those_of_all() -> None:
    alone = PartFigures(58, 19, 1.64)
    line = plain_text(finished_parts(finished(STATS), alone=alone))
    assert "· answer 58 tokens in 1.64 s, 19 from drafts (33%) · 214 tokens with the thought ·" in line
    plain = plain_text(finished_parts(finished(STATS), alone=PartFigures(58, None, 1.64)))
    assert "· answer 58 tokens in 1.64 s · 214 tokens with the thought ·" in plain
    assert finished_parts(finished(STATS), alone=PartFigures(0, None, 0.0))


def shown(parts: Sequence[StatsPart]) -> str:
    return plain_text([part for part in parts if not part.minor])


def test_one_brief_line_is_always_shown() -> None:
    """Speed, first token, accepted share, and an ending that a person would not expect."""
    brief = "58.4 tok/s · first token 0.41 s · 64% of drafts accepted"
    assert shown(finished_parts(finished(STATS))) == brief
    alone = finished_parts(finished(STATS), alone=PartFigures(58, 19, 1.64))
    assert shown(alone) == brief
    stopped = finished_parts(finished(STATS, reason="length"))
    assert shown(stopped) == f"{brief} · stopped at the token limit"
    off = finished_parts(finished(STATS, drafter="off"))
    assert shown(off) == "58.4 tok/s · first token 0.41 s"
    table = TokenTable()
    table.extend(tokens_of("One{ two| three^ four} five"))
    assert shown(live_parts(table)) == "first token 0.44 s"
    assert shown(cut_off_parts(table)) == "50.0 tok/s · first token 0.44 s · stopped early"


@pytest.mark.parametrize(
    ("plain", "tokens", "drafter", "line"),
    [
        (26.1, 214, "auto", "2.2 times: 58.4 instead of 26.1 tok/s"),
        (57.0, 214, "auto", "58.4 tok/s"),  # by chance
        (90.0, 214, "auto", "58.4 tok/s"),
        (0.0, 214, "auto", "58.4 tok/s"),  # not measured
        (26.1, 3, "auto", "58.4 tok/s"),  # too short to say
        (26.1, 214, "off", "58.4 tok/s"),
    ],
)
def test_what_drafting_brought_is_said_where_it_brought_something(
    plain: float, tokens: int, drafter: str, line: str
) -> None:
    stats = replace(STATS, plain_tokens_per_s=plain, tokens=tokens)
    assert shown(finished_parts(finished(stats, drafter=drafter))).split(" · ")[0] == line


@pytest.mark.parametrize(("normal", "said"), [(3, False), (4, True)])
def test_a_speed_of_few_plain_steps_is_not_compared(normal: int, said: bool) -> None:
    stats = replace(STATS, plain_tokens_per_s=26.1, tokens=214, normal=normal)
    assert ("instead of" in shown(finished_parts(finished(stats)))) is said


@pytest.mark.parametrize(
    ("normal", "gate", "said"),
    [
        (200, "resting: drafts cost more than they bring", True),
        (20, "resting: drafts cost more than they bring", False),  # only at its end
        (200, "drafting: drafts are as long as pays", False),  # nothing to propose
    ],
)
def test_an_answer_without_drafts_that_would_not_pay_says_so(normal: int, gate: str, said: bool) -> None:
    stats = replace(STATS, normal=normal, steps=210, plain_tokens_per_s=58.0)
    assert ("drafting paused" in shown(finished_parts(finished(stats, gate=gate)))) is said


def test_what_was_cached_and_what_was_skipped_are_two_things() -> None:
    stats = Stats(prompt_tokens=3868, reused_tokens=100, read_tokens=1272, skipped_tokens=2496)
    said = plain_text(finished_parts(finished(stats)))
    assert "read 1,272 of 3,868 tokens, 100 cached, 2,496 skipped" in said


def test_while_it_is_written_the_speed_is_the_gauge_s_alone() -> None:
    table = TokenTable()
    table.extend(tokens_of("One{ two| three^ four} five"))
    assert plain_text(live_parts(table)) == "first token 0.44 s · 5 tokens · 1.7 tokens per step"
    assert plain_text(cut_off_parts(table)).startswith("50.0 tok/s · first token 0.44 s")


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
    assert "draft" not in line
    assert "· off ·" in line
    assert "1 token ·" in line


def test_a_drafter_that_never_drafted_says_so() -> None:
    assert "no drafts tested" in plain_text(finished_parts(finished(Stats(tokens=5))))


def test_how_it_ended() -> None:
    for reason, words in (("cancelled", "stopped by you"), ("length", "stopped at the token limit")):
        assert StatsPart(words) in finished_parts(finished(reason=reason))


def test_cut_off_has_what_the_tokens_tell_and_the_reason_in_danger() -> None:
    table = TokenTable()
    table.extend(tokens_of("One{ two| three^ four} five"))
    parts = cut_off_parts(table)
    assert plain_text(parts) == (
        "50.0 tok/s · first token 0.44 s · 5 tokens · 1.7 tokens per step · stopped early"
    )
    assert [part.text for part in parts if part.failed] == ["stopped early"]
    assert plain_text(cut_off_parts(TokenTable())) == "stopped early"


def test_changes_are_plain_sentences() -> None:
    change = Change("sampling.max_tokens", "1024", "512", "the context ends there")
    assert change_text(change) == "Length 512 instead of 1,024: the context ends there."
    assert change_text(Change("new.thing", "a", "b", "why.")) == "new.thing b instead of a: why."
    assert change_text(Change("prefill.mode", "on", "off", "why")) == "Reading Whole instead of Quick: why."


def test_the_tooltip_has_every_figure_and_why_it_is_so() -> None:
    parts = finished_parts(finished(STATS, reading_reason="all of the text is kept"))
    lines = tip_text(parts).split("\n")
    assert [line.partition(":")[0] for line in lines] == [part.text for part in parts]
    assert lines[-1] == "read all 28,020 tokens: All of the text is kept."


def test_images_have_their_tokens_and_time_and_those_left_out_are_told() -> None:
    said = plain_text(finished_parts(finished(replace(STATS, image_tokens=260, image_s=0.412))))
    assert said.endswith("read all 28,020 tokens, 260 in images, computed in 0.41 s")
    stats = Stats(prompt_tokens=900, reused_tokens=600, read_tokens=300, image_tokens=260, image_s=1.5)
    assert "read 300 of 900 tokens, 600 cached, 260 in images, computed in 1.50 s" in plain_text(
        finished_parts(finished(stats))
    )
    change = Change("images", "3", "1", "the context cannot hold more")
    assert change_text(change) == "Images in the prompt: 1 of 3. The context cannot hold more."
