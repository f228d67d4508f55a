"""What somebody does who knows Draftlight, as a program of its own on an X display: `first`, and `again`.

Stopping and continuing, messages that wait, presets, versions side by side, a worker that is killed, quitting
in mid-answer, a small window. As `new_user`: the real worker, the starter model, real keys and a real mouse.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu

from app.launch.opening import open_window
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from app.windows.compare.window import CompareWindow
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, last, ready, step

LONG = "Tell a long story about a harbour and its ferries."
NEXT = "Name one colour."


async def writing(hands: Hands, tokens: int) -> None:
    await hands.until(
        lambda: len(last(hands.window).tokens) > tokens, f"more than {tokens} tokens are written"
    )


async def continued(hands: Hands, before: int) -> None:
    """“Continue writing” under the last answer."""
    shown = hands.window.views.transcript.answer(hands.window.controller.chats.open.turns[-1].id)
    assert shown
    await hands.until(lambda: shown.footer.more_button.isVisible(), "it can be continued")
    await hands.click(shown.footer.more_button)
    await writing(hands, before + 4)


async def first(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    await ready(hands)

    bar = views.inspector.presets
    await hands.click(bar.popup)
    rows = bar.popup.findData("Free chat") - bar.popup.currentIndex()
    await hands.press(*["Down"] * rows, "Return")
    await hands.until(lambda: bar.popup.value == "Free chat", "the preset is taken")
    assert views.inspector.settings.sampling.temperature == 0.7
    step("a preset")

    await ask(hands, LONG)
    await writing(hands, 8)
    await hands.press("Escape")
    stopped = await answered(hands)
    assert stopped.status == "stopped"
    await ready(hands)
    await continued(hands, len(stopped.tokens))
    assert last(window).tokens[: len(stopped.tokens)] == stopped.tokens
    step("stopped and continued")

    assert views.composer.edit.hasFocus()
    await hands.type(NEXT)
    await hands.press("Return")
    await hands.until(lambda: views.queue_bar.isVisible(), "the next message waits")
    await hands.press("Escape")
    await hands.until(lambda: len(controller.chats.open.turns) == 2, "it is sent")
    assert views.queue_bar.isHidden()
    await hands.until(lambda: last(window).over, "it is answered", 150.0)
    await ready(hands)
    step("a message that waited")

    for count in (2, 3):
        await hands.press("ctrl+r")
        await hands.until(lambda: not last(window).over, "it is regenerated")
        versions = controller.chats.open.turns[-1].versions
        assert len(versions) == count
        await hands.until(lambda: last(window).over, "it is answered", 150.0)
        await ready(hands)
    texts = {version.answer.text for version in controller.chats.open.turns[-1].versions}
    assert len(texts) > 1, "three draws at temperature 0.7 with new seeds, and all the same"
    shown = views.transcript.answer(controller.chats.open.turns[-1].id)
    assert shown
    await hands.click(shown.footer.compare_button)
    await hands.until(lambda: window.windows.find("compare") is not None, "two versions side by side")
    compare = window.windows.find("compare")
    assert isinstance(compare, CompareWindow)
    assert compare.texts[1].toPlainText() == last(window).text
    compare.close()
    step("regenerated twice and compared")

    await hands.click(views.header.model_button)
    await hands.until(lambda: bool(window.findChildren(QMenu)), "the model menu")
    await hands.press("Escape")
    window.resize(1024, 700)
    await hands.until(lambda: window.columns.arrangement.inspector_px == 0, "no room for the panel")
    await hands.click(views.header.inspector_button)
    await hands.until(lambda: window.columns.arrangement.inspector_over, "the panel lies over the chat")
    await hands.press("Escape")
    await hands.until(lambda: window.columns.arrangement.inspector_px == 0, "Escape closes it")
    await hands.click(views.header.inspector_button)
    await hands.until(lambda: window.columns.arrangement.inspector_over, "and again")
    await hands.click(window.columns, QPoint(200, 400))
    await hands.until(lambda: window.columns.arrangement.inspector_px == 0, "so does a click beside it")
    assert views.composer.edit.hasFocus()
    step("a small window")

    await ask(hands, LONG)
    await writing(hands, 8)
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await hands.until(lambda: controller.link.phase is Phase.DEAD, "the worker is gone")
    cut_off = last(window)
    await hands.click(views.banner.remedy_button)
    await ready(hands)
    await continued(hands, len(cut_off.tokens))
    assert last(window).tokens[: len(cut_off.tokens)] == cut_off.tokens
    step("the worker killed, the answer continued")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def again(window: MainWindow) -> int:
    hands, views = Hands(window), window.views
    cut_off = last(window)
    assert cut_off.status == "cut_off"
    assert cut_off.note == "Draftlight was closed before this answer was finished."
    assert len(window.controller.chats.open.turns[1].versions) == 3
    assert views.inspector.presets.popup.value == "Free chat"
    await ready(hands)
    await continued(hands, len(cut_off.tokens))
    assert last(window).tokens[: len(cut_off.tokens)] == cut_off.tokens
    await hands.press("Escape")
    await answered(hands)
    step("quit in mid-answer, started, continued")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


if __name__ == "__main__":
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))
