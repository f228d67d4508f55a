"""Larger by key: what is read and all around it; kept, and back again; nothing cut off, and in a moment."""

from __future__ import annotations

import asyncio
import math
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractButton, QApplication, QLineEdit, QWidget

from app.bench.measures import settle, timed
from app.bench.sample_chat import sample_turns
from app.bench.window import _outside_of_tasks as outside_of_tasks
from app.chat.answer import AnswerView
from app.chat.attachment_chip import Chip
from app.controls.choices import Popup
from app.controls.text_fields import SearchField
from app.controls.text_label import TextLabel
from app.panels.section import Section
from app.shell.window import MainWindow
from app.theme.theme import theme
from core.events import Attachment, Message
from tests.app.conftest import LOOK
from tests.app.stage import Stage, answer_view, last, play, press, ready, set_value

CTRL = Qt.KeyboardModifier.ControlModifier
KEY = Qt.Key
TEXT = "\n\n".join(f"Rule {n}: the pilot waits for the tide, and the tide for nobody." for n in range(120))


async def asked_about_rules(window: MainWindow) -> AnswerView:
    """A document, a question and its answer, which is returned."""
    await ready(window)
    window.controller.asking.submit(Message("user", "skim write 120", (Attachment("rules.md", TEXT),)))
    await ready(window)
    await press(window, KEY.Key_D, CTRL | Qt.KeyboardModifier.AltModifier)
    return answer_view(window)


@pytest.mark.sweep
@pytest.mark.skipif(bool(LOOK), reason="begins at 100%")
async def test_larger_smaller_and_back(window: MainWindow) -> None:
    answer = await asked_about_rules(window)
    window.resize(1800, 1000)
    window.views.side.show_tab("settings")
    before, height, text = lengths(window), answer.body.height(), answer.body.readable_text
    for keys, zoom_pct in (
        ([KEY.Key_Equal, KEY.Key_Plus], 125),
        ([KEY.Key_Plus], 150),
        ([KEY.Key_Minus] * 3, 100),
        ([KEY.Key_Minus], 90),
        ([KEY.Key_0], 100),
    ):
        for key in keys:
            await press(window, key, CTRL)
        assert window.app_settings.now.look.zoom_pct == zoom_pct
        await asyncio.sleep(0.05)
        now = lengths(window)
        for name, length in before.items():
            wanted = zoom_pct / 100 * length
            assert abs(now[name] - wanted) <= max(3, 0.06 * wanted), (zoom_pct, name, wanted, now[name])
        assert answer.body.readable_text == text == last(window).text
        if zoom_pct > 100:
            assert answer.body.height() > height
            assert answer.body.token_rect(2).height() > 21  # tints stand where their words are
    assert (lengths(window), answer.body.height()) == (before, height)


