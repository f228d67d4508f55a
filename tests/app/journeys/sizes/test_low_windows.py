"""The chat in low windows with large texts: the transcript keeps its lines, and everything is in reach."""

from __future__ import annotations

import asyncio

import pytest
from PySide6.QtCore import QPoint, QRect
from PySide6.QtWidgets import QAbstractButton, QWidget

from app.shell.window import MINIMUM_SIZE, MainWindow
from app.theme.theme import color
from app.theme.zoom import px
from tests.app.hand import Hand
from tests.app.journeys.sizes.test_narrow_windows import within
from tests.app.legible import illegible
from tests.app.stage import answering, click, ready, until

LINE_PX = 25
Size = tuple[int, int]
SMALLEST: Size = (900, 600)


async def with_queue(window: MainWindow, size: Size, zoom_pct: int, *, held: bool = False) -> Hand:
    """A chat with an answer and three waiting messages, in a window of that size."""
    hand = Hand(window)
    await answering(window, tokens=60)
    for number in range(3):
        await hand.send(f"write {number} about the tides of the northern harbours, and what the pilot does")
    if held:
        window.controller.asking.stop()
        await ready(window)
    window.app_settings.set("look.zoom_pct", zoom_pct)
    window.resize(*size)
    await until(lambda: (window.width(), window.height()) == size)
    await until(lambda: not overlapping(window), what="parts overlap or leave the window")
    return hand


def overlapping(window: MainWindow) -> list[tuple[str, str]]:
    """Visible parts of the chat that lie on each other or leave the window."""
    views = window.views
    names = ("header", "strip", "banner", "pages", "notice_bar", "queue_list", "editing_bar", "composer")
    parts = {name: getattr(views, name) for name in (*names, "legend", "hint")}
    boxes = {name: placed(part, window) for name, part in parts.items() if part.isVisible()}
    pairs = [(a, b) for a in boxes for b in boxes if a < b and boxes[a].intersects(boxes[b])]
    return pairs + [(name, "window") for name, box in boxes.items() if not window.rect().contains(box)]


def placed(widget: QWidget, window: QWidget) -> QRect:
    return QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())


@pytest.mark.sweep
@pytest.mark.parametrize(("size", "zoom_pct"), [((1024, 660), 200), (SMALLEST, 150), (SMALLEST, 100)])
async def test_the_transcript_keeps_six_lines_over_a_queue(
    window: MainWindow, size: Size, zoom_pct: int
) -> None:
    await with_queue(window, size, zoom_pct)
    transcript, composer = window.views.transcript, window.views.composer
    await until(lambda: transcript.viewport().height() >= 6 * px(LINE_PX), what="fewer than six lines")
    await until(lambda: composer.height() >= composer.sizeHint().height(), what="it is squeezed")
    await until(lambda: not overlapping(window), what="parts overlap or leave the window")


@pytest.mark.parametrize("zoom_pct", [100, 150, 200])
async def test_everything_is_in_reach_in_the_smallest_window(window: MainWindow, zoom_pct: int) -> None:
    assert (MINIMUM_SIZE.width(), MINIMUM_SIZE.height()) == SMALLEST
    hand = await with_queue(window, SMALLEST, zoom_pct, held=True)
    views = window.views
    queue, fold = views.queue_list, views.queue_list.fold_button
    if not queue.isVisible():  # folded into a button
        assert fold.text() == "3 on hold"
        assert "On hold" in fold.toolTip()
        await click(fold)
    assert hand.waiting
    await until(lambda: not overlapping(window), what="parts overlap or leave the window")
    for button in (queue.send_button, queue.rows[0].edit_button, queue.rows[2].remove_button):
        assert within(button, window)
    buttons = [each for each in views.composer.findChildren(QAbstractButton) if each.isVisible()]
    assert len(buttons) >= 2
    assert [each.accessibleName() for each in buttons if not within(each, window)] == []
    # An excerpt of a message may be cut; the tooltip has all of it.
    cut = [each for each in illegible(window) if "edge" not in each and not each.startswith("“write")]
    assert cut == []
    if fold.isVisible():
        await click(fold)
        assert queue.isHidden()
    # The panels cover the chat, and a larger window shows the list again.
    window.columns.show_sidebar(True)
    await asyncio.sleep(0.05)
    assert within(views.sidebar.new_chat_button, window)
    window.columns.close_over()
    window.columns.show_inspector(True)
    await asyncio.sleep(0.05)
    assert within(views.inspector, window)
    window.columns.close_over()
    window.resize(1440, 1600)
    await until(lambda: queue.isVisible() and views.legend.isVisible())
    assert fold.isHidden()
    assert views.strip.isVisible()


async def test_the_transcript_keeps_its_ground_when_texts_are_enlarged_in_dark(window: MainWindow) -> None:
    await with_queue(window, SMALLEST, 100)
    for scheme in ("dark", "light"):
        window.app_settings.set("look.scheme", scheme)
        for zoom_pct in (200, 150):
            window.app_settings.set("look.zoom_pct", zoom_pct)
            await asyncio.sleep(0.05)
            transcript = window.views.transcript
            corner = transcript.viewport().mapTo(window, QPoint(4, transcript.viewport().height() - 4))
            seen = window.grab().toImage().pixelColor(corner)
            assert seen == color("window"), (scheme, zoom_pct)
