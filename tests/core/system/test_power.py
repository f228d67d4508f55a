"""When the system asks to save energy: batteries of Linux and of a Mac, and Low Power Mode."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from core.system import power
from core.system.power import why_save

MAC = " -InternalBattery-0 (id=1)\t{}; present: true"


class Info:
    """NSProcessInfo with Low Power Mode on or off, behind a register whose other bytes are undefined."""

    def __init__(self, low: bool) -> None:
        self._low = low

    def get_class(self, name: str) -> int:
        assert name == "NSProcessInfo"
        return 1

    def send(self, receiver: int, selector: str) -> int:
        return (
            2 if selector == "processInfo" else 0xAB00 | (selector == "isLowPowerModeEnabled" and self._low)
        )


def supply(folder: Path, name: str, **values: str) -> None:
    (folder / name).mkdir()
    for key, value in values.items():
        (folder / name / key).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("capacity", "status", "scope", "why"),
    [
        ("19", "Discharging", "System", "the battery is at 19%"),
        ("20", "Discharging", "System", ""),
        ("5", "Charging", "System", ""),
        ("5", "Discharging", "Device", ""),
        ("unknown", "Discharging", "System", ""),
    ],
)
def test_a_battery_of_linux(tmp_path: Path, capacity: str, status: str, scope: str, why: str) -> None:
    supply(tmp_path, "AC", type="Mains", online="0")
    supply(tmp_path, "BAT0", type="Battery", status="Discharging", capacity="80")
    supply(tmp_path, "BAT1", type="Battery", status=status, scope=scope, capacity=capacity)
    assert why_save(tmp_path) == why
    assert why_save(tmp_path / "none") == ""


@pytest.mark.parametrize(
    ("low", "told", "why"),
    [
        (False, "19%; discharging; 0:40 remaining", "the battery is at 19%"),
        (False, "19%; charging; 1:40 remaining", ""),
        (False, "100%; charged; 0:00 remaining", ""),
        (True, "90%; discharging; 3:10 remaining", "Low Power Mode is on"),
    ],
)
def test_a_mac(low: bool, told: str, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(power, "_PATIENCE_S", 60.0)
    objc: Any = Info(low)
    echo = (sys.executable, "-c", f"print({MAC.format(told)!r})")
    assert why_save(pmset=echo, objc=objc) == why
    assert why_save(pmset=("/no/such/program",), objc=objc) == ("Low Power Mode is on" if low else "")
