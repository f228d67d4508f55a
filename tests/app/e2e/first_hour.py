"""The first hour of a new user, as a program of its own on an X display.

The offer of a larger model, the three examples, a follow-up in other words, the sources in each state of the
panel, and closing after a message waited and its chat was deleted. As `new_user`, with the real worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from app.chat import strings
from app.chat.first_page import ExampleCard
from app.chat.strings import UNMATCHED
from app.launch.opening import open_window
from app.shell.window import MainWindow
from tests.app.chat.test_answers import check_code, check_list
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, document_card, last, ready, set_number

FOLLOW_UP = "Is anything that I write sent to somebody else?"
LONG = "Write a long story about a lighthouse keeper."
NEXT = "And then?"


async def first(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    await ready(hands)
    page = views.first_page
    await hands.until(lambda: page.lead_button.isVisible(), "a larger model is offered")
    hands.step(page.subtitle)
    await hands.click(page.other_button)
    await hands.until(lambda: not page.other_button.isVisible(), "it is declined")
    await example(hands, strings.EXAMPLE_LIST, check_list)
    await example(hands, strings.EXAMPLE_CODE, check_code)
    await document_card(hands)
    await follow_up(hands)
    await sources(hands)

    await hands.press("ctrl+n")
    await hands.until(lambda: not controller.chats.open.turns, "a new chat is open")
    await set_number(hands, "sampling.max_tokens", 400)
    await ask(hands, LONG)
    await hands.until(lambda: len(last(window).tokens) > 6, "the long answer has begun")
    await hands.click(views.composer.edit)
    await hands.type(NEXT)
    await hands.press("Return")
    await hands.until(lambda: views.queue_list.isVisible(), "the next message waits")
    await set_number(hands, "sampling.max_tokens", 16)
    turns = len(controller.chats.open.turns)
    await hands.press("Escape")
    await hands.until(lambda: views.queue_list.send_button.isVisible(), "it waits for the person")
    await hands.click(views.queue_list.send_button)
    await hands.until(lambda: len(controller.chats.open.turns) == turns + 1, "it is sent")
    await answered(hands)
    await ready(hands)
    deleted = controller.chats.open.id
    window.menu_actions["delete"].trigger()
    await hands.until(lambda: controller.chats.open.id != deleted, "its chat is deleted")
    hands.step("a message waited, was sent, and its chat deleted")
    await hands.press("ctrl+q")
    await window.closed()
    hands.step("closed")
    return 0


async def example(hands: Hands, title: str, check: Callable[[str], None]) -> None:
    """One card of the first page, sent as it is, and its answer checked; then a new chat."""
    window, views = hands.window, hands.window.views
    card = next(each for each in views.first_page.findChildren(ExampleCard) if each.text() == title)
    await hands.click(card)
    await hands.until(lambda: bool(views.composer.text), f"“{title}” is in the composer")
    await hands.press("Return")
    await hands.until(lambda: bool(window.controller.chats.open.turns), f"“{title}” is asked")
    answer = await answered(hands)
    check(answer.text)
    hands.step(f"{title}: {answer.text!r}")
    await ready(hands)
    await hands.press("ctrl+n")
    await hands.until(lambda: not window.controller.chats.open.turns, "a new chat is open")


async def follow_up(hands: Hands) -> None:
    """In other words than the document's: passages are read for it, or the answer says that none matches."""
    window = hands.window
    await ask(hands, FOLLOW_UP)
    answer = await answered(hands)
    assert answer.finished
    shown = window.views.transcript.answer(window.controller.chats.open.turns[-1].id)
    assert shown
    unmatched = answer.finished.effective.unmatched
    assert (UNMATCHED in shown.footer.notes) is unmatched
    if unmatched:
        assert not shown.footer.sources.buttons
        assert shown.footer.everything_button.isVisible()
    hands.step(f"a follow-up {'declared unmatched' if unmatched else 'answered'}: {answer.text!r}")
    await ready(hands)


async def sources(hands: Hands) -> None:
    """Each source of the chat leads to its sentence, with the panel closed and on either of its tabs."""
    window, views = hands.window, hands.window.views
    for turn in window.controller.chats.open.turns:
        shown = views.transcript.answer(turn.id)
        for button in shown.footer.sources.buttons if shown else ():
            for state in ("hidden", "settings", "document"):
                window.columns.show_inspector(state != "hidden")
                views.side.show_tab("settings" if state == "settings" else "document")
                await hands.click(button)
                view = views.document.view
                await hands.until(lambda view=view: view.place is not None, "its sentence is marked")  # type: ignore[misc]
                hands.step(f"a source with the panel: {state}")
    views.side.show_tab("settings")
    window.columns.show_inspector(True)


if __name__ == "__main__":
    sys.exit(open_window("starter", first, scheme="light", folder=Path(sys.argv[2])))
