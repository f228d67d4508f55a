"""Windows as narrow as a small screen with large texts makes them: all words are whole and in reach."""

from __future__ import annotations

import asyncio
from itertools import combinations

import pytest
from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractScrollArea, QLineEdit, QPushButton, QWidget

from app.controls.scroll_bar import ScrollPage
from app.features.projects import ProjectSheet
from app.features.race.state import Stage
from app.features.tables.rows import COLUMNS
from app.shell.window import MainWindow
from core.events import DownloadProgress, MemoryNeed, ModelEntry, ModelInfo, ModelList
from tests.app.features.test_lab import MEASURED
from tests.app.features.test_tables_window import KNOWN
from tests.app.journeys.test_side_windows import NAMES
from tests.app.legible import illegible
from tests.app.painted import noted_words
from tests.app.stage import outside_of_tasks, sheet, until

GB = 2**30
Size = tuple[int, int]
ALL_SIZES = [((1024, 700), 100), ((1024, 700), 150), ((1440, 900), 100), ((1440, 900), 150)]
# The narrowest and the usual one; the others are sweeps.
SIZES = [
    ALL_SIZES[1],
    ALL_SIZES[2],
    *(pytest.param(*each, marks=pytest.mark.sweep) for each in ALL_SIZES[::3]),
]


def model(name: str, gb: float, **more: object) -> ModelEntry:
    need = MemoryNeed(weights=int(gb * GB), growing=GB // 8192, working=GB)
    values: dict[str, object] = {"family": "f", "family_name": "Qwen3", "bits": 4, "context_tokens": 8192}
    values |= {"disk_bytes": int(gb * GB), "need": need, "parameters": int(gb * 2e9), **more}
    return ModelEntry(f"owner/{name}", name, "download", f"/m/{name}", **values)


MODELS = ModelList(
    "",
    "/m",
    (
        model("Qwen3 14B", 8.3),
        model("Qwen3 4B", 2.1),
        model("Qwen3 32B", 40.0),
        model("Qwen3 0.6B", 0.4, problem="It lacks a file.", hint="Get it anew."),
    ),
    (DownloadProgress("owner/Qwen3-8B", "running", 2 * GB, 5 * GB, 40e6, 75.0),),
    24 * GB,
    70 * GB,
    (model("Qwen3 1.7B", 0.9),),
)
LOADED = ModelInfo(
    "Qwen3 14B", "/m/Qwen3 14B", "f", "Qwen3", "qwen3", "bf16", "4-bit", 1, 1, 8192, 1, 1, True
)


async def narrow(window: MainWindow, name: str, size: Size) -> QWidget:
    """The window beside the chat's called `name`, in that size."""
    beside = window.windows.show(name)
    beside.setMinimumSize(0, 0)
    beside.resize(*size)
    await asyncio.sleep(0.05)
    return beside


def within(widget: QWidget, window: QWidget) -> bool:
    """Whether all of it is on the window, or can be brought there by an area that scrolls."""
    box = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
    parent = widget.parentWidget()
    while parent is not None and parent is not window:
        area = parent.parentWidget()
        if isinstance(area, QAbstractScrollArea) and parent is area.viewport():
            reach = QRect(parent.mapTo(window, QPoint(0, 0)), parent.size())
            across, down = area.horizontalScrollBar(), area.verticalScrollBar()
            reach.adjust(-across.value(), -down.value(), 0, 0)
            reach.setWidth(parent.width() + across.maximum())
            reach.setHeight(parent.height() + down.maximum())
            return reach.contains(box) and min(parent.width(), parent.height()) >= 40
        parent = parent.parentWidget()
    return window.rect().contains(box)


async def models_window(window: MainWindow, size: Size) -> None:
    models = await narrow(window, "models", size)
    window.controller.models.on_list(MODELS)
    rows = [row for row in models.list.rows if row.id]
    assert len(rows) == 6
    for row in rows:
        models.list.select(row.id)
        await asyncio.sleep(0.05)
        assert [each for each in illegible(models) if "edge" not in each] == []
        detail = models.detail
        for widget in (detail.title, detail.memory, detail.note, detail.folder, detail.remove, detail.act):
            assert not widget.isVisibleTo(models) or within(widget, models), (row.id, widget)
        # Three rows are seen at once, and the detail is more than its name.
        height = models.list.sizeHintForRow(1)
        assert models.list.viewport().height() >= 3 * height * 0.9
        assert detail.height() >= 3 * height


async def sheet_of_a_project(window: MainWindow, size: Size) -> None:
    window.views.sidebar.new_project_requested.emit("")
    dialog = await sheet(window, ProjectSheet)
    await asyncio.sleep(0.05)
    assert illegible(dialog) == []
    assert dialog.width() <= size[0]
    assert dialog.height() <= size[1]
    for widget in (dialog.name, dialog.system_prompt, dialog.preset, dialog.model, dialog.save):
        assert within(widget, dialog), widget
    await outside_of_tasks(dialog.reject)


async def tables_window(window: MainWindow, size: Size) -> None:
    tables = await narrow(window, "tables", size)
    tables.show_tables(KNOWN, alive=True)
    await asyncio.sleep(0.05)
    view = tables.list
    assert view.viewport().height() >= 3 * view.sizeHintForRow(0) * 0.9
    across, header = view.horizontalScrollBar(), view.header()
    # All columns are seen: at once, or one end after the other.
    seen: set[str] = set()
    for at in (0, across.maximum()):
        across.setValue(at)
        await asyncio.sleep(0.02)
        with noted_words() as noted:
            view.grab()
        seen |= {word.text for word in noted if view.rect().contains(word.area.toAlignedRect())}
        left = [header.sectionViewportPosition(column) for column in range(header.count())]
        seen |= {
            column.title for column, x in zip(COLUMNS, left, strict=True) if 0 <= x < view.viewport().width()
        }
        assert [each for each in illegible(tables) if "edge" not in each] == []
    assert {column.title for column in COLUMNS} <= seen
    assert any(text.startswith("412,306 of") for text in seen)
    for widget in (tables.folder, tables.sum):
        assert within(widget, tables), widget
    if across.maximum():
        across.setValue(0)
        tables.activateWindow()
        view.setFocus()
        for _ in range(40):
            QTest.keyClick(view, Qt.Key.Key_Right)
        assert across.value() == across.maximum()


async def other_windows(window: MainWindow, size: Size) -> None:
    for name in ("library", "settings", "deleted", "lab", "help"):
        beside = await narrow(window, name, size)
        assert illegible(beside) == [], name
        beside.close()


async def first_page(window: MainWindow, size: Size) -> None:
    await asyncio.sleep(0.05)
    assert illegible(window.views.first_page) == []


async def race(window: MainWindow, size: Size) -> None:
    window.controller.racing.show()
    page = window.race_page
    page.prompt.question.set_value("Please write 40 words")
    page.start_button.click()
    racing = window.controller.racing
    await until(lambda: racing.race.stage is Stage.RUN, what="not recorded")
    await asyncio.sleep(0.05)
    assert illegible(page) == []
    for side in (page.plain, page.drafted):
        assert side.transcript.height() >= 5 * side.subtitle.height()
        assert within(side.clock, page)


async def lab_with_a_sweep(window: MainWindow, size: Size) -> None:
    lab = await narrow(window, "lab", size)
    lab.show_measurement(MEASURED, paused=False)
    await asyncio.sleep(0.05)
    assert sorted(each for each in illegible(lab) if "edge" not in each) == []
    for widget in (lab.list, lab.run_button, *lab.boxes.values()):
        assert within(widget, lab)


SCENES = (first_page, models_window, sheet_of_a_project, tables_window, other_windows, lab_with_a_sweep, race)


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("size", "zoom_pct"), [*SIZES, pytest.param((1920, 1080), 150, marks=pytest.mark.sweep)]
)
async def test_all_words_are_whole_and_in_reach(window: MainWindow, size: Size, zoom_pct: int) -> None:
    window.app_settings.set("look.zoom_pct", zoom_pct)
    window.resize(*size)
    for scene in SCENES:
        await scene(window, size)


