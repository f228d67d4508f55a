"""What `draftlight doctor` says of the window: Qt, the display, and the faces text is set in.

Imports Qt only after it is sure that Qt can be imported.
"""

from __future__ import annotations

import importlib.metadata
import os
import sys
from collections.abc import Iterator
from typing import Any, Literal

from msgspec import Struct

from app.launch import strings
from app.launch.display import display_problem, go_offscreen_without_display, has_display
from app.session import strings as session_strings


class Finding(Struct, frozen=True):
    """The fields that the doctor reads; the engine's own record has them too."""

    subject: str
    health: Literal["ok", "note", "broken"]
    text: str
    hint: str = ""


def look() -> Iterator[Finding]:
    """The window's findings. Opens an application where none is, and draws nothing."""
    if sys.platform == "linux" and not has_display(os.environ):
        yield Finding(strings.DOCTOR_DISPLAY, "note", strings.DOCTOR_NO_DISPLAY)
    go_offscreen_without_display(os.environ, sys.platform)
    if problem := display_problem(os.environ, sys.platform):
        first, _, rest = problem.partition("\n")
        yield Finding(strings.DOCTOR_DISPLAY, "broken", first, rest)
        return
    from PySide6.QtCore import qVersion
    from PySide6.QtGui import QFontDatabase, QFontInfo, QGuiApplication
    from PySide6.QtWidgets import QApplication

    from app.theme.fonts import mono_font, ui_font

    application: Any = QApplication.instance() or QApplication([session_strings.APP_NAME])
    bindings = importlib.metadata.version("PySide6-Essentials")
    drawn = strings.doctor_display(qVersion(), bindings, QGuiApplication.platformName(), _screen(application))
    yield Finding(strings.DOCTOR_DISPLAY, "ok", drawn)
    if not QFontDatabase.families():
        yield Finding(strings.DOCTOR_FONTS, "broken", strings.DOCTOR_NO_FONTS, strings.DOCTOR_NO_FONTS_HINT)
        return
    text, code = QFontInfo(ui_font(13)).family(), QFontInfo(mono_font(13))
    fixed = code.fixedPitch()
    yield Finding(
        strings.DOCTOR_FONTS,
        "ok" if fixed else "note",
        strings.doctor_fonts(text, code.family()),
        "" if fixed else strings.DOCTOR_MONO_HINT,
    )


def _screen(application: Any) -> str:
    screen = application.primaryScreen()
    if screen is None:
        return strings.DOCTOR_NO_SCREEN
    size = screen.size()
    return strings.doctor_screen(size.width(), size.height(), screen.devicePixelRatio())
