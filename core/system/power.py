"""Whether the system asks programs to save energy. Read by the engine before background work."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from pathlib import Path

from core.system.macos import Objc

_LOW_PERCENT = 20
_LINUX = Path("/sys/class/power_supply")
_PMSET = ("/usr/bin/pmset", "-g", "batt")
_DISCHARGING = re.compile(r"\b(\d{1,3})%;\s*discharging")
_LOOK_EVERY_S, _PATIENCE_S = 60.0, 0.5


def why_save(folder: Path = _LINUX, pmset: tuple[str, ...] = _PMSET, objc: Objc | None = None) -> str:
    """Why energy should be saved: Low Power Mode, or a battery in use below 20%; empty if it need not be.

    What cannot be read within half a second is not a reason.
    """
    try:
        if sys.platform != "darwin" and objc is None:
            percent = _linux_percent(folder)
        elif _low_power_mode(objc or Objc()):
            return "Low Power Mode is on"
        else:
            told = subprocess.run(pmset, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
            percent = min(map(int, _DISCHARGING.findall(told.stdout)), default=100)
    except (OSError, ValueError, subprocess.SubprocessError):
        return ""
    return f"the battery is at {percent}%" if percent < _LOW_PERCENT else ""


def _low_power_mode(objc: Objc) -> bool:
    info = objc.send(objc.get_class("NSProcessInfo"), "processInfo")
    return bool(objc.send(info, "isLowPowerModeEnabled") & 0xFF)  # BOOL is one byte


def _linux_percent(folder: Path) -> int:
    """The emptiest discharging battery of the machine; 100 if there is none. Mice have batteries, too."""
    found = [100]
    for supply in folder.iterdir() if folder.is_dir() else ():
        values = {
            name: (supply / name).read_text(encoding="ascii").strip()
            for name in ("type", "scope", "status", "capacity")
            if (supply / name).exists()
        }
        if (values.get("type"), values.get("status")) == ("Battery", "Discharging"):
            found += [] if values.get("scope") == "Device" else [int(values.get("capacity", "100"))]
    return min(found)


class Energy:
    """`why_save`, looked at once a minute."""

    def __init__(self) -> None:
        self._why, self._due_s = "", 0.0

    def why_save(self) -> str:
        """Why energy should be saved; empty if it need not be."""
        if time.monotonic() >= self._due_s:
            self._why, self._due_s = why_save(), time.monotonic() + _LOOK_EVERY_S
        return self._why
