"""What stands in an empty field says all of it: in every field of every window, however large the texts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QLineEdit, QWidget

from app.chat.composer_edit import ComposerEdit
from app.controls.text_fields import TextArea
from app.shell.window import MainWindow
from core.events import Attachment, Message
from core.settings import assign, declared
from tests.app.stage import ready
from tests.thinned import thinned

# QLineEdit's own, at each side of its text.
_LINE_EDIT_PX = 2
SIDE_WINDOWS = ("settings", "models", "library", "lab", "tables", "tools")


def of_lines(root: QWidget) -> Iterator[tuple[str, int, int]]:
    """Placeholder, the width it needs and the width it has."""
    for field in root.findChildren(QLineEdit):
        if field.placeholderText() and field.isVisible():
            margins = field.textMargins()
            room = field.width() - margins.left() - margins.right() - 2 * _LINE_EDIT_PX
            yield (
                field.placeholderText(),
                field.fontMetrics().horizontalAdvance(field.placeholderText()),
                room,
            )
    for edit in root.findChildren(ComposerEdit):
        if not edit.isVisible():
            continue
        needed = edit.fontMetrics().horizontalAdvance(edit.placeholderText())
        yield edit.placeholderText(), needed, edit.viewport().width() - 1


def of_areas(root: QWidget) -> Iterator[tuple[str, int, int]]:
    """Placeholder, the height it needs and the height there is below its top."""
    for area in root.findChildren(TextArea):
        label = area.placeholder
        if label.text() and label.isVisible():
            top = label.mapTo(area, QPoint(0, 0)).y()
            assert label.parentWidget().width() == label.width()
            yield label.text(), label.heightForWidth(label.width()), area.height() - top


def measured(root: QWidget) -> set[str]:
    """All placeholders there are, after a look that none is cut."""
    found = set()
    for text, needed_px, room_px in (*of_lines(root), *of_areas(root)):
        assert needed_px <= room_px, f"“{text}” needs {needed_px} px and has {room_px}"
        found.add(text)
    return found


async def everything(window: MainWindow) -> set[str]:
    """Of the chat's window in each of its states, and of those beside it."""
    views, inspector = window.views, window.views.inspector
    window.columns.show_sidebar(True)
    window.columns.show_inspector(True)
    for name in ("basics", "drafting", "gate", "sampling", "prefill", "kv", "tables"):
        inspector.open_section(name)
    found: set[str] = set()
    for drafter in ("cacheback", "draft-model"):
        inspector.set_settings(assign(inspector.settings, "drafting.drafter", drafter))
        await asyncio.sleep(0.05)
        found |= measured(window)
    window.commands.show_document()
    views.document.finder.open()
    views.transcript.finder.open()
    await asyncio.sleep(0.05)
    found |= measured(window)
    window.controller.racing.show()
    window.race_page.prompt.question.set_value("")
    await asyncio.sleep(0.05)
    found |= measured(window)
    window.controller.racing.close()
    for name in SIDE_WINDOWS:
        beside = window.windows.show(name)
        beside.resize(beside.size().boundedTo(window.size()))
        await asyncio.sleep(0.05)
        found |= measured(beside)
        beside.close()
    return found


@pytest.mark.parametrize(
    "width_and_zoom", thinned([(width, zoom) for width in (1024, 1440) for zoom in (100, 150)], [(1024, 150)])
)
async def test_no_placeholder_is_cut(window: MainWindow, width_and_zoom: tuple[int, int]) -> None:
    width_px, zoom_pct = width_and_zoom
    window.resize(width_px, 700)
    window.app_settings.set("look.zoom_pct", zoom_pct)
    found = await everything(window)
    window.controller.asking.submit(Message("user", "write 40 slowly", (Attachment("a", "b " * 300),)))
    await asyncio.sleep(0.05)
    found |= measured(window)
    await ready(window)
    found |= measured(window)
    texts = {each.help for each in declared() if each.kind == "text" and each.lines > 1}
    assert found >= texts
    assert {"The family’s newest", "None chosen"} <= found
    assert len(found) >= 10, found
