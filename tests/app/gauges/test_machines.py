"""MachinesInstrument: memory and step time of as many machines as there is room for, and how many more."""

from __future__ import annotations

import pytest
from pytestqt.qtbot import QtBot

from app.gauges import strings
from app.gauges.strip import InstrumentStrip
from app.theme.theme import Theme
from core.events import MachineUse, Occupancy
from tests.app.painted import noted_words

GB = 2**30
NAMES = ("here", "studio", "mini", "attic", "cellar")


def use(count: int, step_s: float = 0.041) -> tuple[MachineUse, ...]:
    return tuple(
        MachineUse(name, (12 + rank) * GB, 24 * GB, step_s) for rank, name in enumerate(NAMES[:count])
    )


@pytest.fixture
def strip(qtbot: QtBot) -> InstrumentStrip:
    strip = InstrumentStrip(Theme("light"))
    qtbot.addWidget(strip)
    strip.resize(896, 60)
    strip.set_memory(GB, 24 * GB)
    strip.index.show_occupancy(Occupancy(1, 9))
    strip.acceptance.show_drafts(9, 0.5, 1.5, ())
    strip.set_pinned(True)
    strip.show()
    return strip


def words(strip: InstrumentStrip) -> list[str]:
    with noted_words() as noted:
        strip.machines.grab()
    return [word.text for word in noted]


def test_machines_take_the_memory_s_place_and_leave_it_again(strip: InstrumentStrip) -> None:
    assert strip.machines.isHidden()
    strip.set_machines(use(2))
    assert strip.memory.isHidden()
    assert not strip.index.isHidden()
    assert words(strip) == [strings.MACHINES, "here", "12.0", "41 ms", "studio", "13.0", "41 ms"]
    strip.set_machines(())
    assert strip.machines.isHidden()
    assert not strip.memory.isHidden()


def test_more_of_them_go_before_the_table(strip: InstrumentStrip) -> None:
    strip.set_machines(use(4))
    assert strip.index.isHidden()
    assert {"here", "studio", "mini", "attic"} < set(words(strip))
    strip.resize(1300, 60)
    assert not strip.index.isHidden()


def test_those_without_room_are_counted_and_told(strip: InstrumentStrip) -> None:
    strip.set_machines(use(5))
    shown = words(strip)
    assert shown[-1] == strings.more_machines(2)
    assert "attic" not in shown
    for name in NAMES:
        assert name in strip.machines.accessibleDescription()
        assert name in strip.machines.toolTip()


@pytest.mark.parametrize(
    ("step_s", "said"), [(0.0, "–"), (0.0412, "41 ms"), (0.9999, "1.00 s"), (2.5, "2.50 s")]
)
def test_a_step_is_said_in_its_unit(strip: InstrumentStrip, step_s: float, said: str) -> None:
    strip.set_machines(use(2, step_s))
    assert words(strip).count(said) == 2
    assert f"here holds 12.0 of 24.0 GB, step {said}" in strip.machines.accessibleDescription()


def test_a_lost_worker_s_machines_have_no_figures(strip: InstrumentStrip) -> None:
    strip.set_machines(use(2))
    strip.set_stale(True)
    assert strip.machines.isHidden()
    # It comes back alone: the memory's figures are its own again, and later so are the machines'.
    strip.set_stale(False)
    strip.set_machines(())
    assert "1.0 of 24.0 GB" in strip.memory.accessibleDescription()
    strip.set_machines(use(2))
    assert "41 ms" in words(strip)