@pytest.mark.sweep
async def test_what_is_read_stays_and_size_and_motion_are_remembered(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    await asked_about_rules(window)
    window.commands.show_document()
    view = window.views.document.view
    view.scroll_to_character(TEXT.index("Rule 60"))
    await asyncio.sleep(0.05)
    assert (first := view.visible_characters()[0])
    for key in (*[KEY.Key_Plus] * 2, *[KEY.Key_Minus] * 3, *[KEY.Key_Plus] * 5):
        await press(window, key, CTRL)
        await asyncio.sleep(0.05)
        if view.isVisible():
            assert abs(view.visible_characters()[0] - first) < 80  # a line may break elsewhere
    window = await stage.open(folder=tmp_path)
    assert window.app_settings.now.look.zoom_pct == 175
    assert answer_view(window).body.boxes[0].layout.style.line_px == round(25 * 1.75)

    blinks = QApplication.cursorFlashTime()
    window.app_settings.set("look.motion", "reduced")
    assert theme.reduced_motion
    assert QApplication.cursorFlashTime() == 0
    await stage.close()
    assert QApplication.cursorFlashTime() == blinks


def lengths(window: MainWindow) -> dict[str, int]:
    views, body = window.views, answer_view(window).body
    return {
        "a line": body.boxes[0].layout.style.line_px,
        "the field's letters": views.composer.edit.fontMetrics().height(),
        "the field's width": views.composer.maximumWidth(),
        "sidebar": views.sidebar.width(),
        "panel": views.side.width(),
        "header": views.header.height(),
        "gauges": views.strip.height(),
        "first gauge": views.strip.speed.width(),
        "search": window.findChild(SearchField).fontMetrics().height(),
        "a chat's row": views.sidebar.list.sizeHintForRow(1),
        "send": views.composer.send_button.width(),
        "tint": views.header.token_colors.width(),
        "legend": views.legend.height(),
        "a section": window.findChildren(Section)[0].header.height(),
    }


def cut_off(window: QWidget) -> list[str]:
    """Shown buttons, fields and labels that are smaller than their words."""
    found = []
    for kind in (QAbstractButton, TextLabel, Popup):
        for each in window.findChildren(kind):
            wanted = each.minimumSizeHint() if isinstance(each, TextLabel | Popup) else each.sizeHint()
            if isinstance(each.parentWidget(), QLineEdit) or isinstance(each, Chip):
                continue  # an icon that Qt places; a chip's words are labels of their own
            if each.isVisible() and (each.width() < wanted.width() or each.height() < wanted.height()):
                found.append(f"{each.accessibleName() or each.text()}: {each.size()} for {wanted}")
    return found


async def test_nothing_is_cut_off_in_the_smallest_window_with_larger_texts(window: MainWindow) -> None:
    await asked_about_rules(window)
    window.app_settings.set("look.zoom_pct", 150)
    set_value(window, "sampling.max_tokens", 16)
    window.resize(1024, 700)
    for show in (
        lambda: None,
        lambda: window.columns.show_sidebar(True),
        lambda: window.columns.show_inspector(True),
    ):
        show()
        await asyncio.sleep(0.05)
        assert cut_off(window) == []
        for panel in (window.views.sidebar, window.views.side):
            assert not panel.isVisible() or window.rect().contains(panel.geometry())


def test_windows_made_at_a_size_look_as_those_that_were_brought_to_it(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        names = ("settings", "tables", "models", "library", "lab")

        async def hints() -> dict[str, tuple[int, ...]]:
            await asyncio.sleep(0.1)
            return {
                name: tuple(
                    length
                    for each in window.windows.show(name).findChildren(QAbstractButton)
                    if each.isVisible()
                    for length in (
                        each.sizeHint().width(),
                        each.sizeHint().height(),
                        each.width(),
                        each.height(),
                    )
                )
                for name in names
            }

        for name in names:
            window.windows.show(name).resize(1500, 1000)
        window.app_settings.set("look.zoom_pct", 150)
        brought = await hints()
        window.windows.close_all()
        await asyncio.sleep(0.05)
        for name in names:
            window.windows.show(name).resize(1500, 1000)
        assert await hints() == brought

    play(qapp, scene, block_ms=math.inf)  # the scene itself compares pictures


@pytest.mark.quiet
async def test_a_long_chat_has_another_size_in_a_moment(stage: Stage) -> None:
    took_s: list[float] = []

    def change(window: MainWindow) -> None:
        transcript = window.views.transcript
        window.views.show_first_page(False)
        transcript.show_turns(sample_turns(60, 580))
        settle()
        for zoom_pct in (110, 125, 150, 100):
            took_s.append(timed(lambda zoom_pct=zoom_pct: zoomed(window, zoom_pct)))
            settle()

    def zoomed(window: MainWindow, zoom_pct: int) -> None:
        window.app_settings.set("look.zoom_pct", zoom_pct)
        QApplication.processEvents()
        window.repaint()

    window = await stage.ready()
    await outside_of_tasks(lambda: change(window))
    await stage.close()
    assert min(took_s) < 0.3, took_s
