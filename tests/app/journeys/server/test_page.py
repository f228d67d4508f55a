"""The server's window, its chip and its settings: what is seen of requests, and what a click does."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.bench.served import free_port
from app.features.server import strings
from app.features.server.rows import Level, RequestRow
from app.features.server.window import ServerPanel, ServerWindow
from app.features.settings.window import SettingsWindow
from app.gauges.figures import DASH
from app.shell.window import MainWindow
from core.serve.apps import APPS
from core.serve.requests import ServedRequest
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.journeys.test_contrast import failing, scenes
from tests.app.stage import click, play, press, ready, until

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def page_of(window: MainWindow) -> ServerWindow:
    """Opened by its key."""
    await press(window, Qt.Key.Key_S, CTRL | SHIFT)
    found = window.windows.find("server")
    assert isinstance(found, ServerWindow)
    return found


def panel_of(window: MainWindow) -> ServerPanel:
    """At the right of the server's window."""
    found = window.windows.show("server")
    assert isinstance(found, ServerWindow)
    return found.panel


async def test_the_empty_list_is_where_the_requests_will_be(window: MainWindow) -> None:
    await ready(window)
    page = await page_of(window)
    await until(lambda: page.list.height() > 0)
    before = page.list.geometry()
    base = await switch_on(window)
    await Asked(base, "write 4").whole()
    await until(lambda: len(page.list.rows) == 1)
    assert page.list.geometry() == before


async def test_a_request_that_was_refused_is_seen_with_the_reason(window: MainWindow) -> None:
    """It was answered with an error, and the window said that no request had come yet."""
    await ready(window)
    page = await page_of(window)
    base = await switch_on(window)
    await Asked(base, "write 4", temperature=9).whole()
    await until(lambda: len(page.list.rows) == 1, what="nothing is seen of it")
    (row,) = page.list.rows
    assert (row.title, row.state, row.level) == ("editor", "Failed", "bad")
    await until(lambda: bool(page.gone_text))
    assert page.gone_text.startswith("The server refused this request: ")
    assert "temperature" in page.gone_text
    # One that is answered, or fails while it is, is there once.
    await Asked(base, "write 4").whole()
    await Asked(base, "refuse").whole()
    await until(lambda: [each.over for each in page.list.rows] == [True] * 3)


async def test_a_request_for_vectors_is_seen(window: MainWindow) -> None:
    await ready(window)
    page = await page_of(window)
    record = ServedRequest(
        "embd-1", "/v1/embeddings", "rag/1.0", "all-MiniLM-L6-v2", time.time(), False, "reading"
    )
    requests = window.controller.sharing.requests
    requests.add(record)
    await until(lambda: [each.state for each in page.list.rows] == ["Reading"])
    requests.change("embd-1", state="finished", prompt_tokens=130, read_tokens=130, total_s=0.5)
    await until(lambda: [each.state for each in page.list.rows] == ["Finished"])
    (row,) = page.list.rows
    assert (row.subtitle, row.cached, row.over) == ("all-MiniLM-L6-v2 · embeddings", DASH, True)
    await until(lambda: page.gone_text == strings.EMBEDDED)


async def test_requests_are_seen_as_they_come_and_go(window: MainWindow) -> None:
    await ready(window)
    page = await page_of(window)
    assert page.list.empty[0] == strings.NOTHING_OFF
    base = await switch_on(window)
    assert page.list.empty[0] == strings.NOTHING_ON
    assert page.subtitle == strings.SERVING
    assert page.address.value == base
    assert page.model.isVisible()
    assert page.model.value == "Fake-1M"  # what a client's field for the model takes
    first = Asked(base, "write 100000 slowly")
    await until(lambda: len(page.list.rows) == 1)
    second = Asked(base, "write 4")
    await until(lambda: len(page.list.rows) == 2 and page.list.rows[1].state == "Writing")
    waiting, writing = page.list.rows
    assert (writing.title, writing.subtitle, writing.level) == (
        "editor", "Fake 1M · chat/completions", "live",
    )  # fmt: skip
    assert waiting.state == "Waiting, 1 before"
    assert page.subtitle == f"{strings.SERVING} 1 request waits."
    # The first that came was opened by itself, and grows.
    assert page.list.selected == writing.id
    answer = page.transcript.answer(writing.id)
    assert answer is not None
    before = len(answer.body.table)
    await until(lambda: len(answer.body.table) > before + 20)
    assert page.transcript.answer_text(writing.id).startswith("ECHO 1:")
    assert answer.facts(1).origin == "accepted"
    await first.leave()
    await second.whole()
    await until(lambda: [row.state for row in page.list.rows] == ["Finished", "Cancelled"])
    assert answer.footer.notes == (strings.CANCELLED_NOTE,)


