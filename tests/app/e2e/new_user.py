"""What a new user does, as a program of its own on an X display: `first` visit, and `again`.

Runs what `draftlight` runs: the real worker, the starter model, chats kept in the folder given.
Prints one line a step, with the seconds since the start, and keeps a picture of it.
"""

from __future__ import annotations

import sys
from pathlib import Path

from PySide6.QtCore import QPoint

from app.chat.first_page import ExampleCard
from app.chat.strings import EXAMPLE_DOCUMENT
from app.chat.user_message import MessageChip
from app.launch.opening import open_window
from app.session.chats.conversation import Answer
from app.session.turn.link_state import Phase
from app.shell.window import MainWindow
from tests.app.e2e.hands import Hands

GREETING = "Hello there"
FIRST_WORDS = "When does the night ferry leave?"
SECOND_WORDS = "Which berth has the harbour tug?"
THIRD_WORDS = "Tell me everything about the pilots, at length."
OTHER_WORDS = "Name one berth."
_SUBJECTS = ("night ferry", "mail boat", "harbour tug", "pilot boat", "ice breaker", "fishing fleet")
_PLACES = ("north berth", "south berth", "outer berth", "inner berth", "long quay", "old basin")


def document(count: int) -> str:
    """Rules of a harbour, each of about 35 tokens."""
    rules = []
    for number in range(1, count + 1):
        who, where = _SUBJECTS[number % 6], _PLACES[(number * 7) % 6]
        rules.append(
            f"Rule {number}. The {who} leaves the {where} at {number % 24} hours and {number % 60} minutes,"
            f" unless the harbour master says otherwise before noon."
        )
    return "\n\n".join(rules)


def last(window: MainWindow) -> Answer:
    return window.controller.chats.open.turns[-1].answer


async def ready(hands: Hands) -> None:
    await hands.until(lambda: hands.window.controller.link.phase is Phase.READY, "the model is ready")


async def ask(hands: Hands, words: str) -> None:
    """Typed into the composer and sent; the answer has begun when this returns."""
    window = hands.window
    turns = len(window.controller.chats.open.turns)
    await hands.click(window.views.composer.edit)
    await hands.type(words)
    await hands.until(lambda: window.views.composer.text == words, f"“{words}” is in the composer")
    await hands.press("Return")
    await hands.until(lambda: len(window.controller.chats.open.turns) == turns + 1, f"“{words}” is asked")


async def answered(hands: Hands) -> Answer:
    window = hands.window
    turn = window.controller.chats.open.turns[-1]
    await hands.until(lambda: last(window).over, f"“{turn.user.content}” is answered")
    assert window.views.transcript.answer_text(turn.id) == last(window).text
    assert last(window).tokens, window.views.banner.trouble
    return last(window)


async def paste(hands: Hands, text: str) -> None:
    """From another program into the message field, where it becomes a document, whose tokens are counted."""
    composer = hands.window.views.composer
    other = await hands.copy_elsewhere(text)
    await hands.click(composer.edit)
    await hands.press("ctrl+v")
    await hands.until(lambda: len(composer.attachments) == 1, "the paste became a chip")
    other.terminate()
    await other.wait()
    await hands.until(lambda: composer.attachments[0].tokens > 0, "its tokens are counted")


async def open_section(hands: Hands, name: str) -> None:
    inspector, columns = hands.window.views.inspector, hands.window.columns
    section, advanced = inspector.section(name), inspector.advanced
    if columns.arrangement.inspector_px == 0:  # as at the first start
        await hands.click(hands.window.views.header.inspector_button)
        await hands.until(lambda: columns.arrangement.inspector_px > 0, "the settings panel is open")
    if advanced.isAncestorOf(section) and not advanced.is_open:
        await hands.click(advanced.header)
        await hands.until(lambda: advanced.is_open, "the advanced settings are open")
    if not section.is_open:
        await hands.click(section.header)
        await hands.until(lambda: section.is_open, f"the section {name} is open")


async def choose(hands: Hands, key: str, value: str) -> None:
    """In a popup of the inspector: opened by mouse, gone through by key."""
    popup = hands.window.views.inspector.field(key).control.editor
    await hands.click(popup)
    await hands.until(lambda: popup.view().isVisible(), f"the popup of {key} is open")
    rows = popup.findData(value) - popup.currentIndex()
    await hands.press(*["Down" if rows > 0 else "Up"] * abs(rows), "Return")
    await hands.until(lambda: popup.value == value, f"{key} is {value}")


