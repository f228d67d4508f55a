"""Every word and every focus ring can be seen, light and dark, at rest, pointed at and pressed (WCAG AA)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest
from PySide6.QtGui import QColor
from PySide6.QtWidgets import QApplication, QWidget

from app.features.projects import ProjectSheet
from app.features.server.rows import Level, RequestRow
from app.features.server.window import ServerWindow
from app.shell.window import MainWindow
from app.theme.theme import theme
from core.events import Attachment, Message
from tests.app import contrast
from tests.app.stage import kill, outside_of_tasks, play, ready, sheet, until

TEXT = "\n\n".join(f"Rule {n}: the pilot waits for the tide, and the tide for nobody." for n in range(120))
LEVELS: tuple[Level, ...] = ("live", "dim", "bad")
SIDE_WINDOWS = ("settings", "tables", "models", "lab", "help", "deleted", "library", "tools")
_STATES: tuple[Callable[[QWidget, bool], None], ...] = (
    lambda window, on: None,
    contrast.pointed_at,
    contrast.pressed,
)


def test_the_measure_is_wcags() -> None:
    white, grey = QColor("#ffffff"), QColor("#767676")
    assert contrast.ratio(white, QColor("#000000")) == pytest.approx(21)
    assert contrast.ratio(white, grey) == pytest.approx(4.54, abs=0.01)


async def failing(main: MainWindow, window: QWidget) -> list[str]:
    """All that cannot be seen well enough in `window`, in both schemes."""
    found: set[str] = set()
    measured = 0
    for scheme in ("light", "dark"):
        main.app_settings.set("look.scheme", scheme)
        # What the application's palette gives is given by whoever starts it.
        QApplication.setPalette(theme.qpalette())
        await asyncio.sleep(0.02)
        for state in _STATES:
            state(window, True)
            noted = contrast.inks(window) + contrast.rings(window)
            measured += len(noted)
            found |= {f"{scheme}: {ink}" for ink in noted if ink.fails}
            state(window, False)
    assert measured > 3
    return sorted(found)


def scenes(qapp: QApplication, *plays: Callable[[MainWindow], Awaitable[list[str]]]) -> None:
    faults: list[str] = []

    async def scene(window: MainWindow) -> None:
        await ready(window)
        window.resize(1440, 900)
        for each in plays:
            faults.extend(await each(window))

    before = QApplication.palette()
    try:
        play(qapp, scene, block_ms=math.inf)  # the scene itself computes for long
    finally:
        QApplication.setPalette(before)
    assert faults == [], "\n".join(faults)


async def first_page(window: MainWindow) -> list[str]:
    return await failing(window, window)


async def chat(window: MainWindow) -> list[str]:
    """A sparse answer, every section open, then the document beside it."""
    window.controller.asking.submit(Message("user", "skim write 120", (Attachment("rules.md", TEXT),)))
    await ready(window)
    for group in ("model", "basics", "prefill", "kv", "sampling", "drafting", "gate", "tables"):
        window.views.inspector.open_section(group)
    faults = await failing(window, window)
    window.commands.show_document()
    return faults + await failing(window, window)


async def died(window: MainWindow) -> list[str]:
    window.controller.asking.submit(Message("user", "write 100000 slowly"))
    await until(lambda: len(window.controller.chats.open.turns[-1].answer.tokens) > 3)
    await kill(window)
    return await failing(window, window)


async def project(window: MainWindow) -> list[str]:
    window.views.sidebar.new_project_requested.emit("")
    dialog = await sheet(window, ProjectSheet)
    dialog.name.setText("Harbour")
    faults = await failing(window, dialog)
    await outside_of_tasks(dialog.reject)
    return faults


def of_requests(level: Level) -> Callable[[MainWindow], Awaitable[list[str]]]:
    """The server's window with a chosen row of that level."""
    row = RequestRow("", "editor", "toy · chat/completions", "Writing", "live", *["9"] * 7)
    rows = [replace(row, id=each, state=f"It is {each}", level=each) for each in LEVELS]

    async def scene(window: MainWindow) -> list[str]:
        page = ServerWindow()
        page.show()
        page.show_rows(tuple(rows))
        page.list.select(level)
        found = await failing(window, page)
        page.close()
        page.deleteLater()
        return [f"server, {level}: {fault}" for fault in found]

    return scene


def test_the_chat_window(qapp: QApplication) -> None:
    scenes(qapp, first_page, chat)


@pytest.mark.sweep
def test_those_beside_it_and_after_a_worker_died(qapp: QApplication) -> None:
    def shown(name: str) -> Callable[[MainWindow], Awaitable[list[str]]]:
        async def scene(window: MainWindow) -> list[str]:
            beside = window.windows.show(name)
            faults = await failing(window, beside)
            beside.close()
            return [f"{name}: {fault}" for fault in faults]

        return scene

    beside = [*map(shown, SIDE_WINDOWS), *map(of_requests, LEVELS)]
    scenes(qapp, project, *beside, died)
