"""InstrumentStrip: the figures given are the figures read out, and what is stale looks so; its bars."""

from __future__ import annotations

import time
from itertools import accumulate
from typing import Any

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QRectF, QTimer
from PySide6.QtGui import QAccessible
from pytestqt.qtbot import QtBot

from app.chat.reading_card import ReadingCard
from app.gauges import strings
from app.gauges.figures import DASH, speed
from app.gauges.instruments import MAX_BARS, Instrument, shares
from app.gauges.strip import InstrumentStrip
from app.theme.theme import Theme
from core.events import (
    Gauges,
    Occupancy,
    Passage,
    PositionStat,
    PrefillProgress,
    ReadingMap,
    Stats,
    TableUse,
)
from core.events.answer import PrefillPhase
from core.prefill.forecast import display
from tests.app.controls.painting import colors
from tests.app.painted import noted_words

GB = 2**30
POSITIONS = tuple(PositionStat(100, accepted) for accepted in (80, 73, 64, 58, 51, 45))


def _gauges(**changes: Any) -> Gauges:
    figures: dict[str, Any] = {
        "request": "r1",
        "tokens_per_s": 58.44,
        "ttft_s": 0.412,
        "tokens": 214,
        "accepted": 148,
        "tested": 231,
        "acceptance": 148 / 231,
        "mean_per_step": 214 / 66,
        "positions": POSITIONS,
        "occupancy": Occupancy(412_306, 4_190_000),
        "memory_bytes": int(11.2 * GB),
        "context_used_tokens": 6214,
        "context_tokens": 32768,
    }
    return Gauges(**{**figures, **changes})


@pytest.fixture
def strip(qtbot: QtBot) -> InstrumentStrip:
    strip = InstrumentStrip()
    qtbot.addWidget(strip)
    strip.resize(896, 60)
    strip.show()
    strip.set_memory(int(11.2 * GB), 27 * GB)
    return strip


def _words(instrument: Instrument) -> list[str]:
    with noted_words() as noted:
        instrument.grab()
    return [word.text for word in noted]


def _baseline(instrument: Instrument) -> float:
    """Of the figure, which is painted after the title; 0 for a gauge that is left out."""
    if instrument.isHidden():
        return 0.0
    with noted_words() as noted:
        instrument.grab()
    return noted[1].area.bottom()


def _said(instrument: Instrument) -> str:
    face = QAccessible.queryAccessibleInterface(instrument)
    assert face.text(QAccessible.Text.Name) == instrument.title
    return face.text(QAccessible.Text.Description)


def test_live_figures_are_read_out_as_given(strip: InstrumentStrip) -> None:
    strip.show_gauges(_gauges(), now_s=1.0)
    assert _said(strip.speed) == "58.4 tok/s"
    assert _said(strip.first_token) == "0.41 s"
    by_position = "by position 80%, 73%, 64%, 58%, 51%, 45%"
    assert _said(strip.acceptance) == f"64%, 3.2 per step, {by_position}"
    assert _said(strip.index).startswith("412,306 of 4.19 M n-grams used. ")
    assert _said(strip.memory) == "11.2 of 27.0 GB"
    assert strip.height() == 60


def test_final_figures_replace_them(strip: InstrumentStrip) -> None:
    strip.show_gauges(_gauges(), now_s=1.0)
    strip.show_stats(
        Stats(
            tokens=45,
            accepted=13,
            tested=23,
            acceptance=13 / 23,
            mean_per_step=45 / 32,
            ttft_s=24.31,
            tokens_per_s=41.2,
            positions=(PositionStat(16, 9), PositionStat(7, 4)),
            occupancy=Occupancy(812, 8192),
            memory_bytes=9 * GB,
        )
    )
    assert _said(strip.speed) == "41.2 tok/s"
    assert _said(strip.first_token) == "24.3 s"
    assert _said(strip.acceptance) == "57%, 1.4 per step, by position 56%, 57%"
    assert _said(strip.index).startswith("812 of 8,192 n-grams used. ")
    assert _said(strip.memory) == "9.0 of 27.0 GB"


