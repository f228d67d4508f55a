"""What somebody does who knows Draftlight, as a program of its own on an X display: `first`, and `again`.

Presets, stopping and continuing, messages that wait, versions, another model, a small window, a
worker that is killed, quitting in mid-answer. As `new_user`: the real worker, the starter model, real keys
and a real mouse.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from pathlib import Path

from PySide6.QtCore import QPoint
from PySide6.QtWidgets import QMenu

from app.launch.opening import open_window
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from core.models.places import download_folder
from core.models.starter import ensure_starter
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, last, open_section, ready, set_number

LONG = "Tell a long story about a harbour and its ferries."
LONGER = "Write all numbers from 1 to 200, one after the other."
NEXT = "Name one colour."
# Longer than anything here waits for, and soon over.
LONG_TOKENS, SHORT_TOKENS = 400, 24
ANOTHER = "walks/Another-Model"


def install_another_model() -> None:
    """As if it had been downloaded: the starter model once more, under another name."""
    folder = download_folder(ANOTHER)
    if not folder.exists():
        shutil.copytree(ensure_starter(), folder, copy_function=os.link)


async def switch_model(hands: Hands) -> None:
    """In the header's menu; the chat stays, and the next answer is the other model's."""
    window, controller = hands.window, hands.window.controller
    turns = controller.chats.open.turns

    def menu() -> QMenu | None:
        found = [each for each in window.findChildren(QMenu) if each.isVisible()]
        return found[0] if found else None

    await hands.click(window.views.header.model_button)
    await hands.until(lambda: menu() is not None, "the model menu")
    opened = menu()
    assert opened
    hands.step("the model menu")
    # Both go by the name that is in the model's own files: the other one is not marked.
    rows = [action for action in opened.actions() if action.isCheckable()]
    (other,) = (action for action in rows if not action.isChecked())
    await hands.choose(opened, other)
    await hands.until(lambda: controller.link.phase is not Phase.READY, "another model is being loaded")
    await ready(hands)
    loaded = controller.models.state.loaded
    assert loaded
    assert loaded.reference == ANOTHER
    assert controller.chats.open.turns == turns
    await ask(hands, NEXT)
    answer = await answered(hands)
    assert answer.finished
    await ready(hands)
    hands.step(f"another model answers: {answer.text!r}")


async def writing(hands: Hands, tokens: int) -> None:
    await hands.until(
        lambda: len(last(hands.window).tokens) > tokens, f"more than {tokens} tokens are written"
    )


async def continued(hands: Hands, before: int) -> None:
    """“Continue writing” under the last answer."""
    shown = hands.window.views.transcript.answer(hands.window.controller.chats.open.turns[-1].id)
    assert shown
    await hands.until(lambda: shown.footer.continue_button.isVisible(), "it can be continued")
    await hands.click(shown.footer.continue_button)
    # It may have been about to end.
    await hands.until(
        lambda: len(last(hands.window).tokens) > before, f"more is written than {before} tokens"
    )


async def first(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    await ready(hands)

    await hands.click(views.header.inspector_button)  # closed at the first start
    await hands.until(lambda: window.columns.arrangement.inspector_px > 0, "the settings panel is open")
    bar = views.inspector.presets
    await hands.click(bar.popup)
    await hands.until(lambda: bar.popup.view().isVisible(), "the presets are open")
    rows = bar.popup.findData("Free chat") - bar.popup.currentIndex()
    await hands.press(*["Down"] * rows, "Return")
    await hands.until(lambda: bar.popup.value == "Free chat", "the preset is taken")
    assert views.inspector.settings.sampling.temperature == 0.7
    hands.step("a preset is taken")
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", LONG_TOKENS)
    assert bar.popup.currentText() == "Custom"
    hands.step("and changed in this chat")

    await ask(hands, LONG)
    await writing(hands, 8)
    await hands.press("Escape")
    stopped = await answered(hands)
    assert stopped.status == "stopped"
    await ready(hands)
    await continued(hands, len(stopped.tokens))
    assert last(window).tokens[: len(stopped.tokens)] == stopped.tokens
    assert views.composer.edit.hasFocus()
    hands.step("stopped and continued")

    # It holds for what is sent from now on.
    await set_number(hands, "sampling.max_tokens", SHORT_TOKENS)
    await hands.click(views.composer.edit)
    await hands.type(NEXT)
    await hands.press("Return")
    await hands.until(lambda: views.queue_list.isVisible(), "the next message waits")
    hands.step("a message waits")
    await hands.press("Escape")
    await hands.until(lambda: views.queue_list.send_button.isVisible(), "it waits for the person")
    await hands.click(views.queue_list.send_button)
    await hands.until(lambda: len(controller.chats.open.turns) == 2, "it is sent")
    assert views.queue_list.isHidden()
    await hands.until(lambda: last(window).over, "it is answered")
    await ready(hands)
    hands.step("and was sent after the answer was stopped")

    for count in (2, 3):
        await hands.press("ctrl+r")
        await hands.until(lambda: not last(window).over, "it is regenerated")
        versions = controller.chats.open.turns[-1].versions
        assert len(versions) == count
        await hands.until(lambda: last(window).over, "it is answered")
        await ready(hands)
    texts = {version.answer.text for version in controller.chats.open.turns[-1].versions}
    assert len(texts) > 1, "three draws at temperature 0.7 with new seeds, and all the same"
    hands.step("regenerated twice")

    await switch_model(hands)
    window.resize(1024, 700)
    await hands.until(lambda: window.columns.arrangement.inspector_px == 0, "no room for the panel")
    await hands.click(views.header.inspector_button)
    await hands.until(lambda: window.columns.arrangement.inspector_over, "the panel lies over the chat")
    await hands.press("Escape")
    await hands.until(lambda: window.columns.arrangement.inspector_px == 0, "Escape closes it")
    hands.step("a small window")
    await hands.click(views.header.inspector_button)
    await hands.until(lambda: window.columns.arrangement.inspector_over, "and again")
    hands.step("the panel over the chat in a small window")
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", LONG_TOKENS)
    await hands.click(window.columns, QPoint(200, 400))
    await hands.until(lambda: window.columns.arrangement.inspector_px == 0, "so does a click beside it")
    assert views.composer.edit.hasFocus()

    await ask(hands, LONG)
    await writing(hands, 8)
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await hands.until(lambda: controller.link.phase is Phase.DEAD, "the worker is gone")
    cut_off = last(window)
    hands.step("the worker is killed")
    await hands.click(views.banner.remedy_button)
    await ready(hands)
    await continued(hands, len(cut_off.tokens))
    assert last(window).tokens[: len(cut_off.tokens)] == cut_off.tokens
    hands.step("restarted, and the answer continued")
    if not last(window).over:
        await hands.press("Escape")
    await answered(hands)
    await ready(hands)
    await ask(hands, LONGER)
    await writing(hands, 8)
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def again(window: MainWindow) -> int:
    hands, views = Hands(window), window.views
    cut_off = last(window)
    assert cut_off.status == "cut_off"
    assert cut_off.note == "Draftlight was closed before this answer was finished."
    assert len(window.controller.chats.open.turns[1].versions) == 3
    assert views.inspector.presets.popup.currentText() == "Custom"
    hands.step("opened again after quitting in mid-answer")
    await ready(hands)
    assert window.controller.models.state.info
    await continued(hands, len(cut_off.tokens))
    assert last(window).tokens[: len(cut_off.tokens)] == cut_off.tokens
    if not last(window).over:
        await hands.press("Escape")
    await answered(hands)
    hands.step("and continued")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


if __name__ == "__main__":
    install_another_model()
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))
