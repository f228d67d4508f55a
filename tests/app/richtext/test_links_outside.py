"""Links: shown where they go, opened outside, and only those that may be."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QObject, QPoint, Qt, QUrl, Slot
from PySide6.QtGui import QDesktopServices, QGuiApplication, QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.qtbot import QtBot

from app.chat.intents import Intent, SelectAnswer
from app.chat.transcript import Transcript
from app.chat.user_message import UserMessage
from app.richtext.canvas_menu import open_outside
from app.richtext.markdown.inline import bare_links, may_open
from app.richtext.text_canvas import TextCanvas
from core.events import TYPED, Message
from tests.app.chat.watching import body_of, point_at, stream
from tests.app.chat.written import finished, token


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


def tip_at(widget: TextCanvas, point: QPoint) -> str:
    QApplication.sendEvent(widget, QHelpEvent(QEvent.Type.ToolTip, point, widget.mapToGlobal(point)))
    return QToolTip.text() if QToolTip.isVisible() else ""


LINKS = "Read https://e.org/a first, then https://e.org/b too"


def test_a_questions_link_shows_its_address_by_mouse_and_by_keyboard(
    transcript: Transcript, qtbot: QtBot, browser: Browser
) -> None:
    transcript.add_user("t", Message("user", LINKS))
    body = transcript.findChild(UserMessage).body
    assert tip_at(body, place_of(body, "org/b")) == "https://e.org/b"
    qtbot.waitUntil(lambda: tip_at(body, place_of(body, "first")) == "")  # it fades
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_Return)
    assert browser.opened == []
    keys = Qt.Key
    for key, address in (
        (keys.Key_Right, "a"),
        (keys.Key_Right, "b"),
        (keys.Key_Right, "b"),
        (keys.Key_Left, "a"),
    ):
        qtbot.keyClick(body, key, Qt.KeyboardModifier.KeypadModifier)
        assert QToolTip.text() == f"https://e.org/{address}"
        qtbot.keyClick(body, Qt.Key.Key_Return)
        assert browser.opened.pop() == f"https://e.org/{address}"
    assert body.selected_text == "https://e.org/a"


def test_a_link_that_a_person_wrote_into_an_answer_shows_its_address(
    transcript: Transcript, qtbot: QtBot, browser: Browser
) -> None:
    transcript.begin_answer("t", "off")
    transcript.append_tokens(
        "t", [replace(token(text), id=TYPED) for text in ("See ", "https://e.org/a", " now")]
    )
    transcript.finish_answer("t", finished())
    body = body_of(transcript)
    assert tip_at(body, place_of(body, "https")) == "https://e.org/a"
    assert not transcript.tip.isVisible()
    QToolTip.hideText()
    qtbot.waitUntil(lambda: not QToolTip.isVisible())
    body.setFocus()
    qtbot.keyClick(body, Qt.Key.Key_Right)
    assert not QToolTip.isVisible()
    qtbot.keyClick(body, Qt.Key.Key_Right)
    assert QToolTip.text() == "https://e.org/a"


def test_a_click_on_the_text_selects_the_answer_and_neither_a_drag_nor_a_link_does(
    transcript: Transcript, qtbot: QtBot, browser: Browser
) -> None:
    stream(transcript, "Read [this](https://example.org/) first, and then all of the rest of it.")
    transcript.finish_answer("t", finished())
    intents: list[Intent] = []
    transcript.intent.connect(intents.append)
    body = body_of(transcript)
    left = Qt.MouseButton.LeftButton
    qtbot.mouseClick(body, left, pos=place_of(body, "this"))
    assert browser.opened == ["https://example.org/"]
    qtbot.mousePress(body, left, pos=place_of(body, "first"))
    body.select_to(place_of(body, "rest").toPointF())
    qtbot.mouseRelease(body, left, pos=place_of(body, "rest"))
    assert body.selected_text
    assert intents == []
    for button in (Qt.MouseButton.RightButton, left):
        qtbot.mouseClick(body, button, pos=place_of(body, "first"))
    assert intents == [SelectAnswer("t")]
    assert body.selected_text == ""


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
        *("Edit Answer", "Continue from Here", "Delete Question and Answer"),
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