def test_a_gauge_without_a_figure_has_a_dash(strip: InstrumentStrip) -> None:
    strip.show_gauges(_gauges(tested=0, accepted=0, acceptance=0.0, positions=(), occupancy=Occupancy()))
    for each in (strip.acceptance, strip.index):
        assert _said(each) == strings.NO_FIGURE
        assert _words(each) == [each.title, DASH]


def test_the_progress_stands_where_the_first_token_will(strip: InstrumentStrip) -> None:
    strip.show_gauges(_gauges(), now_s=0.0)
    begun = PrefillProgress("r2", 0, 5120, 26, 20.0, time_s=0.1, at_s=10.0)
    strip.show_prefill(begun, now_s=10.0)
    assert _said(strip.speed) == strings.NO_FIGURE
    assert _said(strip.first_token) == "0%, Reading 5,094 tokens, 20 s left"
    strip.show_prefill(replace(begun, tokens_per_s=256.0, time_s=4.1, at_s=14.0), now_s=15.0)
    assert _said(strip.first_token) == "21%, Reading 5,094 tokens, 19 s left"
    assert _said(strip.speed) == "256 tok/s read"
    assert _said(strip.acceptance) == strings.NO_FIGURE
    strip.show_gauges(_gauges(), now_s=20.0)
    assert _said(strip.speed) == "58.4 tok/s"
    assert _said(strip.first_token) == "0.41 s"


def test_scoring_is_not_shown_as_reading(strip: InstrumentStrip) -> None:
    """Passages whose vectors are cached are scored at once; that is no speed of reading."""
    scoring = PrefillProgress("r", 0, 5120, 0, 100.0, "scoring", 5000, time_s=0.1, fraction=0.098)
    strip.show_prefill(scoring, now_s=1.0)
    assert _said(strip.first_token) == "9%, Choosing passages… 1 min 40 s left"
    assert _said(strip.speed) == strings.NO_FIGURE
    with noted_words() as noted:
        strip.first_token.grab()
    assert [word.text for word in noted][1:] == ["9%", "choosing"]
    strip.show_prefill(PrefillProgress("r", 0, 640, 0, 9.0, "reading", 5120, 640, fraction=0.1), now_s=1.2)
    with noted_words() as noted:
        strip.first_token.grab()
    assert [word.text for word in noted][1:] == ["10%", "reading"]


@pytest.mark.parametrize("later_s", [0.0, 3.0, 20.0, 31.0, 300.0])
@pytest.mark.parametrize("phase", ["scoring", "reading"])
def test_card_and_strip_show_the_same_figures(
    qtbot: QtBot, strip: InstrumentStrip, phase: PrefillPhase, later_s: float
) -> None:
    """From one event, whenever they look, and what the server and the command line write is the same."""
    event = PrefillProgress("r", 300, 900, 100, 30.0, phase, 900, 700, 12.0, 0.2, 18, 41.4, 500.0)
    passages = tuple(Passage(32 * n, 32 * n + 32, n < 18, 0.5) for n in range(100))
    card = ReadingCard("t", lambda intent: None, now=lambda: 500.0 + later_s)
    qtbot.addWidget(card)
    if phase == "reading":
        card.show_map(ReadingMap("r", "lexical", 3200, 576, passages))
    card.show_progress(event)
    strip.show_prefill(event, now_s=500.0 + later_s)
    facts = card.facts
    assert facts is not None
    with noted_words() as noted:
        strip.first_token.grab()
        strip.speed.grab()
        card.grab()
    painted = [word.text for word in noted]
    assert painted.count(f"{int(100 * facts.fraction)}%") == 2
    shown = display(event, 500.0 + later_s)
    assert (facts.title, facts.left, facts.fraction) == (shown.title, shown.left, shown.fraction)
    assert _said(strip.first_token) == f"{shown.percent}, {shown.words}"
    if phase == "reading":
        assert "41.4" in painted
        assert "41.4 tok/s" in painted
        assert shown.title == "Reading 18 passages"


def test_the_progress_is_counted_on_while_no_event_comes(strip: InstrumentStrip) -> None:
    now_s = time.monotonic()
    strip.show_prefill(PrefillProgress("r", 0, 5120, 0, 90.0, time_s=1.0, at_s=now_s - 20))
    (timer,) = strip.findChildren(QTimer)
    assert timer.isActive()
    assert timer.interval() <= 5000
    said = _said(strip.first_token)
    strip.show_prefill(PrefillProgress("r", 0, 5120, 0, 90.0, time_s=1.0, at_s=now_s - 40))
    timer.timeout.emit()
    assert _said(strip.first_token) != said
    strip.show_gauges(_gauges())
    assert not timer.isActive()


