"""Requests that are kept: in the window after a restart, deleted one by one and all at once, or not kept."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from app.controls.sheets import Question
from app.features.server import strings
from app.features.server.window import ServerWindow
from app.shell.window import MainWindow
from tests.app.journeys.server.client import Asked, switch_on
from tests.app.journeys.server.test_page import page_of
from tests.app.stage import click, play, ready, until


def is_shown(page: ServerWindow, request: str) -> bool:
    """Whether the transcript has the answer, which is read from the file first."""
    try:
        return page.transcript.answer(request) is not None
    except KeyError:
        return False


def test_kept_requests_are_there_after_a_restart(qapp: QApplication, tmp_path: Path) -> None:
    seen: dict[str, object] = {}

    async def first(window: MainWindow) -> None:
        await ready(window)
        base = await switch_on(window, keep_requests=True)
        page = await page_of(window)
        assert strings.KEEPING in page.subtitle
        for words in (3, 40):
            await Asked(base, f"write {words}").whole()
        await until(lambda: [row.state for row in page.list.rows] == ["Finished"] * 2)
        page.list.select(page.list.rows[0].id)
        await until(lambda: len(page.facts.facts.sections) == 2)
        seen.update(rows=page.list.rows, facts=page.facts.facts)
        seen["text"] = page.transcript.answer_text(page.list.selected)

    async def second(window: MainWindow) -> None:
        await ready(window)
        page = await page_of(window)
        await until(lambda: page.list.rows == seen["rows"])
        newest, oldest = page.list.rows
        assert page.list.selected == newest.id
        await until(lambda: is_shown(page, newest.id))
        assert page.transcript.answer_text(newest.id) == seen["text"]
        answer = page.transcript.answer(newest.id)
        assert answer is not None
        assert answer.facts(1).origin == "accepted"
        assert page.facts.facts == seen["facts"]
        # One by one, by the key; its neighbour is chosen then.
        page.list.view.setFocus()
        QTest.keyClick(page.list.view, Qt.Key.Key_Delete)
        assert [row.id for row in page.list.rows] == [oldest.id]
        assert page.list.selected == oldest.id
        base = await switch_on(window)
        await Asked(base, "write 3").whole()
        await until(lambda: len(page.list.rows) == 2)
        seen["kept"] = [row.id for row in page.list.rows]

    async def third(window: MainWindow) -> None:
        await ready(window)
        page = await page_of(window)
        await until(lambda: [row.id for row in page.list.rows] == seen["kept"])
        await click(page.delete_all)
        [question] = page.findChildren(Question)
        assert "2 requests are erased" in question.detail.text()
        question.cancel.click()
        assert len(page.list.rows) == 2
        await click(page.delete_all)
        [question] = [each for each in page.findChildren(Question) if each.isVisible()]
        question.buttons["delete"].click()
        assert page.list.rows == ()
        assert window.controller.home.requests.records() == ()

    play(qapp, first, folder=tmp_path)
    play(qapp, second, folder=tmp_path)
    play(qapp, third, folder=tmp_path)


def test_nothing_new_is_kept_where_that_is_off(qapp: QApplication, tmp_path: Path) -> None:
    async def off(window: MainWindow) -> None:
        await ready(window)
        base = await switch_on(window)
        page = await page_of(window)
        assert strings.KEEPING not in page.subtitle
        await Asked(base, "write 3").whole()
        await until(lambda: len(page.list.rows) == 1)

    async def on_and_off(window: MainWindow) -> None:
        await ready(window)
        page = await page_of(window)
        assert page.list.rows == ()
        base = await switch_on(window, keep_requests=True)
        state = window.controller.server.state
        await Asked(base, "write 3").whole()
        window.app_settings.set("server.keep_requests", False)
        assert strings.KEEPING not in page.subtitle
        await Asked(base, "write 5").whole()
        await until(lambda: len(page.list.rows) == 2)
        # The server went on meanwhile.
        assert window.controller.server.state is state

    async def after(window: MainWindow) -> None:
        await ready(window)
        page = await page_of(window)
        await until(lambda: len(page.list.rows) == 1)
        [row] = page.list.rows
        await until(lambda: is_shown(page, row.id))
        assert page.transcript.answer_text(row.id).startswith("ECHO 1:")

    play(qapp, off, folder=tmp_path)
    assert not (tmp_path / "requests.db").exists()
    play(qapp, on_and_off, folder=tmp_path)
    play(qapp, after, folder=tmp_path)


def test_one_that_is_being_answered_is_not_deleted(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        base = await switch_on(window, keep_requests=True)
        page = await page_of(window)
        running = Asked(base, "write 100000 slowly")
        await until(lambda: [row.state for row in page.list.rows] == ["Writing"])
        assert not page.delete.isEnabled()
        assert not page.delete_all.isEnabled()
        page.list.remove_requested.emit()
        window.controller.keeping.delete(page.list.selected)
        window.controller.keeping.delete_all()
        assert len(page.list.rows) == 1
        await running.leave()
        await until(lambda: page.delete.isEnabled())
        await click(page.delete)
        assert page.list.rows == ()
        assert page.empty_text == strings.NOTHING_ON
        assert window.controller.home.requests.records() == ()

    play(qapp, scene, folder=tmp_path)


def test_what_is_wrong_with_keeping_them_is_said(qapp: QApplication, tmp_path: Path) -> None:
    (tmp_path / "requests.db").write_bytes(b"no database at all" * 100)

    async def scene(window: MainWindow) -> None:
        await ready(window)
        page = await page_of(window)
        await until(lambda: "was damaged" in page.subtitle)
        base = await switch_on(window, keep_requests=True)
        await Asked(base, "write 3").whole()
        await until(lambda: len(window.controller.home.requests.records()) == 1)

    play(qapp, scene, folder=tmp_path)
