"""The window on its desktop: awake in an answer, files from outside attached, quitting in mid-answer."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import QCoreApplication
from PySide6.QtGui import QFileOpenEvent
from PySide6.QtWidgets import QApplication

from app.features.about import AboutWindow
from app.launch.application import Application
from app.launch.host import Host
from app.launch.scenario import ask
from app.shell.window import MainWindow
from tests.app.launch.test_macos import Recorder
from tests.app.stage import gone, last, play, ready, until


class Named(Recorder):
    def begin(self, reason: str) -> int:
        assert reason == "Draftlight is answering"
        return super().begin("answering")


def test_awake_from_the_question_to_the_end_of_the_answer(qapp: Application) -> None:
    recorder = Named()

    async def scene(window: MainWindow) -> None:
        host = Host(qapp, window, recorder)
        await ready(window)
        assert not host.awake.held
        loads = len(recorder.begun)
        ask(window, "write 30 slowly")
        await until(lambda: len(last(window).tokens) > 3)
        assert host.awake.held
        await until(lambda: last(window).over)
        assert not host.awake.held
        assert len(recorder.begun) == loads + 1
        host.stop()

    play(qapp, scene)
    assert recorder.begun == recorder.ended


def test_a_file_from_the_desktop_is_attached(qapp: Application, tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_text("# Tides\nHigh at noon.\n")
    # Before the window is there: the double click that starts the app.
    QCoreApplication.sendEvent(qapp, QFileOpenEvent(str(path)))

    async def scene(window: MainWindow) -> None:
        host = Host(qapp, window)
        await until(lambda: len(window.views.composer.attachments) == 1)
        (attachment,) = window.views.composer.attachments
        assert attachment.name == "notes.md"
        assert "High at noon." in attachment.text
        host.stop()

    play(qapp, scene)


def test_quitting_in_mid_answer_leaves_nothing(qapp: Application) -> None:
    recorder = Named()
    pids: list[int] = []

    async def scene(window: MainWindow) -> None:
        host = Host(qapp, window, recorder)
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 3)
        assert window.worker.pid
        pids.append(window.worker.pid)
        QApplication.quit()
        await window.closed()
        assert not host.awake.held
        host.stop()

    play(qapp, scene)
    assert gone(pids[0])
    assert recorder.begun == recorder.ended


async def test_after_the_window_quitting_is_qts_own_again(window: MainWindow, qapp: Application) -> None:
    host = Host(qapp, window)
    assert qapp.on_quit is not None
    host.stop()
    assert qapp.on_quit is None


async def test_the_menu_opens_about(window: MainWindow, qapp: Application) -> None:
    host = Host(qapp, window)
    await ready(window)
    window.menu_actions["about"].trigger()
    await until(lambda: window.findChild(AboutWindow) is not None)
    about = window.findChild(AboutWindow)
    assert about is not None
    assert about.isVisible()
    about.close()
    host.stop()
