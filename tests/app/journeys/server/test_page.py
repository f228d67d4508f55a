"""The server's window, its chip and its settings: what is seen of requests, and what a click does."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest

from app.bench.served import free_port
from app.features.server import strings
from app.features.server.window import ServerPanel, ServerWindow
from app.gauges.figures import DASH
from app.shell.window import MainWindow
from core.serve.apps import APPS
from core.serve.served_requests import ServedRequest
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.stage import Stage, click, press, until

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier


async def page_of(window: MainWindow) -> ServerWindow:
    await press(window, Qt.Key.Key_S, CTRL | SHIFT)
    return window.windows.find("server")


def panel_of(window: MainWindow) -> ServerPanel:
    found = window.windows.show("server")
    return found.panel


async def test_requests_are_seen_as_they_come_and_go_and_refused_ones_too(window: MainWindow) -> None:
    page = await page_of(window)
    assert page.list.empty[0] == strings.NOTHING_OFF
    base = await switch_on(window)
    assert page.list.empty[0] == strings.NOTHING_ON
    assert page.titles.says == strings.SERVING
    assert page.address.value == base
    assert page.model.isVisible()
    assert page.model.value == "Fake-1M"  # what a client's field for the model takes
    first = Asked(base, "write 100000 slowly")
    await until(lambda: len(page.list.rows) == 1)
    second = Asked(base, "write 4")
    # Its place comes after the request itself.
    await until(lambda: [row.state for row in page.list.rows] == ["Waiting, 1 before", "Writing"])
    _, writing = page.list.rows
    assert (writing.title, writing.subtitle, writing.level) == (
        "editor", "Fake 1M · chat/completions", "live",
    )  # fmt: skip
    assert page.titles.says == f"{strings.SERVING} 1 request is waiting."
    # The first that came was opened by itself, and grows.
    assert page.list.selected == writing.id
    answer = page.transcript.answer(writing.id)
    before = len(answer.body.table)
    await until(lambda: len(answer.body.table) > before + 20)
    assert page.transcript.answer_text(writing.id).startswith("ECHO 1:")
    assert answer.facts(1).origin == "accepted"
    await first.leave()
    await second.whole()
    await until(lambda: [row.state for row in page.list.rows] == ["Finished", "Cancelled"])
    assert answer.footer.notes == (strings.CANCELLED_NOTE,)

    page.clear.click()
    # It was answered with an error, and the window said that no request had come yet.
    await Asked(base, "write 4", temperature=9).whole()
    await until(lambda: len(page.list.rows) == 1, what="nothing is seen of it")
    (row,) = page.list.rows
    assert (row.title, row.state, row.level) == ("editor", "Failed", "bad")
    await until(lambda: bool(page.gone.text()))
    assert page.gone.text().startswith("The server refused this request: ")
    assert "temperature" in page.gone.text()
    # One that is answered, or fails while it is, is there once.
    await Asked(base, "write 4").whole()
    await Asked(base, "refuse").whole()
    await until(lambda: [each.over for each in page.list.rows] == [True] * 3)

    page.clear.click()
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
    await until(lambda: page.gone.text() == strings.EMBEDDED)


async def test_a_click_opens_another_request(window: MainWindow) -> None:
    base = await switch_on(window)
    requests = window.controller.sharing.requests
    running = Asked(base, "write 100000 slowly")
    await until(lambda: bool(running.text))
    waiting = Asked(base, "write 40")
    await until(lambda: len(requests.all) == 2)
    page = await page_of(window)
    assert page.list.selected == requests.all[0].id  # the one that is being answered
    await running.leave()
    await waiting.whole()
    await until(lambda: [row.state for row in page.list.rows] == ["Finished", "Cancelled"])
    newest, view = page.list.rows[0], page.list
    assert page.list.selected == requests.all[0].id != newest.id
    place = view.visualRect(view.index_of(newest.id)).center()
    await asyncio.sleep(0)
    QTest.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=QPoint(place))
    assert page.list.selected == newest.id
    await until(lambda: "w39" in page.transcript.answer_text(newest.id))
    footer = page.transcript.answer(newest.id).footer
    # Nothing can be asked again from here.
    assert [name for name, button in footer.buttons.items() if not button.isHidden()] == ["copy"]
    assert footer.continue_button.isHidden()
    page.clear.click()
    assert page.list.rows == ()
    assert not page.clear.isEnabled()


@pytest.mark.sweep
async def test_the_address_and_apps_are_in_reach_and_what_cannot_be_served_is_told(
    window: MainWindow,
) -> None:
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

    # Turned on there, and seen there; the app's own settings have no server.
    page = await page_of(window)
    window.app_settings.set("server.port", await free_port())
    field = page.panel.form.fields["server.on"]
    await click(field.control.editor)
    server = window.controller.server
    await until(lambda: server.state.status == "on", what="the switch did nothing")
    assert server.state.address in page.panel.state.text()
    settings = window.windows.show("settings")
    with pytest.raises(KeyError):
        settings.field("server.on")
    window.app_settings.reset()
    assert window.app_settings.now.server.on

    values = window.app_settings
    values.set("server.on", False)
    values.set("server.ask_key", False)
    await until(chip.isHidden)
    taken = socket.socket()
    taken.bind(("127.0.0.1", 0))
    taken.listen()
    with taken:
        values.set("server.port", taken.getsockname()[1])
        values.set("server.on", True)
        await until(lambda: server.state.status == "failed")
        assert "port" in window.views.banner.trouble.title
        assert "Choose another port" in panel_of(window).state.text()
        assert window.views.header.server_button.isHidden()
    values.set("server.port", await free_port())
    await until(lambda: server.state.status == "on")
    assert window.views.banner.trouble is None
    for key, bad, good, said in (
        ("server.address", "my machine", "127.0.0.1", "my machine"),
        ("server.origins", "http://localhost:3000/page", "http://localhost:3000", "origin"),
        ("server.hosts", "http://mac.local", "box\nmac.local.", "mac.local"),
    ):
        values.set(key, bad)
        await until(lambda said=said: bool(server.state.problem) and said in server.state.problem.message)
        values.set(key, good)
        await until(lambda: server.state.status == "on")

    async def heard(headers: str = "", called: str = "") -> Asked:
        return await Asked(server.state.address, "write 3", headers=headers, called=called).whole()

    allowed = await heard("origin: http://localhost:3000\r\n")
    assert b"access-control-allow-origin: http://localhost:3000" in allowed.raw
    assert (await heard("origin: http://evil.test\r\n")).error == "origin_not_allowed"
    assert (await heard(called="mac.local:8317")).is_whole
    assert (await heard(called="Box")).is_whole
    assert (await heard(called="evil.test")).error == "host_not_allowed"


@pytest.mark.sweep
async def test_another_address_needs_a_key_and_requests_without_it_are_in_the_list(
    stage: Stage, tmp_path: Path
) -> None:
    """The newest of each reason, with the endpoint and the reason; a page of another origin, too."""
    window = await stage.ready(folder=tmp_path)
    page = await page_of(window)
    server, values = window.controller.server, window.app_settings
    values.set("server.port", await free_port())
    values.set("server.address", "0.0.0.0")
    values.set("server.on", True)
    await until(lambda: server.state.status == "failed")
    assert "an API key is required" in page.panel.state.text()
    values.set("server.ask_key", True)
    await until(lambda: server.state.status == "on")
    file = tmp_path / "server.key"
    if os.name == "posix":
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
    await click(page.panel.copy_key)
    key = QGuiApplication.clipboard().text()
    assert key == file.read_text().strip()
    base = server.state.address.replace("0.0.0.0", "127.0.0.1")
    for _ in range(2):
        assert (await Asked(base, "write 3").whole()).error == "invalid_api_key"
    await until(lambda: len(page.list.rows) == 1, what="nothing is seen of it")
    (row,) = page.list.rows
    assert (row.title, row.subtitle, row.level) == ("editor", "chat/completions", "bad")
    assert "key" in row.tip
    with_key = f"authorization: Bearer {key}\r\n"
    foreign = await Asked(base, "write 4", headers=f"{with_key}origin: http://other.example\r\n").whole()
    assert foreign.error == "origin_not_allowed"
    await until(lambda: len(page.list.rows) == 2, what="the foreign page is not seen")
    assert (await Asked(base, "write 3", headers=with_key).whole()).is_whole
    await until(lambda: [row.state for row in page.list.rows] == ["Finished", "Failed", "Failed"])
    await click(page.panel.new_key)
    await until(lambda: server.state.status == "on" and file.read_text().strip() != key)
    await until(lambda: server.state.status == "on")
    assert (await Asked(base, "write 3", headers=with_key).whole()).error == "invalid_api_key"
    values.set("server.address", "127.0.0.1")
    values.set("server.ask_key", False)
    await until(lambda: server.state.status == "on" and "127.0.0.1" in server.state.address)

    window = await stage.open(folder=tmp_path)
    server = window.controller.server
    await until(lambda: server.state.status == "on", what="it is not on again at the next start")
    assert (await Asked(server.state.address, "write 3").whole()).is_whole
