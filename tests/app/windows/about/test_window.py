"""The About window: version, every licence, and keys."""

from __future__ import annotations

import importlib.metadata

from PySide6.QtCore import Qt
from pytestqt.qtbot import QtBot

from app.controls.text_label import TextLabel
from app.theme.theme import Theme
from app.windows.about.window import AboutWindow, Licence, licence_text


def test_it_names_the_version_and_what_is_inside(qtbot: QtBot) -> None:
    window = AboutWindow(Theme("light"), releases="")
    qtbot.addWidget(window)
    window.show()
    texts = [label.text() for label in window.findChildren(TextLabel)]
    assert f"Version {importlib.metadata.version('draftlight')}, Apache-2.0" in texts
    text = window.licences.toPlainText()
    assert f"mlx {importlib.metadata.version('mlx')}: MIT" in text
    assert "Permission is hereby granted" in text
    assert window.licences.isReadOnly()


def test_escape_closes_it(qtbot: QtBot) -> None:
    window = AboutWindow(Theme("dark"), releases="")
    window.show()
    with qtbot.waitSignal(window.destroyed):
        qtbot.keyClick(window, Qt.Key.Key_Escape)


def test_the_text_lists_all_and_then_quotes() -> None:
    licences = [
        Licence("alpha", "1", "MIT", ("Alpha's text.",)),
        Licence("draftlight", "0", "Apache-2.0", ("ours",)),
        Licence("zeta", "2", "", ()),
    ]
    lines = licence_text(licences).splitlines()
    assert lines[2:4] == ["alpha 1: MIT", "zeta 2: licence not stated"]
    assert lines[-1] == "Alpha's text."
    assert "ours" not in lines
