"""The first hour of a new user, as a program of its own on an X display: `first`, `again`, and `full`.

`first`: the offer of a larger model, the three examples with right answers, a follow-up in other words, the
sources in each state of the panel, a paste, and stopping while it is read with two messages queued. `again`:
what was left open is there, the queued message is sent, help is searched, and a chat deleted. `full`: the
disk is full at the start. As `new_user`, with the real worker.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from PySide6.QtWidgets import QApplication

from app.chat import strings
from app.chat.first_page import ExampleCard
from app.chat.strings import UNMATCHED
from app.controls.sheets import Question
from app.features.help import HelpWindow
from app.launch.opening import open_window
from app.shell.window import MainWindow
from app.store.library import Library
from tests.app.chat.test_answers import check_code, check_document, check_list
from tests.app.e2e.hands import Hands
from tests.app.e2e.new_user import (
    answered,
    ask,
    choose,
    document,
    last,
    open_section,
    paste,
    ready,
    set_number,
)

FOLLOW_UP = "Is anything that I write sent to somebody else?"
PASTED_WORDS = "Which rules are about the mail boat?"
WAITING = ("Where is the tug?", "And the pilots?")
EDITED = "Name one berth."
UNSAVED = "Name one colour."


async def first(window: MainWindow) -> int:
    hands, page = Hands(window), window.views.first_page
    await ready(hands)
    await hands.until(lambda: page.lead_button.isVisible(), "a larger model is offered")
    hands.step(page.subtitle)
    await hands.click(page.other_button)
    await hands.until(lambda: not page.other_button.isVisible(), "it is declined")
    await example(hands, strings.EXAMPLE_LIST, check_list)
    await new_chat(hands)
    await example(hands, strings.EXAMPLE_CODE, check_code)
    await new_chat(hands)
    await example(hands, strings.EXAMPLE_DOCUMENT, check_document)
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 32)
    await follow_up(hands)
    await sources(hands)
    await new_chat(hands)
    await queue_while_reading(hands)
    await hands.press("ctrl+q")
    await window.closed()
    return 0


async def new_chat(hands: Hands) -> None:
    await hands.press("ctrl+n")
    await hands.until(lambda: not hands.window.controller.chats.open.turns, "a new chat is open")


async def example(hands: Hands, title: str, check: Callable[[str], None]) -> None:
    """One card of the first page, sent as it is at the default settings, and its answer checked."""
    window, views = hands.window, hands.window.views
    card = next(each for each in views.first_page.findChildren(ExampleCard) if each.accessibleName() == title)
    await hands.click(card)
    await hands.until(lambda: bool(views.composer.text), f"“{title}” is in the composer")
    await hands.press("Return")
    await hands.until(lambda: bool(window.controller.chats.open.turns), f"“{title}” is asked")
    answer = await answered(hands)
    check(answer.text)
    hands.step(f"{title}: {answer.text!r}")
    await ready(hands)


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


async def queue_while_reading(hands: Hands) -> None:
    """Two messages wait; one is edited, one removed, the reading stopped. Nothing is sent by itself."""
    window, views = hands.window, hands.window.views
    queue, composer = views.queue_list, views.composer
    await paste(hands, document(200))
    await open_section(hands, "basics")
    await choose(hands, "prefill.mode", "off")  # all of it, which takes a while
    await set_number(hands, "sampling.max_tokens", 16)
    await ask(hands, PASTED_WORDS)
    for number, words in enumerate(WAITING, 1):
        await queued(hands, words, number)
    hands.step("two messages wait while the paste is read")
    await hands.click(queue.rows[1].edit_button)
    await hands.until(lambda: composer.text == WAITING[1], "the second one is edited")
    assert composer.edit.hasFocus()
    await hands.press("ctrl+a")
    await queued(hands, EDITED, 2)
    await hands.click(queue.rows[0].remove_button)
    await hands.until(lambda: [row.text for row in queue.rows] == [EDITED], "the first one is removed")
    assert composer.edit.hasFocus()
    assert not last(window).over, "it was read before the queue was tried: paste a longer document"
    hands.step("one was edited, one removed")
    await hands.press("Escape")
    await hands.until(lambda: not window.controller.chats.open.turns, "the question is taken back")
    await ready(hands)
    waits_with_draft(window)
    hands.step("the reading is stopped, and nothing was sent")


def waits_with_draft(window: MainWindow) -> None:
    """The stopped question is the draft, with its document, and the queue waits for the person."""
    queue, composer = window.views.queue_list, window.views.composer
    assert not window.controller.chats.open.turns
    assert composer.text == PASTED_WORDS
    assert len(composer.attachments) == 1
    assert [row.text for row in queue.rows] == [EDITED]
    assert queue.send_button.isVisible()


async def queued(hands: Hands, words: str, number: int) -> None:
    """Typed over what is selected, and queued as the message `number`."""
    await hands.type(words)
    await hands.press("Return")
    await hands.until(lambda: len(hands.window.views.queue_list.rows) == number, f"“{words}” waits")


async def again(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    await ready(hands)
    waits_with_draft(window)
    hands.step("opened again, with the draft and the queued message")
    await open_section(hands, "basics")
    await choose(hands, "prefill.mode", "on")
    await hands.click(views.composer.edit)
    await hands.press("Return")
    await hands.until(
        lambda: len(controller.chats.open.turns) == 2, "it is sent, and the queued one after it"
    )
    answer = await answered(hands)
    assert [turn.user.content for turn in controller.chats.open.turns] == [PASTED_WORDS, EDITED]
    assert answer.finished
    assert answer.finished.stats.prompt_tokens > 5_000, "it is asked with the document"
    assert views.queue_list.isHidden()
    await ready(hands)
    hands.step(f"both are answered with the document: {answer.text!r}")
    await read_help(hands)
    deleted = controller.chats.open.id
    window.menu_actions["delete"].trigger()
    await hands.until(lambda: controller.chats.open.id != deleted, "its chat is deleted")
    hands.step("and its chat deleted")
    await hands.press("ctrl+q")
    await window.closed()
    hands.step("closed")
    return 0


async def read_help(hands: Hands) -> None:
    """F1 opens it, Ctrl+W closes it and nothing else."""
    window = hands.window
    await hands.press("F1")
    await hands.until(lambda: isinstance(QApplication.activeWindow(), HelpWindow), "the help is open")
    shown = window.windows.find("help")
    hands.step("help")
    await hands.click(shown.search)
    await hands.type("queue")
    await hands.until(lambda: bool(shown.text.extraSelections()), "the help is searched")
    hands.step("help is searched")
    await hands.press("ctrl+w")
    await hands.until(lambda: not shown.isVisible(), "the help is closed")
    await hands.until(lambda: QApplication.activeWindow() is window, "the chat is in front again")


async def full(filler: Path, window: MainWindow) -> int:
    """Chats open, nothing is saved, closing asks; saving resumes when there is space."""
    hands, views, controller = Hands(window), window.views, window.controller
    await hands.until(lambda: bool(views.banner.trouble), "it says that the disk is full")
    assert views.banner.trouble
    assert "disk is full" in f"{views.banner.trouble.title} {views.banner.trouble.text}", views.banner.trouble
    assert last(window).text == views.transcript.answer_text(controller.chats.open.turns[-1].id)
    assert len(controller.chats.listed()) == 3
    hands.step("a full disk")
    await ready(hands)
    await new_chat(hands)
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 16)
    await ask(hands, UNSAVED)
    await answered(hands)
    await ready(hands)
    await hands.press("ctrl+q")
    await hands.until(lambda: bool(window.findChildren(Question)), "closing asks")
    (question,) = window.findChildren(Question)
    hands.step("closing with a full disk asks")
    await hands.click(question.cancel)
    filler.unlink()
    await hands.until(lambda: not controller.home.library.waiting(), "saving resumes")
    await hands.until(views.banner.isHidden, "and the message is gone")
    hands.step("there is space again")
    await hands.press("ctrl+q")
    await window.closed()
    hands.step("closed")
    return 0


def fill(disk: Path) -> Path:
    """A file that takes all the space of `disk`."""
    filler = disk / "filler"
    with filler.open("wb", buffering=0) as file:
        for size in (65_536, 512, 1):
            with suppress(OSError):
                while True:
                    file.write(bytes(size))
    return filler


if __name__ == "__main__":
    folder = Path(sys.argv[2])
    scenario = {"first": first, "again": again}.get(sys.argv[1]) or partial(full, fill(folder))
    status = open_window("starter", scenario, scheme="light", folder=folder)
    if sys.argv[1] == "full":
        kept = Library(folder)
        assert any(UNSAVED in each.title for each in kept.summaries())
        assert kept.close()
    sys.exit(status)
