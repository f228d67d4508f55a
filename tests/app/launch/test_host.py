"""The window on its desktop: awake in an answer, files from outside attached, quitting in mid-answer."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from app.features.about import AboutWindow
from app.launch.application import Application
from app.launch.host import Host
from app.launch.instance import Instance
from app.shell.window import MainWindow
from tests.app.launch.test_macos import Recorder
from tests.app.stage import Stage, answering, gone, last, ready, until


class Named(Recorder):
    def begin(self, reason: str) -> int:
        assert reason == "Draftlight is answering"
        return super().begin("answering")


async def test_awake_from_the_question_to_the_end_of_the_answer(stage: Stage, qapp: Application) -> None:
    recorder = Named()

    window = await stage.open()
    host = Host(qapp, window, recorder)
    await ready(window)
    assert not host.awake.held
    loads = len(recorder.begun)
    await answering(window, "write 30 slowly")
    assert host.awake.held
    await until(lambda: last(window).over)
    assert not host.awake.held
    assert len(recorder.begun) == loads + 1
    host.stop()
    await stage.close()
    assert recorder.begun == recorder.ended


async def test_a_file_from_the_desktop_is_attached(stage: Stage, qapp: Application, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Tides\nHigh at noon.\n")
    # Before the window is there: the double click that starts the app.
    QCoreApplication.sendEvent(qapp, QFileOpenEvent(str(path)))

    window = await stage.open()
    host = Host(qapp, window)
    await until(lambda: len(window.views.composer.attachments) == 1)
    (attachment,) = window.views.composer.attachments
    assert attachment.name == "notes.md"
    assert "High at noon." in attachment.text
    host.stop()


async def test_quitting_in_mid_answer_leaves_nothing(stage: Stage, qapp: Application) -> None:
    recorder = Named()
    pids: list[int] = []

    window = await stage.open()
    host = Host(qapp, window, recorder)
    await answering(window)
    assert window.worker.pid
    pids.append(window.worker.pid)
    QApplication.quit()
    await window.closed()
    assert not host.awake.held
    host.stop()
    await stage.close()
    assert gone(pids[0])
    assert recorder.begun == recorder.ended


async def test_a_start_while_the_window_closes_is_told_so(
    stage: Stage, qapp: Application, tmp_path: Path
) -> None:
    window, instance = await stage.ready(), Instance(tmp_path)
    assert instance.claim()
    host = Host(qapp, window, instance=instance)
    window.close()
    await window.closed()
    script = (
        "import sys; from pathlib import Path; from app.launch.instance import Instance;"
        "assert Instance(Path(sys.argv[1])).hand_over(()) is None"
    )
    second = await asyncio.create_subprocess_exec(sys.executable, "-c", script, str(tmp_path))
    assert await second.wait() == 0
    host.stop()
    instance.release()


async def test_after_the_window_quitting_is_qts_own_again(window: MainWindow, qapp: Application) -> None:
    host = Host(qapp, window)
    assert qapp.on_quit is not None
    host.stop()
    assert qapp.on_quit is None


async def test_the_menu_opens_about(window: MainWindow, qapp: Application) -> None:
    host = Host(qapp, window)
    window.menu_actions["about"].trigger()
    await until(lambda: window.findChild(AboutWindow) is not None)
    about = window.findChild(AboutWindow)
    assert about.isVisible()
    about.close()
    host.stop()
