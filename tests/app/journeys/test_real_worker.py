"""The window over the real worker and the starter model: killed with -9, restarted, stopped, refused."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.settings import Settings, assign
from core.worker.client import worker_command
from tests.app.stage import last, play, ready, shown, until


def with_max_tokens(window: MainWindow, tokens: int) -> None:
    inspector = window.views.inspector
    inspector.set_settings(assign(Settings(), "sampling.max_tokens", tokens))


@pytest.mark.sweep
def test_kill_nine_in_mid_answer(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window, 120)
        with_max_tokens(window, 2_000)
        ask(window, "Tell a long story about a harbour.")
        await until(lambda: len(last(window).tokens) > 5, timeout_s=120)
        pid = window.worker.pid
        assert pid
        os.kill(pid, signal.SIGKILL)
        await until(lambda: window.controller.link.phase is Phase.DEAD)
        partial = last(window)
        assert partial.status == "cut_off"
        assert shown(window) == partial.text
        assert window.views.banner.trouble
        assert "SIGKILL" in window.views.banner.trouble.text
        window.controller.restart()
        await ready(window, 120)
        with_max_tokens(window, 20)
        ask(window, "Say hello.")
        await ready(window, 120)
        second = last(window)
        assert second.finished
        assert shown(window) == second.text
        # The partial answer is part of what was read.
        first = window.controller.chats.open.turns[0]
        messages = window.controller.chats.open.messages_for_request()
        assert [message.content for message in messages[:2]] == [first.user.content, partial.text]
        assert window.controller.chats.open.context_used_tokens == second.finished.stats.context_used_tokens

    play(qapp, scene, command=worker_command())


@pytest.mark.sweep
def test_stop_and_a_prompt_that_is_too_long(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window, 120)
        info = window.controller.link.info
        assert info
        with_max_tokens(window, 2_000)
        ask(window, "Tell a long story about a harbour.")
        await until(lambda: len(last(window).tokens) > 5, timeout_s=120)
        window.controller.asking.stop()
        await ready(window, 120)
        stopped = last(window)
        assert stopped.status == "stopped"
        assert stopped.finished
        assert stopped.finished.stats.tokens == len(stopped.tokens)
        window.controller.chat.start()
        long = "q z " * info.context_tokens
        window.views.inspector.set_settings(assign(Settings(), "prefill.mode", "off"))
        ask(window, long)
        await ready(window, 120)
        assert window.controller.chats.open.turns == ()
        assert window.views.composer.text == long.strip()
        assert "over this model’s limit" in window.views.composer.notice.text
        assert window.views.banner.isHidden()

    play(qapp, scene, command=worker_command())


def test_a_model_that_is_not_there(qapp: QApplication, tmp_path: Path) -> None:
    async def scene(window: MainWindow) -> None:
        await until(lambda: window.controller.link.phase is Phase.NO_MODEL, timeout_s=60)
        assert window.views.banner.trouble
        assert window.views.banner.trouble.title == "The model could not be loaded."
        assert window.views.banner.remedy_button.text() == "Try Again"
        assert window.views.composer.state == "blocked"

    play(qapp, scene, command=worker_command(), model=str(tmp_path / "nothing-here"))
