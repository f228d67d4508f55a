"""The Tables window over the real worker: what it lists is so, and what is pressed happens on disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import asdict
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices
from PySide6.QtTest import QTest

from app.controls.sheets import Question
from app.features.tables import strings
from app.features.tables.window import TablesWindow
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.events import LearnedTable, TableInfo
from core.settings import assign_all
from core.system.paths import tables_dir
from core.tables.files import PREVIOUS, TableFolder, decode_table
from core.worker.client import worker_command
from tests.app.stage import Stage, choose_in_sheet, click, kill, press, ready, until
from tests.processes import set_home

KEYS = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Tables of this test alone; the worker inherits it."""
    set_home(monkeypatch, tmp_path / "home")
    return tmp_path / "home"


async def open_tables(window: MainWindow) -> TablesWindow:
    await press(window, Qt.Key.Key_T, KEYS)
    shown = window.windows.find("tables")
    await until(lambda: bool(shown.list.rows), what="no list came")
    return shown


async def teach(window: MainWindow, **values: object) -> None:
    wanted = {"drafting.drafter": "ngram-mod", "gate.mode": "always", "sampling.max_tokens": 60, **values}
    inspector = window.views.inspector
    inspector.set_settings(assign_all(inspector.settings, list(wanted.items())))
    ask(window, "Say the same thing again and again, please.")
    await until(lambda: window.controller.link.phase is not Phase.READY)
    await ready(window)


def taught(tables: TablesWindow) -> TableInfo:
    """The only table that chats teach, the first of the list."""
    tables.list.select(tables.list.rows[0].id)
    assert isinstance(tables.selected, TableInfo)
    assert tables.selected.loaded
    return tables.selected


def files(suffix: str = ".safetensors") -> list[Path]:
    return [path for path in sorted(tables_dir().glob(f"*{suffix}")) if "-n" in path.name]


async def answer(tables: TablesWindow, value: str) -> Question:
    """Press one of the answers of the question that is asked; empty is Cancel."""
    (question,) = tables.findChildren(Question)
    await click(question.answers[value] if value else question.cancel)
    return question


async def told(tables: TablesWindow, words: str) -> None:
    await until(lambda: words in tables.told.text, what=f"not told: {tables.told.text}")