async def test_a_click_opens_another_request(window: MainWindow) -> None:
    await ready(window)
    base = await switch_on(window)
    page = await page_of(window)
    for number, words in enumerate((3, 40), 1):
        await Asked(base, f"write {words}").whole()
        await until(lambda number=number: len(page.list.rows) == number)  # type: ignore[misc]
    newest = page.list.rows[0]
    assert page.list.selected != newest.id
    view = page.list
    place = view.visualRect(page.list.index_of(newest.id)).center()
    await asyncio.sleep(0)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place))
    assert page.list.selected == newest.id
    await until(lambda: "w39" in page.transcript.answer_text(newest.id))
    answer = page.transcript.answer(newest.id)
    assert answer is not None
    # Nothing can be asked again from here.
    assert len(answer.footer.buttons) == 1
    assert answer.footer.continue_button.isHidden()
    page.clear.click()
    assert page.list.rows == ()
    assert not page.clear.isEnabled()


async def test_who_opens_it_sees_the_request_that_is_being_answered(window: MainWindow) -> None:
    await ready(window)
    base = await switch_on(window)
    running = Asked(base, "write 100000 slowly")
    await until(lambda: bool(running.text))
    waiting = Asked(base, "write 4")
    requests = window.controller.sharing.requests
    await until(lambda: len(requests.all) == 2)
    page = await page_of(window)
    assert page.list.selected == requests.all[0].id
    await running.leave()
    await waiting.whole()
    assert page.list.selected == requests.all[0].id


async def test_the_chip_copies_the_address(window: MainWindow) -> None:
    await ready(window)
    chip = window.views.header.server_button
    assert chip.isHidden()
    base = await switch_on(window)
    for width in (1440, 1180, 1024, 980):
        window.resize(width, 700)
        await asyncio.sleep(0.05)
        assert chip.isVisible()
        assert chip.geometry().right() <= window.views.header.width()
        assert chip.text() in base
    await click(chip)
    assert QGuiApplication.clipboard().text() == base
    assert chip.text() == "Copied"
    window.app_settings.set("server.on", False)
    await until(chip.isHidden)


async def test_a_port_that_is_taken_is_told_with_what_to_do(window: MainWindow) -> None:
    await ready(window)
    taken = socket.socket()
    try:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        window.app_settings.set("server.port", taken.getsockname()[1])
        window.app_settings.set("server.on", True)
        server = window.controller.server
        await until(lambda: server.state.status == "failed")
        assert window.views.banner.trouble
        assert "port" in window.views.banner.trouble.title
        assert "Choose another port" in panel_of(window).text
        assert window.views.header.server_button.isHidden()
    finally:
        taken.close()
    window.app_settings.set("server.port", await free_port())
    await until(lambda: server.state.status == "on")
    assert window.views.banner.trouble is None


def test_requests_without_the_key_are_in_the_list(qapp: QApplication, tmp_path: Path) -> None:
    """The newest of each reason, with the endpoint and the reason; a page of another origin, too."""

    async def scene(window: MainWindow) -> None:
        await ready(window)
        page = await page_of(window)
        base = await switch_on(window, ask_key=True)
        for _ in range(2):
            assert (await Asked(base, "write 4").whole()).error == "invalid_api_key"
        await until(lambda: len(page.list.rows) == 1, what="nothing is seen of it")
        (row,) = page.list.rows
        assert (row.title, row.subtitle, row.level) == ("editor", "chat/completions", "bad")
        assert "key" in row.tip
        key = f"authorization: Bearer {window.controller.server.key.get()}\r\n"
        foreign = await Asked(base, "write 4", headers=f"{key}origin: http://other.example\r\n").whole()
        assert foreign.error == "origin_not_allowed"
        await until(lambda: len(page.list.rows) == 2, what="the foreign page is not seen")
        assert (await Asked(base, "write 4", headers=key).whole()).is_whole
        await until(lambda: [row.state for row in page.list.rows] == ["Finished", "Failed", "Failed"])

    play(qapp, scene, folder=tmp_path)


async def test_the_servers_settings_are_in_its_window(window: MainWindow) -> None:
    """Turned on there, and seen there; the app's own settings have no server."""
    await ready(window)
    page = await page_of(window)
    window.app_settings.set("server.port", await free_port())
    field = page.panel.form.fields["server.on"]
    await click(field.control.editor)
    server = window.controller.server
    await until(lambda: server.state.status == "on", what="the switch did nothing")
    assert server.state.address in page.panel.text
    settings = window.windows.show("settings")
    assert isinstance(settings, SettingsWindow)
    with pytest.raises(KeyError):
        settings.field("server.on")
    window.app_settings.reset()
    assert window.app_settings.now.server.on


