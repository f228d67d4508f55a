"""The About window: version, licences, and keys."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices
from pytestqt.qtbot import QtBot

from app.controls.text_label import TextLabel
from app.features import about
from app.features.about import AboutWindow, licenses_file


def test_it_names_the_version_and_opens_the_licences(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> None:
    window, opened = AboutWindow(), []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    qtbot.addWidget(window)
    window.show()
    texts = [label.text() for label in window.findChildren(TextLabel)]
    assert f"Version {importlib.metadata.version('draftlight')}, Apache-2.0" in texts
    qtbot.mouseClick(window.licenses_button, Qt.MouseButton.LeftButton)
    assert opened == [QUrl.fromLocalFile(str(licenses_file()))]


def test_a_bundle_opens_the_licences_of_all_its_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = licenses_file()
    assert found
    assert "Apache License" in found.read_text("utf-8")
    resources = tmp_path / "app_packages" / "resources"
    monkeypatch.setattr(about, "resources_dir", lambda: resources)
    assert licenses_file() == found
    (tmp_path / "NOTICE.txt").touch()
    assert licenses_file() == tmp_path / "NOTICE.txt"


def test_escape_closes_it(qtbot: QtBot) -> None:
    window = AboutWindow()
    window.show()
    assert window.focusWidget() is window.close_button
    with qtbot.waitSignal(window.destroyed):
        qtbot.keyClick(window, Qt.Key.Key_Escape)