async def test_what_is_taught_is_listed_saved_taken_along_reset_and_loaded_again(
    stage: Stage, toy_folder: Path, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "copy.safetensors"

    window = await stage.ready(command=worker_command(), model=str(toy_folder), folder=home / "chats")
    tables = await open_tables(window)
    assert {row.subtitle for row in tables.list.rows} == {strings.SHIPPED}
    assert isinstance(tables.selected, LearnedTable)
    assert not tables.reset.isEnabled()
    await teach(window)
    await until(lambda: len(tables.list.rows) == 3, what="the new table is not listed")
    tables.list.select(tables.list.rows[0].id)
    info = taught(tables)
    row = tables.list.rows[0]
    assert row.title == "toy"
    assert row.entries.startswith(f"{info.figures.used:,} of")
    assert info.figures.used > 20
    assert info.figures.lookups > 0
    assert files() == []
    assert not tables.load.isEnabled()
    assert tables.load.toolTip() == strings.NOTHING_SAVED

    await click(tables.save)
    await told(tables, f"Saved {info.figures.used:,} entries of toy.")
    (file,) = files()
    saved = decode_table(file.read_bytes())
    assert asdict(saved.header.figures) == asdict(taught(tables).figures)
    await until(lambda: tables.list.rows[0].size != "–")
    assert taught(tables).size_bytes == file.stat().st_size
    assert "saved just now" in tables.list.rows[0].tip
    await teach(window)
    await until(lambda: "since" in tables.list.rows[0].tip, what="what is not saved is not said")

    await click(tables.export)
    await choose_in_sheet(tables, out)
    await told(tables, f"to {out}")
    exported = decode_table(out.read_bytes()).header.figures.used
    assert exported == taught(tables).figures.used > saved.header.figures.used

    await click(tables.reset)
    await answer(tables, "")
    assert taught(tables).figures.used == exported
    assert files() == [file]
    await click(tables.reset)
    (question,) = tables.findChildren(Question)
    assert f"{exported:,} entries will be removed" in question.informativeText()
    assert "No backup is kept" in question.informativeText()
    await answer(tables, "reset")
    await told(tables, f"Reset toy: {exported:,} entries removed.")
    await until(lambda: ("toy", True) not in [(row.title, row.entries[0] != "0") for row in tables.list.rows])
    assert files() == files(PREVIOUS) == []

    await click(tables.import_)
    await choose_in_sheet(tables, out)
    await told(tables, f"Imported {exported:,} entries of toy.")
    await until(lambda: tables.list.rows[0].entries.startswith(f"{exported:,} of"))
    assert len(files()) == 1

    # Loading again drops what was not saved, and can go back.
    await teach(window, **{"sampling.temperature": 1.5, "sampling.seed": 7})
    await until(lambda: taught(tables).figures.used > exported)
    await click(tables.load)
    await answer(tables, "saved")
    await told(tables, f"Loaded {exported:,} entries of toy.")
    await until(lambda: taught(tables).figures.used == exported)
    await teach(window, **{"sampling.temperature": 1.5, "sampling.seed": 8})
    await click(tables.save)
    await told(tables, "Saved")
    await until(lambda: taught(tables).has_previous and not taught(tables).unsaved)
    await click(tables.load)
    await answer(tables, "previous")
    await told(tables, f"Loaded {exported:,} entries of toy.")
    assert decode_table(files()[0].read_bytes()).header.figures.used == exported
    await click(tables.load)
    window.controller.models.unload()
    await until(lambda: window.controller.link.info is None)
    await answer(tables, "saved")
    await told(tables, strings.NO_MODEL)


async def test_files_that_cannot_be_used_a_dead_worker_and_another_draftlight(
    stage: Stage, toy_folder: Path, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    bad = tmp_path / "bad.safetensors"
    bad.write_bytes(b"\0" * 100)
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()) is None)
    tables_dir().mkdir(parents=True)
    (tables_dir() / f"{'ab' * 8}-n16-4096.safetensors").write_bytes(b"no table at all")

    window = await stage.ready(command=worker_command(), model=str(toy_folder), folder=home / "chats")
    tables = await open_tables(window)
    await click(tables.folder)
    assert opened == [str(tables_dir())]
    await click(tables.import_)
    await choose_in_sheet(tables, bad)
    await told(tables, "bad.safetensors")
    assert tables.told.is_bad
    assert bad.exists()
    assert tables.told.close_button
    await click(tables.told.close_button)
    assert not tables.told.isVisible()
    reached = []
    tables.activateWindow()
    tables.list.setFocus()
    for _ in range(20):
        widget = tables.focusWidget()
        if widget in reached:
            break
        reached.append(widget)
        assert widget.accessibleName(), widget
        QTest.keyClick(widget, Qt.Key.Key_Tab)
    assert {tables.list, tables.import_, tables.folder} <= set(reached)
    tables.close()
    assert not tables.isVisible()
    await press(window, Qt.Key.Key_T, KEYS)
    assert window.windows.find("tables") is tables
    assert tables.isVisible()
    await click(tables.import_)
    await kill(window)
    await choose_in_sheet(tables, bad)
    await told(tables, "The worker is not running.")
    assert not tables.import_.isEnabled()
    assert tables.import_.toolTip() == strings.WORKER_GONE
    window.controller.restart()
    await ready(window)
    await until(lambda: tables.import_.isEnabled() and len(tables.list.rows) == 2)

    # What another Draftlight holds can be exported only.
    other = TableFolder(tables_dir())
    assert "1 file could not be used" in tables.set_aside.text
    assert "damaged" in tables.set_aside.text
    assert tables.set_aside.is_bad
    await teach(window)
    await until(lambda: len(tables.list.rows) == 3)
    tables.list.select(tables.list.rows[0].id)
    assert not tables.read_only.text
    assert tables.reset.isEnabled()
    family = taught(tables).family
    window.controller.restart()
    await until(lambda: window.controller.link.phase is Phase.STARTING)
    await until(lambda: other.lock(family) == "")
    await ready(window)
    await teach(window)
    await until(lambda: "another Draftlight" in tables.read_only.text)
    tables.list.select(tables.list.rows[0].id)
    for button in (tables.save, tables.reset):
        assert not button.isEnabled()
        assert "another Draftlight" in button.toolTip()
    assert tables.export.isEnabled()
    other.unlock(family)
