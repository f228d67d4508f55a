"""Screens that come, go and differ: windows stay in sight, and what is drawn is as sharp as the screen."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QRect
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.chat.reading_card import ReadingMapStrip
from app.chat.user_message import MessageChip
from app.launch.application import Application
from app.panels.document_tab import DocumentTab
from app.session.chats.conversation import Document
from app.shell.columns import Wants
from app.shell.window import MINIMUM_SIZE, MainWindow
from app.shell.windows import Screens, free_places, seen
from app.store.library import Home
from app.store.preferences import WindowPlace
from core.events import Attachment, Passage, ReadingMap

PASSAGES = tuple(Passage(32 * n, 32 * n + 32, n % 5 == 0, 0.5, 0, 9 * n, 9 * n + 9) for n in range(100))
READING = ReadingMap("t", "lexical", 3200, 640, PASSAGES)
ATTACHMENT = Attachment("a.txt", "the tide " * 100, 3200)
BUILT_IN, BESIDE = QRect(0, 25, 1440, 875), QRect(1440, 0, 2560, 1440)


@pytest.mark.parametrize(
    ("box", "screens", "there"),
    [
        (QRect(100, 100, 1200, 700), [BUILT_IN], QRect(100, 100, 1200, 700)),
        (QRect(1600, 100, 1200, 700), [BUILT_IN, BESIDE], QRect(1600, 100, 1200, 700)),
        # Half out at the side or below is how somebody wanted it.
        (QRect(-1000, 100, 1200, 700), [BUILT_IN], QRect(-1000, 100, 1200, 700)),
        (QRect(100, 800, 1200, 700), [BUILT_IN], QRect(100, 800, 1200, 700)),
        # The screen beside is gone.
        (QRect(1600, 100, 1200, 700), [BUILT_IN], QRect(240, 100, 1200, 700)),
        (QRect(1440, 0, 2560, 1440), [BUILT_IN], QRect(0, 25, 1440, 875)),
        # A title that cannot be reached.
        (QRect(100, -200, 1200, 700), [BUILT_IN], QRect(100, 25, 1200, 700)),
        (QRect(1400, 100, 1200, 700), [BUILT_IN], QRect(240, 100, 1200, 700)),
        (QRect(100, 100, 1200, 700), [], QRect(100, 100, 1200, 700)),
    ],
    ids=[
        "seen",
        "on the other",
        "half out",
        "low",
        "gone",
        "gone and large",
        "high",
        "a sliver",
        "no screen",
    ],
)
def test_where_a_window_may_stand(box: QRect, screens: list[QRect], there: QRect) -> None:
    assert seen(box, screens) == there
    assert seen(there, screens) == there


def test_a_window_whose_screen_goes_comes_back(qtbot: QtBot, qapp: Application) -> None:
    screens = Screens(qapp)
    window, menu = QWidget(), QMenu()
    for widget in (window, menu):
        qtbot.addWidget(widget)
        widget.setGeometry(9_000, 9_000, 300, 200)
        widget.show()
    qapp.primaryScreen().availableGeometryChanged.emit(free_places()[0])
    qtbot.waitUntil(lambda: free_places()[0].contains(QRect(window.pos(), window.size())))
    assert window.size().width() == 300
    assert menu.x() == 9_000
    screens.stop()


def test_the_window_opens_in_sight_where_its_screen_is_gone(qapp: QApplication, tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.preferences.change(window=WindowPlace(9_000, -4_000, 5_000, 3_000))
    window = MainWindow(home=home)
    try:
        (free, *_) = free_places()
        assert window.size() == free.size().expandedTo(MINIMUM_SIZE)
        assert window.pos() == free.topLeft()
    finally:
        home.close()
        window.deleteLater()


def test_a_first_start_shows_the_chat_and_no_settings(qapp: QApplication, tmp_path: Path) -> None:
    home = Home(tmp_path)
    window = MainWindow(home=home)
    try:
        assert window.columns.wants == Wants(sidebar=True, inspector=False)
        assert window.app_settings.now.look.token_colors == "drafts"
        titles = [action.text() for action in window.menuBar().actions()]
        assert titles == ["&File", "&Edit", "&View", "&Chat", "&Window", "&Help"]
    finally:
        home.close()
        window.deleteLater()


@pytest.fixture
def ratio(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """What all widgets take for their screen's density; Qt's offscreen screens all have 1."""
    ratios = [1.0]
    monkeypatch.setattr(QWidget, "devicePixelRatioF", lambda self: ratios[-1])
    return ratios


def test_what_is_cached_follows_the_screens_density(qtbot: QtBot, ratio: list[float]) -> None:
    strip, chip, tab = ReadingMapStrip([].append), MessageChip(ATTACHMENT), DocumentTab()
    for widget in (strip, chip, tab):
        qtbot.addWidget(widget)
        widget.resize(400, 600)
    strip.show_map(READING)
    chip.show_passages(PASSAGES)
    tab.show_documents([Document("t", 0, 0, ATTACHMENT, READING, "t")])

    def drawn() -> list[int]:
        for widget in (strip, chip, tab):
            widget.grab()
        return [len(cells or ()) for cells in (strip._cells, chip.map.cells, tab.gutter._cells)]

    before = drawn()
    assert min(before) > 0
    ratio.append(2.0)
    for widget in (strip, chip, tab):
        QCoreApplication.sendEvent(widget, QEvent(QEvent.Type.DevicePixelRatioChange))
    assert drawn() == [2 * count for count in before]