@pytest.mark.parametrize("zoom_pct", [100, 150])
async def test_no_control_lies_on_another_in_the_smallest_windows(window: MainWindow, zoom_pct: int) -> None:
    window.app_settings.set("look.zoom_pct", zoom_pct)
    for name in NAMES:
        beside = window.windows.show(name)
        beside.resize(beside.minimumSize())
        await asyncio.sleep(0.05)
        boxes = {
            each: QRect(each.mapTo(beside, QPoint(0, 0)), each.size())
            for kind in (QPushButton, QLineEdit)
            for each in beside.findChildren(kind)
            if each.isVisibleTo(beside) and not each.visibleRegion().isEmpty()
        }
        for (one, box), (other, beyond) in combinations(boxes.items(), 2):
            apart = one.isAncestorOf(other) or other.isAncestorOf(one) or one.parent() != other.parent()
            assert apart or not box.intersects(beyond), (name, one.accessibleName(), other.accessibleName())


async def test_details_go_below_in_a_narrow_window_and_nothing_is_fixed_below_a_page_that_scrolls(
    window: MainWindow,
) -> None:
    """A footer would cut the row above it, at some size or other."""
    window.columns.show_inspector(True)
    shown = [window.views.side, *map(window.windows.show, NAMES)]
    await asyncio.sleep(0.05)
    pages = [(panel, page) for panel in shown for page in panel.findChildren(ScrollPage)]
    assert len(pages) >= 3
    for panel, page in pages:
        if page.isVisible():
            bottom = page.mapTo(panel, page.rect().bottomLeft()).y()
            assert bottom >= panel.height() - 2, (panel.accessibleName(), bottom, panel.height())

    window.windows.close_all()
    window.app_settings.set("look.zoom_pct", 150)
    models = await narrow(window, "models", (1024, 700))
    window.controller.models.on_list(MODELS)
    assert models.detail.y() > models.list.y()
    assert models.detail.width() == models.width()
    models.resize(1900, 700)
    await asyncio.sleep(0.05)
    assert models.detail.x() > models.list.x()
    assert models.detail.width() == 582