async def set_number(hands: Hands, key: str, number: int) -> None:
    spin = hands.window.views.inspector.field(key).control.editor
    await hands.click(spin, QPoint(16, spin.height() // 2))
    await hands.press("ctrl+a")
    await hands.type(str(number))
    await hands.press("Return")
    await hands.until(lambda: spin.value == number, f"{key} is {number}")


async def first(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    inspector, composer = views.inspector, views.composer
    await ready(hands)
    assert views.pages.currentWidget() is views.first_page
    hands.step("the model is ready, the first page is shown")

    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 16)
    await ask(hands, GREETING)
    answer = await answered(hands)
    hands.step(f"the first question is answered: {answer.text!r}")
    await ready(hands)
    await hands.press("ctrl+n")
    await hands.until(lambda: not controller.chats.open.turns, "a new chat is open")

    await paste(hands, document(400))
    (pasted,) = composer.attachments
    assert pasted.tokens > 10_000
    await hands.until(lambda: composer.pill.used_tokens >= pasted.tokens, "the ring counts all of it")
    hands.step(f"a document of {pasted.tokens:,} tokens is pasted: {composer.pill.text}")
    notice = composer.notice
    assert not notice.isVisible()  # of a text that is too long the passages that fit are read
    await open_section(hands, "basics")
    await choose(hands, "prefill.mode", "off")
    await hands.until(lambda: notice.isVisible() and len(notice.buttons) == 2, "it says that it is too long")
    assert "over this model’s limit" in notice.text
    assert not composer.send_button.isEnabled()
    hands.step("with sparse prefill off it does not fit")
    await hands.click(notice.buttons[0])
    await hands.until(lambda: not notice.isVisible(), "it was shortened to what fits")
    await hands.until(lambda: 5_000 < composer.pill.used_tokens < 8_192, "it is counted again")
    hands.step(f"shortened to {composer.pill.used_tokens:,} tokens")

    assert composer.edit.hasFocus()
    assert composer.send_button.isEnabled() is bool(composer.attachments)
    await choose(hands, "prefill.mode", "on")
    await set_number(hands, "sampling.max_tokens", 24)
    await ask(hands, FIRST_WORDS)
    answer = await answered(hands)
    assert answer.finished
    assert answer.finished.effective.drafter == "auto"
    assert answer.finished.effective.reading == "sparse", answer.finished.effective.changes
    read = answer.finished.stats
    assert 0 < read.read_tokens < read.prompt_tokens / 2
    hands.step(f"first answer, {read.read_tokens:,} of {read.prompt_tokens:,} tokens read: {answer.text!r}")

    await open_section(hands, "basics")
    await choose(hands, "drafting.drafter", "ngram-simple")
    slider = inspector.field("prefill.keep_pct").control.editor
    default = inspector.settings.prefill.keep_pct
    await hands.click(slider)  # in its middle, to which the knob jumps; as on a Mac, it takes no focus
    await hands.until(lambda: inspector.settings.prefill.keep_pct != default, "more is kept")
    kept_pct = inspector.settings.prefill.keep_pct
    await ask(hands, SECOND_WORDS)
    answer = await answered(hands)
    assert answer.finished
    assert answer.finished.effective.drafter == "ngram-simple"
    assert answer.finished.effective.settings.prefill.keep_pct == kept_pct != default
    hands.step(f"second answer, with another drafter and keep at {kept_pct:g}%: {answer.text!r}")

    await set_number(hands, "sampling.max_tokens", 400)
    await ask(hands, THIRD_WORDS)
    await hands.until(lambda: len(last(window).tokens) > 6, "the third answer has begun")
    await hands.press("Escape")
    answer = await answered(hands)
    assert answer.status == "stopped"
    assert 6 < len(answer.tokens) < 400
    hands.step(f"third answer, stopped after {len(answer.tokens)} tokens")

    await set_number(hands, "sampling.max_tokens", 16)
    await hands.click(composer.edit)
    await hands.press("Up")
    await hands.until(lambda: composer.text == THIRD_WORDS, "the last message can be edited")
    assert views.editing_bar.isVisible()
    await hands.press("ctrl+a")
    await hands.type(OTHER_WORDS)
    await hands.press("Return")
    await hands.until(lambda: controller.chats.open.turns[-1].user.content == OTHER_WORDS, "it is asked anew")
    answer = await answered(hands)
    assert [turn.user.content for turn in controller.chats.open.turns] == [
        FIRST_WORDS,
        SECOND_WORDS,
        OTHER_WORDS,
    ]
    assert views.header.title == FIRST_WORDS
    hands.step(f"edited and asked again: {answer.text!r}")
    await hands.press("ctrl+r")
    await hands.until(lambda: len(controller.chats.open.turns[-1].versions) == 3, "it is regenerated")
    regenerated = await answered(hands)
    await ready(hands)

    async def go(x: int, place: int) -> None:
        """Click the arrow at `x`, from the right if negative. Each version has a view of its own."""
        shown = views.transcript.answer(controller.chats.open.turns[-1].id)
        assert shown
        versions = shown.footer.versions
        await hands.click(versions, QPoint(x if x > 0 else versions.width() + x, 12))
        await hands.until(lambda: controller.chats.open.turns[-1].place == place, f"version {place} is shown")

    await go(8, 1)
    assert last(window) == answer
    await go(8, 0)
    assert last(window).status == "stopped", "the stopped one is still there"
    await go(-8, 1)
    await go(-8, 2)
    await hands.until(lambda: last(window) == regenerated, "the newest is shown again")
    hands.step("three versions, none lost")
    await hands.click(composer.edit)
    await hands.type("not sent yet")
    await hands.press("ctrl+q")
    await window.closed()
    hands.step("quit")
    return 0


async def again(window: MainWindow) -> int:
    hands, views, controller = Hands(window), window.views, window.controller
    turns = controller.chats.open.turns
    assert [turn.user.content for turn in turns] == [FIRST_WORDS, SECOND_WORDS, OTHER_WORDS]
    assert [turn.answer.status for turn in turns] == ["finished"] * 3
    assert all(turn.answer.text for turn in turns)
    assert turns[0].user.attachments
    for turn in turns:
        assert views.transcript.answer_text(turn.id) == turn.answer.text
    assert views.header.title == FIRST_WORDS
    assert views.composer.text == "not sent yet"
    # This chat's own settings came with it.
    assert views.inspector.settings.drafting.drafter == "ngram-simple"
    assert views.inspector.settings.sampling.max_tokens == 16
    hands.step("opened again, with everything that was there")
    await ready(hands)
    await hands.click(views.composer.edit)
    await hands.press("ctrl+a", "BackSpace", "ctrl+n")
    await hands.until(lambda: not controller.chats.open.turns, "a new chat is open")
    assert views.inspector.settings.drafting.drafter == "auto"
    await document_card(hands)
    await hands.press("ctrl+w")
    await window.closed()
    return 0


async def document_card(hands: Hands) -> None:
    """From the first page to the passages that were read of a document."""
    window, views = hands.window, hands.window.views
    assert views.pages.currentWidget() is views.first_page
    card = next(
        each
        for each in views.first_page.findChildren(ExampleCard)
        if each.accessibleName() == EXAMPLE_DOCUMENT
    )
    await hands.click(card)
    await hands.until(lambda: len(views.composer.attachments) == 1, "the document comes along")
    assert views.composer.edit.hasFocus()
    assert views.composer.text
    hands.step("the document card")
    await open_section(hands, "basics")
    await set_number(hands, "sampling.max_tokens", 16)
    await hands.click(views.composer.edit)
    await hands.press("Return")
    await hands.until(lambda: bool(window.controller.chats.open.turns), "it is asked")
    # How it is shown while it is read lasts as long as that takes; what was read is on record.
    await hands.until(lambda: last(window).reading is not None or last(window).over, "passages are chosen")
    hands.step("the reading map")
    answer = await answered(hands)
    assert answer.finished
    assert answer.reading is not None, answer.finished.effective
    chip = next(each for each in views.transcript.findChildren(MessageChip) if each.isVisible())
    await hands.click(chip)
    await hands.until(lambda: views.side.tab == "document", "the Document tab is shown")
    await hands.until(lambda: "passages kept" in views.document.note_label.text(), "with what was kept")
    hands.step(f"in the Document tab, {views.document.note_label.text()}: {answer.text!r}")


if __name__ == "__main__":
    scenario = {"first": first, "again": again}[sys.argv[1]]
    sys.exit(open_window("starter", scenario, scheme="light", folder=Path(sys.argv[2])))