def test_reset_leaves_only_the_memory(strip: InstrumentStrip) -> None:
    strip.show_gauges(_gauges())
    strip.reset()
    said = {each.title: _said(each) for each in strip.instruments}
    assert said.pop(strings.MEMORY) == "11.2 of 27.0 GB"
    assert set(said.values()) == {strings.NO_FIGURE}


def test_a_dead_workers_figures_are_marked(strip: InstrumentStrip, theme: Theme) -> None:
    strip.show_gauges(_gauges(), now_s=1.0)
    green = theme.color("series_green").name()
    assert green in colors(strip.acceptance)
    strip.set_stale(True)
    for each in strip.instruments:
        assert _said(each) == strings.NO_FIGURE
        assert each.toolTip() == ""
        painted = colors(each)
        for ink in ("text", "series_blue", "series_green", "accent"):
            assert theme.color(ink).name() not in painted, (each.title, ink)
    strip.set_stale(False)
    assert _said(strip.speed) == "58.4 tok/s"
    assert green in colors(strip.acceptance)


def test_plain_speed_is_a_line_and_is_said(strip: InstrumentStrip) -> None:
    for i in range(40):
        strip.show_gauges(_gauges(), now_s=i / 4)
    before = strip.speed.grab().toImage()
    strip.show_gauges(_gauges(plain_tokens_per_s=23.04), now_s=10.0)
    assert _said(strip.speed) == "58.4 tok/s, plain 23.0 tok/s"
    assert strip.speed.grab().toImage() != before
    strip.show_gauges(_gauges(), now_s=10.0)
    assert _said(strip.speed) == "58.4 tok/s"


def test_the_dashed_line_has_a_label_that_touches_nothing(strip: InstrumentStrip) -> None:
    """Not the title, the figure or the line, at any speed."""
    for tokens_per_s, plain in ((58.44, 23.04), (12_345.0, 9_876.0), (0.4, 0.1)):
        for i in range(80):
            strip.show_gauges(_gauges(tokens_per_s=tokens_per_s, plain_tokens_per_s=plain), now_s=i / 4)
        with noted_words() as noted:
            strip.speed.grab()
        label = next(word for word in noted if word.text == strip.speed.plain_label)
        assert label.text == f"plain {speed(plain)} tok/s"
        others = [word.area for word in noted if word is not label]
        assert not any(label.area.intersects(area) for area in others), (label, others)
        assert QRectF(strip.speed.rect()).contains(label.area)
    strip.show_prefill(PrefillProgress("r2", 0, 5120, 0, time_s=0.1), now_s=30.0)
    assert strip.speed.plain_label == ""


def test_no_dash_is_beside_a_drawn_line(strip: InstrumentStrip, theme: Theme) -> None:
    """A speed that is unknown for a moment, a worker that died, an answer of no speed."""
    accent = theme.color("accent").name()
    for i in range(40):
        strip.show_gauges(_gauges(), now_s=i / 4)

    def read() -> None:
        for at_s, speed_now in ((10.5, 200.0), (12.0, 210.0), (12.5, 0.0)):
            strip.show_prefill(PrefillProgress("r", 0, 5120, 0, tokens_per_s=speed_now), now_s=at_s)

    for change in (
        lambda: strip.show_gauges(_gauges(tokens_per_s=0.0), now_s=10.0),
        read,
        lambda: strip.show_stats(Stats()),
        lambda: strip.set_stale(True),
        lambda: strip.set_stale(False),
        strip.reset,
    ):
        change()
        drawn = accent in colors(strip.speed)
        assert drawn is not (DASH in _words(strip.speed))


def test_memory_over_the_limit_is_vermilion(strip: InstrumentStrip, theme: Theme) -> None:
    assert theme.color("series_blue").name() in colors(strip.memory)
    strip.set_memory(30 * GB, 27 * GB)
    painted = colors(strip.memory)
    assert theme.color("series_vermilion").name() in painted
    assert theme.color("series_blue").name() not in painted
    strip.set_memory(30 * GB, 0)
    assert _said(strip.memory) == "30.0 GB"


