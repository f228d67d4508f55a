"""Links: shown where they go, opened outside, and only those that may be."""

from __future__ import annotations

import pytest
from PySide6.QtCore import QObject, QPoint, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication
from pytestqt.qtbot import QtBot

from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from app.richtext.canvas_menu import open_outside
from app.richtext.markdown.inline import bare_links, may_open
from app.richtext.text_canvas import TextCanvas
from core.events import Message
from tests.app.chat.watching import body_of, point_at, stream
from tests.app.chat.written import finished


class Browser(QObject):
    """Stands for the system's browser."""

    def __init__(self) -> None:
        super().__init__()
        self.opened: list[str] = []

    @Slot(QUrl)
    def open(self, url: QUrl) -> None:
        self.opened.append(url.toString())


@pytest.fixture
def browser(qapp: object):
    stand_in = Browser()
    for scheme in ("http", "https", "mailto", "file", "javascript"):
        QDesktopServices.setUrlHandler(scheme, stand_in, "open")
    yield stand_in
    for scheme in ("http", "https", "mailto", "file", "javascript"):
        QDesktopServices.unsetUrlHandler(scheme)


def test_what_may_be_opened(browser: Browser) -> None:
    for address in ("https://e.org/x", "HTTP://e.org", "mailto:a@e.org"):
        assert may_open(address)
        assert open_outside(address)
    for address in (
        "file:///etc/passwd",
        "javascript:alert(1)",
        "//e.org",
        "x.md",
        "",
        "https://",
        "http://[x",
    ):
        assert not may_open(address)
        assert not open_outside(address)
    assert len(browser.opened) == 3


def test_addresses_in_text() -> None:
    text = "(see https://e.org/a_(b)), http://f.org/?q=1. https://"
    assert [text[low:high] for low, high in bare_links(text)] == ["https://e.org/a_(b)", "http://f.org/?q=1"]


def place_of(body: TextCanvas, words: str) -> QPoint:
    for number, box in enumerate(body.boxes):
        start = box.piece.text.find(words)
        if start >= 0:
            return body.rects_of(number, start, start + len(words))[0].center().toPoint()
    raise AssertionError(words)


def test_a_link_says_where_it_goes_before_it_can_be_clicked(
    transcript: Transcript, qtbot: QtBot, browser: Browser
) -> None:
    stream(transcript, "Read [the handbook](https://example.org/handbook?section=7) first.")
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    point_at(qtbot, body, " handbook")
    assert transcript.tip.isVisible()
    assert transcript.tip.facts.address == "https://example.org/handbook?section=7"
    assert "https://example.org/handbook?section=7" in transcript.tip.accessibleName()
    assert body.cursor().shape() is Qt.CursorShape.PointingHandCursor
    qtbot.mouseClick(body, Qt.MouseButton.LeftButton, pos=place_of(body, "handbook"))
    assert browser.opened == ["https://example.org/handbook?section=7"]
    qtbot.mouseMove(body, place_of(body, "first"))
    assert body.cursor().shape() is Qt.CursorShape.IBeamCursor
    qtbot.mouseClick(body, Qt.MouseButton.LeftButton, pos=place_of(body, "first"))
    assert len(browser.opened) == 1


def test_a_link_opens_by_keyboard(transcript: Transcript, qtbot: QtBot, browser: Browser) -> None:
    stream(transcript, "Read [this](https://example.org/) first.")
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    body.setFocus()
    for _ in range(3):
        qtbot.keyClick(body, Qt.Key.Key_Right)
    qtbot.keyClick(body, Qt.Key.Key_Return)
    assert browser.opened == ["https://example.org/"]


def test_a_selecting_drag_over_a_link_opens_nothing(
    transcript: Transcript, qtbot: QtBot, browser: Browser
) -> None:
    transcript.add_user("t", Message("user", "Look at https://example.org/ now"))
    question = transcript.findChild(UserMessage)
    body = question.body
    at = place_of(body, "https://example.org/")
    qtbot.mousePress(body, Qt.MouseButton.LeftButton, pos=QPoint(10, 10))
    body.select_to(at.toPointF())
    qtbot.mouseRelease(body, Qt.MouseButton.LeftButton, pos=at)
    assert browser.opened == []
    qtbot.mouseClick(body, Qt.MouseButton.LeftButton, pos=at)
    assert browser.opened == ["https://example.org/"]


def test_the_context_menu(transcript: Transcript, qtbot: QtBot, browser: Browser) -> None:
    stream(transcript, "Read [this](https://example.org/) **first**.\n\n```py\nx = 1\n```\n")
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    menu = body.menu_at(place_of(body, "this").toPointF())
    body.add_to_menu(menu, place_of(body, "this").toPointF())
    actions = {action.text(): action for action in menu.actions() if not action.isSeparator()}
    assert list(actions) == [
        *("Copy", "Quote in Message", "Open Link", "Copy Link", "Select All", "Copy Answer as Markdown"),
        *("Edit Answer", "Continue from Here"),
    ]
    assert not actions["Copy"].isEnabled()
    assert not actions["Quote in Message"].isEnabled()
    actions["Copy Link"].trigger()
    assert QGuiApplication.clipboard().text() == "https://example.org/"
    actions["Copy Answer as Markdown"].trigger()
    assert QGuiApplication.clipboard().text().startswith("Read [this](https://example.org/) **first**.")
    actions["Select All"].trigger()
    assert transcript.selected_text().startswith("Read this first.")
    menu.deleteLater()
    menu = body.menu_at(place_of(body, "x = 1").toPointF())
    actions = {action.text(): action for action in menu.actions()}
    assert actions["Copy"].isEnabled()
    actions["Copy Code"].trigger()
    assert QGuiApplication.clipboard().text() == "x = 1"
    menu.deleteLater()
