"""Over how many machines a model fits: the fewest, by the smallest of them."""

from __future__ import annotations

import pytest

from app.session.cluster import Spread, limits_of, spread_of
from core.events import MachinesChecked, MachineSeen, MemoryNeed, ModelEntry

GB = 2**30


def model(gb: int) -> ModelEntry:
    return ModelEntry("m", "M", "download", "/m", context_tokens=8192, need=MemoryNeed(weights=gb * GB))


@pytest.mark.parametrize(
    ("gb", "limits_gb", "machines", "each_gb", "fit"),
    [
        (10, (24,), 1, 10, "fits"),
        (22, (24, 24), 1, 22, "tight"),
        (40, (24, 24), 2, 20, "tight"),
        (40, (24, 16), 0, 20, "too-large"),
        (40, (24, 16, 16), 3, 40 / 3, "tight"),
        (90, (24, 24, 24), 0, 30, "too-large"),
    ],
)
def test_the_fewest_that_hold_it(
    gb: int, limits_gb: tuple[int, ...], machines: int, each_gb: float, fit: str
) -> None:
    found = spread_of(model(gb), [limit * GB for limit in limits_gb])
    assert isinstance(found, Spread)
    assert (found.machines, found.of, found.fit) == (machines, len(limits_gb), fit)
    assert found.each_bytes == pytest.approx(each_gb * GB, abs=1)
    assert found.need_bytes == gb * GB


def test_a_model_of_unknown_need_says_nothing() -> None:
    assert spread_of(ModelEntry("m", "M", "download", "/m"), (GB,)) is None
    assert spread_of(model(1), ()) is None


def test_only_machines_that_are_there_and_free_count() -> None:
    def seen(name: str, **values: object) -> MachineSeen:
        return MachineSeen(name, "x", **values)  # type: ignore[arg-type]

    checked = MachinesChecked(
        "",
        (
            seen("here", reached=True, limit_bytes=8 * GB),
            seen("away", problem="It is away."),
            seen("busy", reached=True, busy=True, limit_bytes=32 * GB),
            seen("there", reached=True, limit_bytes=16 * GB),
        ),
        False,
    )
    assert limits_of(9 * GB, checked) == (8 * GB, 16 * GB)
    assert limits_of(9 * GB, None) == (9 * GB,)
    assert limits_of(0, None) == ()