def test_another_address_needs_a_key(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        server, box = window.controller.server, panel_of(window)
        window.app_settings.set("server.port", await free_port())
        window.app_settings.set("server.address", "0.0.0.0")
        window.app_settings.set("server.on", True)
        await until(lambda: server.state.status == "failed")
        assert "a key must be set" in box.text
        window.app_settings.set("server.ask_key", True)
        await until(lambda: server.state.status == "on")
        file = tmp_path / "server.key"
        if os.name == "posix":
            assert stat.S_IMODE(file.stat().st_mode) == 0o600
        await click(box.copy_key)
        key = QGuiApplication.clipboard().text()
        assert key == file.read_text().strip()
        base = server.state.address.replace("0.0.0.0", "127.0.0.1")
        assert (await Asked(base, "write 3").whole()).error == "invalid_api_key"
        asked = await Asked(base, "write 3", headers=f"authorization: Bearer {key}\r\n").whole()
        assert asked.is_whole
        await click(box.new_key)
        await until(lambda: server.state.status == "on" and file.read_text().strip() != key)
        await until(lambda: server.state.status == "on")
        again = await Asked(base, "write 3", headers=f"authorization: Bearer {key}\r\n").whole()
        assert again.error == "invalid_api_key"

    play(qapp, scene, folder=tmp_path)


async def test_what_is_no_address_or_origin_is_told(window: MainWindow) -> None:
    await ready(window)
    server = window.controller.server
    window.app_settings.set("server.port", await free_port())
    window.app_settings.set("server.address", "my machine")
    window.app_settings.set("server.on", True)
    await until(lambda: server.state.status == "failed")
    assert server.state.problem
    assert "my machine" in server.state.problem.message
    window.app_settings.set("server.address", "127.0.0.1")
    window.app_settings.set("server.origins", "http://localhost:3000/page")
    await until(lambda: server.state.problem is not None and "origin" in server.state.problem.message)
    window.app_settings.set("server.origins", "http://localhost:3000")
    await until(lambda: server.state.status == "on")
    origin = "origin: http://localhost:3000\r\n"
    allowed = await Asked(server.state.address, "write 3", headers=origin).whole()
    assert b"access-control-allow-origin: http://localhost:3000" in allowed.raw
    foreign = await Asked(server.state.address, "write 3", headers="origin: http://evil.test\r\n").whole()
    assert foreign.error == "origin_not_allowed"


async def test_a_name_of_this_machine_has_to_be_allowed(window: MainWindow) -> None:
    await ready(window)
    server = window.controller.server
    await switch_on(window)

    async def called(name: str) -> Asked:
        return await Asked(server.state.address, "write 3", called=name).whole()

    assert (await called("mac.local:8317")).error == "host_not_allowed"
    window.app_settings.set("server.hosts", "http://mac.local")
    await until(lambda: server.state.problem is not None and "mac.local" in server.state.problem.message)
    window.app_settings.set("server.hosts", "box\nmac.local.")
    await until(lambda: server.state.status == "on")
    assert (await called("mac.local:8317")).is_whole
    assert (await called("Box")).is_whole
    assert (await called("evil.test")).error == "host_not_allowed"


def test_it_is_on_again_at_the_next_start(qapp: QApplication, tmp_path: Path) -> None:
    async def first(window: MainWindow) -> None:
        await ready(window)
        await switch_on(window)

    async def second(window: MainWindow) -> None:
        await until(lambda: window.controller.server.state.status == "on")
        assert (await Asked(window.controller.server.state.address, "write 3").whole()).is_whole

    play(qapp, first, folder=tmp_path)
    play(qapp, second, folder=tmp_path)


def test_what_a_chosen_request_says_is_legible(qapp: QApplication) -> None:
    levels: tuple[Level, ...] = ("live", "dim", "bad")
    row = RequestRow("", "editor", "toy · chat/completions", "Writing", "live", *["9"] * 7)
    rows = tuple(replace(row, id=level, state=f"It is {level}", level=level) for level in levels)

    def chosen(level: str) -> Callable[[MainWindow], Awaitable[list[str]]]:
        async def shown(window: MainWindow) -> list[str]:
            page = ServerWindow()
            page.show()
            page.show_rows(rows)
            page.list.select(level)
            found = await failing(window, page)
            page.close()
            page.deleteLater()
            return found

        return shown

    scenes(qapp, *(chosen(level) for level in levels))


async def test_connect_an_app_shows_a_configuration_and_copies_it_with_the_key(window: MainWindow) -> None:
    await ready(window)
    page = await page_of(window)
    sheet = page.panel.connect_box
    assert not sheet.isVisible()
    await switch_on(window, ask_key=True)
    await until(sheet.isVisible, what="no configuration")
    address = page.address.value.removesuffix("/v1")
    assert address in sheet.text.toPlainText()
    key = window.controller.server.served_key
    assert key
    for app in APPS:
        sheet.picker.set_value(app)
        await click(sheet.copy)
        copied = QGuiApplication.clipboard().text()
        assert address in copied
        assert app == "Open WebUI" or page.model.value in copied  # it lists the models itself
        shown = sheet.text.toPlainText() + sheet.hint.text() + sheet.copy.toolTip()
        assert key not in shown
    assert page.model.value in sheet.names.text()
    window.app_settings.set("server.on", False)
    await until(lambda: not sheet.isVisible(), what="the configuration stays")
