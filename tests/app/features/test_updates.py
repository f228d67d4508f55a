"""Updates: checked on a click, or once a day if enabled; an invalid answer is refused."""

from __future__ import annotations

import importlib.metadata
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from app.features.about import NEWEST, AboutWindow
from app.features.settings.window import SettingsWindow
from app.features.updates import NO_ADDRESS, Release, UpdateLook, newer_release, releases_address
from app.launch.application import Application
from app.launch.host import Host
from app.shell.window import MainWindow
from app.theme.theme import Theme
from core.errors import RequestError
from tests.app.stage import play, ready, until

PAGE = "https://example.invalid/releases/2"


def release(tag: str, page: str = PAGE) -> bytes:
    return json.dumps({"tag_name": tag, "html_url": page, "draft": False}).encode()


@pytest.mark.parametrize(
    ("current", "tag", "newer"),
    [
        ("0.1.0", "v0.2.0", True),
        ("0.9.0", "0.10.0", True),
        ("1.0", "v1.0.0", False),
        ("1.0.1", "v1.0.0", False),
        ("0.1.0", "v0.1.0", False),
    ],
)
def test_which_version_is_newer(current: str, tag: str, newer: bool) -> None:
    found = newer_release(current, release(tag))
    assert found == (Release(tag, PAGE) if newer else None)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b'{"tag_name": 3}',
        release("nightly"),
        release("v2.0", "http://example.invalid/"),
        release("v2.0", "file:///etc/passwd"),
        b"\xff\xfe",
    ],
)
def test_what_is_no_release_is_refused(content: bytes) -> None:
    with pytest.raises(RequestError):
        newer_release("1.0", content)


class Server:
    """A release page on this machine."""

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        self.status, self.content = 200, release("v9.9.9")
        self.may_answer = threading.Event()
        self.may_answer.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.asked.append(dict(self.headers.items()))
                outer.may_answer.wait(5.0)
                self.send_response(outer.status)
                self.send_header("Content-Length", str(len(outer.content)))
                self.end_headers()
                self.wfile.write(outer.content)

            def log_message(self, *arguments: object) -> None:
                pass

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}/latest"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    yield found
    found.stop()


@pytest.fixture
def about(qtbot: QtBot) -> Callable[[str], AboutWindow]:
    def make(releases: str) -> AboutWindow:
        window = AboutWindow(Theme("light"), releases=releases)
        qtbot.addWidget(window)
        window.show()
        return window

    return make


def test_opening_the_window_asks_nobody(
    server: Server, about: Callable[[str], AboutWindow], qtbot: QtBot
) -> None:
    window = about(server.address)
    qtbot.wait(50)
    assert server.asked == []
    assert window.answer.isHidden()


def test_a_click_asks_once_and_says_what_was_found(
    server: Server, about: Callable[[str], AboutWindow], qtbot: QtBot
) -> None:
    window = about(server.address)
    window.look.click()
    window.look.click()
    qtbot.waitUntil(lambda: "9.9.9" in window.answer.text())
    assert PAGE in window.answer.text()
    (headers,) = server.asked
    assert headers["User-Agent"] == "Draftlight"
    assert "Cookie" not in headers


def test_the_newest_version_is_said_to_be_it(
    server: Server, about: Callable[[str], AboutWindow], qtbot: QtBot
) -> None:
    server.content = release("v0.0.1")
    window = about(server.address)
    window.look.click()
    qtbot.waitUntil(lambda: window.answer.text() == NEWEST)


@pytest.mark.parametrize(("status", "content"), [(404, b"no"), (200, b"<html>")])
def test_a_failure_is_said_with_its_reason(
    server: Server, about: Callable[[str], AboutWindow], qtbot: QtBot, status: int, content: bytes
) -> None:
    server.status, server.content = status, content
    window = about(server.address)
    window.look.click()
    qtbot.waitUntil(lambda: window.answer.text().startswith("The check failed:"))


def test_closing_in_mid_question_is_quiet(server: Server, qtbot: QtBot) -> None:
    look = UpdateLook(server.address, "0.1.0")
    heard: list[object] = []
    look.found.connect(heard.append)
    server.may_answer.clear()
    look.start()
    qtbot.waitUntil(lambda: bool(server.asked))
    look.deleteLater()
    qtbot.wait(50)
    server.may_answer.set()
    qtbot.wait(50)
    assert heard == []


def test_a_build_that_names_no_address_has_no_button(
    about: Callable[[str], AboutWindow], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not hasattr(about(""), "look")

    class Metadata:
        def get_all(self, name: str) -> list[str]:
            assert name == "Project-URL"
            return ["Source, https://example.invalid/", "Releases, https://example.invalid/latest"]

    monkeypatch.setattr(importlib.metadata, "metadata", lambda name: Metadata())
    assert releases_address() == "https://example.invalid/latest"


def test_off_nothing_is_ever_asked_and_on_once_a_day(
    qapp: Application, server: Server, tmp_path: Path
) -> None:
    async def first(window: MainWindow) -> None:
        host = Host(qapp, window, Theme("light"), releases=server.address)
        await ready(window)
        assert server.asked == []
        assert not window.menu_actions["update"].isVisible()
        about = host.show_about()
        assert not hasattr(about, "look")
        about.close()
        window.app_settings.set("updates.check", True)
        await until(lambda: window.menu_actions["update"].isVisible())
        assert window.menu_actions["update"].text() == "Get version 9.9.9…"
        assert len(server.asked) == 1
        # Any other change of a setting is no reason to ask again.
        window.app_settings.set("look.tint", "never")
        about = host.show_about()
        assert about.look.isEnabled()
        about.close()
        host.stop()

    async def soon_again(window: MainWindow) -> None:
        host = Host(qapp, window, Theme("light"), releases=server.address)
        await ready(window)
        assert host.updates.is_on
        assert len(server.asked) == 1
        found: list[object] = []
        host.updates.found.connect(found.append)
        # A day later, or with a clock that was set back.
        for count, then_s in enumerate((0.0, 4e9), start=1):
            window.controller.home.preferences.change(looked_for_update_s=then_s)
            host.updates.look_if_due()
            # It asks again only after the reply has arrived.
            await until(lambda count=count: len(found) == count)
            assert len(server.asked) == 1 + count
        window.app_settings.set("updates.check", False)
        window.controller.home.preferences.change(looked_for_update_s=0.0)
        host.updates.look_if_due()
        host.stop()

    play(qapp, first, folder=tmp_path)
    play(qapp, soon_again, folder=tmp_path)
    assert len(server.asked) == 3


async def test_a_build_without_an_address_says_so(window: MainWindow, qapp: QApplication) -> None:
    assert isinstance(qapp, Application)
    host = Host(qapp, window, Theme("light"), releases="")
    await ready(window)
    settings = window.windows.show("settings")
    assert isinstance(settings, SettingsWindow)
    field = settings.field("updates.check")
    assert field.note == NO_ADDRESS
    assert not field.control.isEnabled()
    assert not host.updates.is_on
    host.stop()
