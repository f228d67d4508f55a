"""The numbers in an answer, as a program of its own on an X display: `first`, and `again`.

The real worker finds the support of an answer that quotes a document; keys and the mouse open it; the numbers
are there after a restart.
"""

from __future__ import annotations

import sys
from pathlib import Path

from app.chat.answer import AnswerView
from app.chat.sources import SourceNumber
from app.launch.opening import open_window
from app.shell.window import MainWindow
from core.events import Attachment
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import answered, ask, open_section, ready, set_number

FEE = "The berth fee is 18 crowns per metre and night."
HOUSE = (
    f"Rules of the harbour.\n\n{FEE} Dogs are kept on a lead in the whole port area.\n\n"
    "The showers close at ten in the evening. Waste oil is accepted behind the fuel pier on weekdays.\n"
)
QUESTION = f"Write this sentence once more, and nothing else: {FEE}"


async def first(window: MainWindow) -> int:
    hands = Hands(window)
    await ready(hands)
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 48)
    window.views.composer.attach(Attachment("harbour.txt", HOUSE))
    await ask(hands, QUESTION)
    answer = await answered(hands)
    await ready(hands)

    def cited() -> bool:
        finished = window.controller.chats.open.turns[-1].answer.finished
        return finished is not None and bool(finished.citations)

    await hands.until(cited, f"the worker finds the support of {answer.text!r}")
    hands.step(f"the answer has numbers: {answer.text!r}")
    await open_each(hands)
    return 0


async def again(window: MainWindow) -> int:
    hands = Hands(window)
    await ready(hands)
    await open_each(hands)
    hands.step("the numbers are there after a restart")
    return 0


async def open_each(hands: Hands) -> None:
    """With the mouse and with the keyboard, the first number leads to its sentence."""
    window, views = hands.window, hands.window.views
    view = views.document.view

    def numbers() -> list[SourceNumber]:
        (answer,) = views.transcript.findChildren(AnswerView)
        return [each for each in answer.body.findChildren(SourceNumber) if each.isVisible()]

    await hands.until(lambda: bool(numbers()), "the answer is shown with numbers")
    for way in ("mouse", "keyboard"):
        window.columns.show_inspector(False)
        view.verticalScrollBar().setValue(0)
        number = numbers()[0]
        if way == "mouse":
            await hands.click(number)
        else:
            number.setFocus()
            await hands.press("Return")
        await hands.until(lambda: views.side.tab == "document", f"the {way} opens the Document tab")
        await hands.until(lambda: view.place is not None, "the sentence is marked")
        place = view.place
        assert place
        assert HOUSE[place.first : place.last] == FEE
        hands.step(f"a number opened with the {way}")


if __name__ == "__main__":
    steps = {"first": first, "again": again}
    sys.exit(open_window("starter", steps[sys.argv[1]], scheme="light", folder=Path(sys.argv[2])))
