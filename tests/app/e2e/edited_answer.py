"""An answer that a person edits and the model continues, as a program on an X display: `first`, and `again`.

As `new_user`: the real worker, the starter model, real keys and a real mouse.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtWidgets import QMenu

from app.chat.answer import AnswerView
from app.launch.opening import open_window
from app.shell.window import MainWindow
from core.events import TYPED
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, last, open_section, ready, set_number

QUESTION = "Name three colours of the sky."
TYPED_TEXT = " And a fourth colour is violet, because"


def view(window: MainWindow) -> AnswerView:
    found = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert found is not None
    return found


async def first(window: MainWindow) -> int:
    hands, controller = Hands(window), window.controller
    await ready(hands)
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 32)
    await ask(hands, QUESTION)
    before = await answered(hands)
    await ready(hands)

    await hands.press("ctrl+shift+e")
    await hands.until(lambda: view(window).editor is not None, "the answer is edited")
    await hands.press("Escape")
    await hands.until(lambda: view(window).editor is None, "Escape closes an editor without changes")
    await hands.click(view(window).footer.edit_button)
    await hands.until(lambda: view(window).editor is not None, "the answer is edited again")
    await hands.press("ctrl+End")
    await hands.type(TYPED_TEXT)
    hands.step("an answer in its editor")
    await hands.press("ctrl+Return")
    await hands.until(lambda: last(window).is_edited, "the edit is saved")
    assert last(window).text == before.text + TYPED_TEXT
    (turn,) = controller.chats.open.turns
    assert turn.versions[0].answer == before
    assert view(window).footer.stats.text == "Edited"
    hands.step(f"edited: {last(window).text!r}")
    await hands.press("ctrl+z")
    await hands.until(lambda: last(window) == before, "the edit is undone")
    await hands.press("ctrl+shift+e", "ctrl+End")
    await hands.type(TYPED_TEXT)
    editor = view(window).editor
    assert editor is not None
    await hands.click(editor.save_button)
    await hands.until(lambda: last(window).is_edited, "the edit is saved again")

    await hands.click(view(window).footer.continue_button)
    await hands.until(lambda: last(window).over and last(window).status != "edited", "it is continued")
    continued = last(window)
    assert continued.text.startswith(before.text + TYPED_TEXT)
    assert len(continued.text) > len(before.text + TYPED_TEXT)
    assert [token.id for token in continued.tokens].count(TYPED) == 1
    await ready(hands)
    hands.step(f"continued: {continued.text!r}")

    # From a word of the continued answer, by the keyboard: at temperature 0 it is written again.
    body = view(window).body
    body.setFocus()
    await hands.press("Home", "Right", "Right")
    await hands.press("Menu")
    await hands.until(lambda: any(each.isVisible() for each in body.findChildren(QMenu)), "its menu opens")
    (menu,) = (each for each in body.findChildren(QMenu) if each.isVisible())
    (action,) = (each for each in menu.actions() if each.text() == "Continue from Here")
    await hands.choose(menu, action)
    await hands.until(lambda: len(controller.chats.open.turns[-1].versions) == 3, "a version is cut there")
    await hands.until(lambda: last(window).over, "and continued")
    assert last(window).text.startswith("".join(token.text for token in before.tokens[:3]))
    assert not last(window).is_edited
    hands.step(f"continued from a word: {last(window).text!r}")
    await ready(hands)
    view(window).footer.versions.setFocus()
    await hands.press("Left")
    await hands.until(lambda: last(window) == continued, "the version before is shown")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def again(window: MainWindow) -> int:
    hands = Hands(window)
    assert last(window).is_edited
    assert len(window.controller.chats.open.turns[-1].versions) == 3
    assert "Edited" in view(window).footer.stats.text
    await ready(hands)
    await ask(hands, "Which was the fourth?")
    await answered(hands)
    hands.step(f"the next question sees the edited text: {last(window).text!r}")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


if __name__ == "__main__":
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))
