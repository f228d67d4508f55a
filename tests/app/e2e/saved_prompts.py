"""Saved prompts in the composer, as a program of its own on an X display: `first`, and `again`.

`/` lists them, typing filters, Escape leaves a text that begins with `/`; Return inserts one, Tab and
Shift+Tab select its placeholders, Return sends it. After a restart the draft is still there.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.launch.opening import open_window
from app.shell.window import MainWindow
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, open_section, ready, set_number

SENT = "Translate Good morning into French. Keep its meaning, tone and formatting."
REWRITTEN = "Rewrite the text so that it is shorter and clearer. Keep its meaning."


def names(window: MainWindow) -> list[str]:
    """The listed prompts; none while the list is closed."""
    menu = window.views.composer.snippets
    return [menu.list.at(row).name for row in range(menu.list.count())] if menu.list and menu.is_open else []


def selected(window: MainWindow) -> str:
    return window.views.composer.edit.textCursor().selectedText()


async def first(window: MainWindow) -> int:
    hands, composer, chats = Hands(window), window.views.composer, window.controller.chats
    await ready(hands)
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 12)

    await hands.click(composer.edit)
    await hands.type("/")
    await hands.until(lambda: len(names(window)) > 3, "the saved prompts are listed")
    hands.step("the saved prompts")
    await hands.press("Escape")
    await hands.until(lambda: not names(window), "the list is closed")
    assert composer.text == "/"
    await hands.press("BackSpace")
    await hands.type("/t")
    await hands.until(lambda: names(window) == ["Translate", "Quote the Passage"], "the list is filtered")
    await hands.press("Down", "Up", "Return")
    await hands.until(lambda: composer.text.startswith("Translate the text into"), "the first is inserted")
    assert not names(window)
    assert selected(window) == "the text"
    hands.step("a prompt is inserted")

    await hands.type("Hello")
    await hands.press("Tab")
    await hands.until(lambda: selected(window) == "English", "Tab selects the next placeholder")
    await hands.type("French")
    await hands.press("shift+Tab")
    await hands.until(lambda: selected(window) == "Hello", "Shift+Tab selects what was typed before")
    await hands.type("Good morning")
    await hands.press("Tab")
    await hands.until(lambda: selected(window) == "French", "Tab selects the next again")
    await hands.press("Tab")
    await hands.until(lambda: composer.edit.textCursor().atEnd(), "Tab goes to the end of the prompt")
    assert composer.text == SENT
    hands.step("its placeholders are filled in")
    await hands.press("Return")
    await hands.until(lambda: len(chats.open.turns) == 1, "the prompt is sent")
    assert chats.open.turns[0].user.content == SENT
    assert composer.text == ""
    answer = await answered(hands)
    hands.step(f"answered: {answer.text!r}")
    await ready(hands)
    await hands.type("/re")
    await hands.until(lambda: names(window) == ["Rewrite"], "the prompts are listed for the next message")
    await hands.press("Tab")
    await hands.until(lambda: composer.text == REWRITTEN, "Tab inserts, too")
    await hands.press("ctrl+z")
    await hands.until(lambda: composer.text == "/re", "one undo takes the prompt back")
    await hands.press("ctrl+shift+z")
    await hands.until(lambda: composer.text == REWRITTEN, "and one redo inserts it again")
    hands.step("undone and redone")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def again(window: MainWindow) -> int:
    hands, composer, chats = Hands(window), window.views.composer, window.controller.chats
    await ready(hands)
    assert chats.open.turns[0].user.content == SENT
    assert composer.text == REWRITTEN
    await hands.click(composer.edit)
    await hands.press("ctrl+a", "BackSpace")
    await hands.type("/nothing of this name")
    assert not names(window)
    assert composer.text == "/nothing of this name"
    hands.step("the draft is kept, and a message may begin with a slash")
    await hands.press("ctrl+q")
    await window.closed()
    return 0


if __name__ == "__main__":
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))
