"""Faults of the design's table, driven for real: the worker that people have, damaged as it happens.

Where each row of “What people see when things go wrong” is tried in a window:

    worker killed                   test_window (kill -9, dies by itself, while loading)
    worker crashes                  test_figures (SIGSEGV)
    worker hangs                    here
    model folder bad, too big       with the models, test_window
    prompt longer than the context  test_composing
    download cut off                with the models
    table corrupt or foreign        here (cut, flipped), core/tables/test_memory (each kind of damage)
    disk full on save               here (tables), test_chats_kept (chats)
    chat database corrupt           test_chats_kept
    unknown drafter, bad setting    core/events/test_events
    bad JSON on the wire            core/worker/test_worker (to the worker), test_window (from the worker)
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.shell.window import MainWindow
from core.settings import Settings, assign_all
from core.tables.files import PREVIOUS, decode_table
from core.worker.client import worker_command
from tests.app.stage import Stage, answering, asked, click, gone, last, play, ready, until
from tests.processes import set_home

_LOAD_S = 60.0
# Programs that run after this can write files of at most so many bytes: the disk is full for them.
# The worker as `start_child.py` runs it, limited once OpenBLAS is loaded: that writes to a file in memory.
_FULL_DISK = (
    "import resource, runpy, sys; from core.models.blas import load_openblas; load_openblas();"
    "resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64)); del sys.argv[0];"
    "runpy.run_path(sys.argv[0], run_name='__main__')"
)
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no such signals")


@pytest.fixture(scope="module")
def taught(qapp: QApplication, toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("taught")

    async def scene(window: MainWindow) -> None:
        await ready(window)
        await teach(window)

    with pytest.MonkeyPatch.context() as patch:
        set_home(patch, home)
        play(qapp, scene, command=worker_command(), model=str(toy_folder))
    return home / "data" / "tables"


@pytest.fixture
def tables(taught: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the worker keeps its tables in this test, with a table."""
    set_home(monkeypatch, tmp_path / "home")
    shutil.copytree(taught, tmp_path / "home" / "data" / "tables")
    return tmp_path / "home" / "data" / "tables"


def with_settings(window: MainWindow, **values: object) -> None:
    pairs = [(key.replace("__", "."), value) for key, value in values.items()]
    window.views.inspector.set_settings(assign_all(Settings(), pairs))


async def teach(window: MainWindow) -> None:
    with_settings(window, drafting__drafter="ngram-mod", sampling__max_tokens=48)
    await asked(window, "the tide waits for nobody and the pilot waits for the tide " * 3)
    assert last(window).status == "finished"


async def test_a_worker_that_hangs(stage: Stage, toy_folder: Path) -> None:
    """Stopped by the system, as one that waits for a dead disk is: it lives, and says nothing."""

    window = await stage.ready(command=worker_command(), model=str(toy_folder), silence_s=3.0)
    with_settings(window, sampling__max_tokens=4_000)
    await answering(window, "go on")
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGSTOP)
    await until(lambda: window.views.banner.trouble is not None, timeout_s=20)
    trouble = window.views.banner.trouble
    assert trouble.title == "The engine does not respond."
    assert "the chat is kept" in trouble.text
    written = len(last(window).tokens)
    assert written > 5
    await click(window.views.banner.remedy_button)
    await ready(window)
    assert window.worker.pid != pid
    await until(lambda: gone(pid))
    assert len(window.controller.chats.open.turns[0].answer.tokens) >= written
    assert window.views.banner.isHidden()


@pytest.mark.sweep
async def test_a_full_disk_keeps_the_table_that_was_saved(
    stage: Stage, toy_folder: Path, tables: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    saved = {path.name: path.read_bytes() for path in tables.iterdir() if path.suffix == ".safetensors"}
    assert saved
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    python, isolated, *command = worker_command()
    assert isolated == "-P"
    narrow = [python, "-c", _FULL_DISK, *command]
    window = await stage.ready(command=narrow, model=str(toy_folder))
    await teach(window)
    await until(lambda: window.views.banner.trouble is not None, timeout_s=20)
    trouble = window.views.banner.trouble
    assert "File too large" in f"{trouble.title} {trouble.text}"
    # The answer and the session are as before.
    await teach(window)
    await stage.close()
    assert {name: (tables / name).read_bytes() for name in saved} == saved


async def test_a_damaged_table_is_named_set_aside_and_begun_afresh(
    stage: Stage, toy_folder: Path, tables: Path
) -> None:
    (file,) = tables.glob("*-n*.safetensors")
    Path(f"{file}{PREVIOUS}").unlink(missing_ok=True)
    good = file.read_bytes()
    middle = len(good) // 2
    bad = good[:middle] + bytes([good[middle] ^ 1]) + good[middle + 1 :]
    file.write_bytes(bad)

    window = await stage.ready(command=worker_command(), model=str(toy_folder))
    banner = window.views.banner
    # WorkerEvent while the model was loading, and said when it is ready.
    trouble = banner.trouble
    assert not banner.isHidden()
    assert "cannot be used" in trouble.title
    assert f"{file.name} is damaged" in trouble.text
    assert "set aside as" in trouble.text
    assert "A new table takes its place." in trouble.text
    await click(banner.remedy_button)
    shown = window.windows.find("tables")
    assert banner.isHidden()
    await until(lambda: not shown.set_aside.isHidden())
    await teach(window)
    await stage.close()
    (aside,) = tables.glob(f"{file.name}.refused-*")
    assert aside.read_bytes() == bad
    assert decode_table(file.read_bytes()).header.figures.used > 0
