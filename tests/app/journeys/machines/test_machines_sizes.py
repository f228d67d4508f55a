"""The machines' window in every size: all words whole and in reach, all colours legible, whatever it says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtWidgets import QApplication, QScrollArea

from app.features.machines.rows import MACHINE_COLUMNS
from app.features.machines.window import MachinesWindow
from app.shell.window import MainWindow
from core.events import CheckMachines, MachineFigures, MachinesChecked, MachineSeen, MachineUse, ModelInfo
from core.settings.cluster import Cluster, Machine
from tests.app.journeys.sizes.test_narrow_windows import LOADED, MODELS, SIZES, narrow, within
from tests.app.journeys.test_contrast import failing, scenes
from tests.app.legible import illegible
from tests.app.painted import noted_words
from tests.processes import set_home

GB = 2**30
CLUSTER = Cluster(
    tuple(Machine(name, f"10.0.0.{rank}") for rank, name in enumerate(("studio", "mini", "attic"), 2))
)
_SEEN = MachineSeen(
    "desk", "", reached=True, chip="Apple M4 Max", memory_bytes=128 * GB, limit_bytes=96 * GB,
    need_bytes=11 * GB, version="0.1.0", mlx="0.32.4", mlx_lm="0.32.2", backends=("ring", "jaccl"),
)  # fmt: skip
_AWAY = "attic (10.0.0.4:8318) cannot be reached: Connection refused."
_HINT = "Check that it is on this network and runs draftlight follow."
_OTHER = "mini has mlx 0.32.2, and desk has mlx 0.32.4: they must be the same."
MISSING = MachinesChecked(
    "k",
    (
        _SEEN,
        replace(_SEEN, name="studio", address="10.0.0.2"),
        replace(_SEEN, name="mini", address="10.0.0.3", problem=_OTHER),
        MachineSeen("attic", "10.0.0.4", _AWAY, _HINT),
    ),
    False,
    problems=("Qwen3 32B cannot run over 4 machines: it has 9 attention heads.",),
)
INFO: ModelInfo = replace(LOADED, machines=("desk", "studio", "mini", "attic"))


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    set_home(monkeypatch, tmp_path / "home")


def show_missing(window: MainWindow, beside: MachinesWindow) -> None:
    """Two machines will not do, and the chosen one is one of them."""
    models = window.controller.models
    window.controller.home.preferences.change(cluster=CLUSTER)
    models.on_event(MODELS)
    beside.models.select("owner/Qwen3 32B")
    models._set(replace(models.state, check=CheckMachines("k", CLUSTER, "owner/Qwen3 32B"), checked=MISSING))
    beside.machines.select("attic")


def show_working(window: MainWindow, beside: MachinesWindow) -> None:
    """All four at work."""
    models = window.controller.models
    show_missing(window, beside)
    use = tuple(MachineUse(name, 11 * GB, 96 * GB, 0.041) for name in INFO.machines)
    models._set(replace(models.state, info=INFO))
    models.on_event(MachineFigures(use))
    beside.models.select("owner/Qwen3 14B")


@pytest.mark.parametrize(("size", "zoom_pct"), SIZES)
@pytest.mark.parametrize("fill", [show_missing, show_working])
async def test_nothing_is_cut(
    window: MainWindow,
    size: tuple[int, int],
    zoom_pct: int,
    fill: Callable[[MainWindow, MachinesWindow], None],
) -> None:
    beside = await narrow(window, "machines", size, zoom_pct)
    assert isinstance(beside, MachinesWindow)
    fill(window, beside)
    await asyncio.sleep(0.05)
    across = beside.machines.view.horizontalScrollBar()
    seen: set[str] = set()
    for at in (0, across.maximum() // 2, across.maximum()):
        across.setValue(at)
        await asyncio.sleep(0.02)
        with noted_words() as noted:
            beside.machines.grab()
        box = beside.machines.rect()
        seen |= {word.text for word in noted if box.contains(word.area.toAlignedRect())}
        assert [each for each in illegible(beside) if "edge" not in each] == []
    assert {column.title for column in MACHINE_COLUMNS} <= seen
    assert {"studio", "Apple M4 Max", "96.0 of 128 GB"} <= seen
    panel = beside.panel
    widgets = [
        beside.new,
        beside.check,
        beside.run,
        beside.alone,
        panel.remove,
        panel.problem,
        panel.command,
    ]
    widgets += [panel.field("cluster.deadline_s"), panel.field("machine.rdma"), beside._finding]
    for widget in widgets:
        assert not widget.isVisibleTo(beside) or within(widget, beside), widget
    # Two rows of each list are seen at once, and two lines of what is missing.
    row = beside.machines.view.sizeHintForRow(0)
    for view in (beside.machines.view, beside.models.view):
        assert view.viewport().height() >= 2 * row
    area = beside._finding.parentWidget().parentWidget().parentWidget()
    assert isinstance(area, QScrollArea)
    assert area.viewport().height() >= 40 * zoom_pct / 100


@pytest.mark.parametrize("fill", [show_missing, show_working])
def test_all_is_legible(qapp: QApplication, fill: Callable[[MainWindow, MachinesWindow], None]) -> None:
    def scene(new: bool) -> Callable[[MainWindow], Awaitable[list[str]]]:
        async def shown(window: MainWindow) -> list[str]:
            beside = window.windows.show("machines")
            assert isinstance(beside, MachinesWindow)
            fill(window, beside)
            if new:
                beside.new.click()
            return await failing(window, beside)

        return shown

    scenes(qapp, scene(False), scene(True))