def test_a_shared_table_is_named_with_what_it_gave(strip: InstrumentStrip) -> None:
    strip.set_family("Qwen3")
    strip.show_gauges(_gauges(table=TableUse(412_306, 4_194_304, 410_000, 200, 68)))
    assert _said(strip.index) == (
        "412,306 of 4.19 M n-grams used. The table of Qwen3: 410,000 of them from before;"
        " 68 of 200 look-ups found a guess"
    )
    cold = TableUse(50, 4096, 0, 0, 0)
    strip.show_stats(Stats(table=cold, occupancy=Occupancy(50, 4096)))
    assert _said(strip.index).startswith("50 of 4,096 n-grams used. The table of Qwen3: it was empty")
    strip.show_gauges(_gauges())
    assert "Qwen3" not in _said(strip.index)


def test_gauges_are_side_by_side_and_left_out_from_the_right(strip: InstrumentStrip) -> None:
    needed = [8 + right for right in accumulate(each.width() for each in strip.instruments)]
    assert needed[4] == 896  # what a window of the start size has
    for width in (*(at + by for at in needed for by in (-1, 0, 20)), 1200):
        strip.resize(width, 60)
        kept = sum(at <= width for at in needed)
        shown = [each for each in strip.instruments if not each.isHidden()]
        assert shown == list(strip.instruments[:kept])
        rights = [each.geometry().right() + 1 for each in shown]
        assert [each.x() for each in shown[1:]] == rights[:-1]
        assert all(right <= width for right in rights)


@pytest.mark.parametrize("width", [896, 640])
def test_no_gauge_appears_vanishes_or_moves(strip: InstrumentStrip, width: int) -> None:
    """Whatever happens; also each figure stays on its baseline."""
    strip.resize(width, 60)
    strip.set_family("Qwen3")
    table = TableUse(412_306, 4_194_304, 410_000, 200, 68)
    seen = []
    for show in (
        strip.reset,
        lambda: strip.show_prefill(PrefillProgress("r", 0, 5120, 0, None, "scoring"), now_s=0.0),
        lambda: strip.show_prefill(PrefillProgress("r", 0, 128_020, 0), now_s=0.0),
        lambda: strip.show_prefill(PrefillProgress("r", 128_000, 128_020, 0, time_s=9.0), now_s=9.0),
        lambda: strip.show_gauges(_gauges(positions=(), tested=0)),
        lambda: strip.show_gauges(_gauges(table=table, plain_tokens_per_s=20.0)),
        lambda: strip.show_stats(Stats(table=TableUse(50, 4096, 0, 0, 0))),
        lambda: strip.set_stale(True),
        lambda: strip.set_memory(0, 0),
        lambda: strip.set_stale(False),
    ):
        show()
        places = [
            (each.title, each.geometry(), each.isHidden(), _baseline(each)) for each in strip.instruments
        ]
        seen.append(places)
    assert all(each == seen[0] for each in seen)


def test_every_figure_fits_its_gauge(strip: InstrumentStrip) -> None:
    table = TableUse(999_999, 99_999_999, 410_000, 200, 68)
    most = _gauges(
        tokens_per_s=12_345.0, ttft_s=12_345.0, mean_per_step=16.0, acceptance=1.0, table=table,
        positions=(PositionStat(9, 9),) * MAX_BARS, memory_bytes=512 * GB,
    )  # fmt: skip
    strip.set_memory(0, 512 * GB)
    strip.show_gauges(most)
    for each in strip.instruments:
        with noted_words() as noted:
            each.grab()
        for word in noted:
            assert QRectF(each.rect()).adjusted(0, 0, -4, 0).contains(word.area), (each.title, word)


def test_shares_leave_out_places_that_were_never_tested() -> None:
    positions = [PositionStat(10, 8), PositionStat(4, 1), PositionStat(0, 0)]
    assert shares(positions) == [0.8, 0.25]
    assert shares([]) == []
    assert len(shares([PositionStat(1, 1)] * 64)) == MAX_BARS
