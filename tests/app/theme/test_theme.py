"""Theme: which palette is in use, and who hears of a change."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, Qt
from PySide6.QtGui import QColor, QGuiApplication, QPalette
from PySide6.QtWidgets import QWidget
from pytestqt.qtbot import QtBot

from app.theme.theme import DARK, LIGHT, Theme


def test_a_switch_is_told_once_and_only_if_something_changed(theme: Theme, qtbot: QtBot) -> None:
    told: list[bool] = []
    theme.changed.connect(lambda: told.append(theme.is_dark))
    theme.set_scheme("light")
    assert told == []
    theme.set_scheme("dark")
    theme.set_scheme("dark")
    assert told == [True]
    assert theme.palette is DARK


def test_a_theme_follows_the_system_only_if_chosen(theme: Theme, monkeypatch: pytest.MonkeyPatch) -> None:
    hints = QGuiApplication.styleHints()
    theme.set_scheme("light")
    monkeypatch.setattr(type(hints), "colorScheme", lambda _hints: Qt.ColorScheme.Dark)
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Dark)
    assert not theme.is_dark
    theme.set_scheme("system")
    assert theme.is_dark
    monkeypatch.setattr(type(hints), "colorScheme", lambda _hints: Qt.ColorScheme.Light)
    hints.colorSchemeChanged.emit(Qt.ColorScheme.Light)
    assert not theme.is_dark


def test_colours_are_the_palettes_and_fresh(theme: Theme) -> None:
    color = theme.color("accent")
    assert color == QColor(LIGHT.accent)
    color.setAlphaF(0.1)
    assert theme.color("accent") == QColor(LIGHT.accent)
    theme.set_scheme("dark")
    assert theme.color("accent") == QColor(DARK.accent)


def test_an_unknown_colour_is_refused(theme: Theme) -> None:
    with pytest.raises(AttributeError, match="teal"):
        theme.color("teal")


def test_the_application_palette_matches(theme: Theme) -> None:
    for scheme in ("light", "dark"):
        theme.set_scheme(scheme)
        palette = theme.qpalette()
        assert palette.color(QPalette.ColorRole.Window) == theme.color("window")
        assert palette.color(QPalette.ColorRole.Text) == theme.color("text")
        disabled = palette.color(QPalette.ColorGroup.Disabled, QPalette.ColorRole.Text)
        assert disabled == theme.color("text3")


class Told(QWidget):
    times = 0

    def changeEvent(self, event: QEvent) -> None:
        self.times += event.type() == QEvent.Type.StyleChange
