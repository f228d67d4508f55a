"""The window's part of `draftlight doctor`: Qt, the display, and fonts.

Imports Qt only after `display_problem` found that it can be imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from app.launch.display import display_problem, go_offscreen_without_display, has_display
from app.session import strings as session_strings

DOCTOR_DISPLAY = "Window"
DOCTOR_FONTS = "Fonts"
DOCTOR_NO_DISPLAY = "No display here; looked at off-screen."
DOCTOR_NO_FONTS = "No other font is installed, so no text can be shown."
DOCTOR_FONTS_HINT = "Install Draftlight again to restore its fonts."
DOCTOR_COVERAGE = "Characters"
DOCTOR_NO_SCREEN = "no screen"


Health = Literal["ok", "note", "broken"]


class Finding(Struct, frozen=True):
    """The fields that the doctor reads; the engine's own record has them too."""

    subject: str
    health: Health
    text: str
    hint: str = ""


class Coverage(Struct, frozen=True):
    """Characters that the shipped fonts lack. `package` is a Debian package with a font for them.

    `sample` is one of `QFontDatabase.WritingSystem`, or a character of another kind.
    """

    name: str
    sample: str
    package: str


COVERAGE = (
    Coverage("Chinese", "SimplifiedChinese", "fonts-noto-cjk"),
    Coverage("Japanese", "Japanese", "fonts-noto-cjk"),
    Coverage("Korean", "Korean", "fonts-noto-cjk"),
    Coverage("emoji", "\N{GRINNING FACE}", "fonts-noto-color-emoji"),
    Coverage("Arabic", "Arabic", "fonts-noto-core"),
    Coverage("Hebrew", "Hebrew", "fonts-noto-core"),
    Coverage("Devanagari", "Devanagari", "fonts-noto-core"),
    Coverage("Thai", "Thai", "fonts-noto-core"),
    Coverage("mathematical letters", "\N{MATHEMATICAL ITALIC SMALL X}", "fonts-noto-core"),
)


def look() -> Iterator[Finding]:
    """Returns the window's findings. Creates an application if there is none, and draws nothing."""
    if sys.platform == "linux" and not has_display(os.environ):
        yield Finding(DOCTOR_DISPLAY, "note", DOCTOR_NO_DISPLAY)
    go_offscreen_without_display(os.environ, sys.platform)
    if problem := display_problem(os.environ, sys.platform):
        first, _, rest = problem.partition("\n")
        yield Finding(DOCTOR_DISPLAY, "broken", first, rest)
        return
    from PySide6.QtCore import qVersion
    from PySide6.QtGui import QGuiApplication
    from PySide6.QtWidgets import QApplication

    application: Any = QApplication.instance() or QApplication([session_strings.APP_NAME])
    bindings = importlib.metadata.version("PySide6-Essentials")
    drawn = f"Qt {qVersion()} (PySide6 {bindings}) on {QGuiApplication.platformName()}"
    yield Finding(DOCTOR_DISPLAY, "ok", f"{drawn}, {_screen(application)}")
    yield from _fonts()


def _fonts() -> Iterator[Finding]:
    from PySide6.QtGui import QFontDatabase, QFontInfo, QFontMetricsF

    from app.theme.fonts import FONTS, mono_font, ui_font, unloaded_fonts

    text, code = ui_font(13), mono_font(13)
    metrics = QFontMetricsF(text)
    families = f"{QFontInfo(text).family()} for text, {QFontInfo(code).family()} for code"
    if unloaded := unloaded_fonts():
        problem = f"Cannot load {', '.join(unloaded)} from {FONTS}."
        # Without any font Qt still lists generic families.
        readable = metrics.inFontUcs4(ord("a"))
        health: Health
        health, rest = ("note", families) if readable else ("broken", DOCTOR_NO_FONTS)
        yield Finding(DOCTOR_FONTS, health, f"{problem} {rest}", DOCTOR_FONTS_HINT)
    else:
        yield Finding(DOCTOR_FONTS, "ok", families)

    def is_covered(sample: str) -> bool:
        if len(sample) == 1:
            return metrics.inFontUcs4(ord(sample))
        return bool(QFontDatabase.families(QFontDatabase.WritingSystem[sample]))

    lacking = [one for one in COVERAGE if not is_covered(one.sample)]
    if lacking:
        packages = " ".join(dict.fromkeys(one.package for one in lacking))
        names = ", ".join(one.name for one in lacking)
        missing = f"No installed font has {names}. They are shown as boxes."
        hint = f"On Debian or Ubuntu: sudo apt-get install {packages}" if sys.platform == "linux" else ""
        yield Finding(DOCTOR_COVERAGE, "note", missing, hint)


def _screen(application: Any) -> str:
    screen = application.primaryScreen()
    if screen is None:
        return DOCTOR_NO_SCREEN
    size = screen.size()
    return f"{size.width()} × {size.height()} at {screen.devicePixelRatio():g} pixels a point"
