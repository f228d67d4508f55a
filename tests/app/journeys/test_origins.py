"""Where an answer's words stand: two documents, a question, its marks, and the places that they lead to."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QGuiApplication, QMouseEvent
from PySide6.QtWidgets import QApplication, QWidget

from app.chat.answer import AnswerView
from app.chat.export import ExportOptions, page
from app.chat.user_message import MessageChip
from app.richtext.origin_paint import NOWHERE_COLOR, source_color
from app.session.chats.answers import Edit
from app.shell.window import MainWindow
from app.store.chat_files import from_markdown, to_markdown
from core.events import Attachment
from core.origins import Fact, Run
from tests.app.chat.watching import colour, colours, enlarged
from tests.app.fake_worker import said
from tests.app.journeys.test_reading_window import submit
from tests.app.stage import Stage, answer_view, click, last, press, ready, until

KEY = Qt.Key
LEASE = Attachment(
    "lease.md",
    "# Lease of the boathouse\n\nThe tenant shall keep the slipway free of weed from April to October.\n\n"
    "The rent is 8,400 euros a year and falls due on the first Monday of March.\n",
    60,
)
MANUAL = Attachment(
    "winch.md",
    "# Winch\n\nThe winch lifts boats of at most 950 kg on the northern slipway.\n\n"
    "Grease the drum bearings after every forty hours of use with marine grease.\n",
    50,
)
ANSWER = (
    "Every year the rent is 8,400 euros a year and falls due on the first Monday of March. "
    "Grease the drum bearings after every forty hours of use, at least 420 times."
)


async def ask_about_both(window: MainWindow, answer: str = ANSWER, question: str = "") -> AnswerView:
    submit(window, f"{question} {said(answer)}".strip(), LEASE, MANUAL)
    return await traced(window)


async def traced(window: MainWindow) -> AnswerView:
    """The last answer, once it is over and its origins are known."""
    await ready(window)
    await until(lambda: not window.controller.origins.is_busy, what="the origins are not complete")
    return answer_view(window)


def show_origins(window: MainWindow) -> None:
    window.menu_actions["colors_origins"].trigger()


def mouse(widget: QWidget, kind: QEvent.Type, at: QPointF) -> None:
    """Moves the mouse, or presses or releases its left button."""
    button = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseMove else Qt.MouseButton.LeftButton
    held = Qt.MouseButton.LeftButton if kind is QEvent.Type.MouseButtonPress else Qt.MouseButton.NoButton
    event = QMouseEvent(kind, at, widget.mapToGlobal(at), button, held, Qt.KeyboardModifier.NoModifier)
    QApplication.sendEvent(widget, event)


def runs(answer: AnswerView) -> list[str]:
    return [answer.body.mark_text(mark) for mark in answer.body.marks if isinstance(mark, Run)]


def nowhere(answer: AnswerView) -> list[str]:
    return [answer.body.mark_text(mark) for mark in answer.body.marks if isinstance(mark, Fact)]


def marked_words(window: MainWindow) -> str:
    """What is marked in the Document tab."""
    document = window.views.document
    assert document.shown is not None
    place = document.view.place
    return document.shown.attachment.text[place.first : place.last] if place else ""


async def test_pointing_at_copied_words_shows_their_passage_and_a_click_leads_there(
    window: MainWindow,
) -> None:
    answer = await ask_about_both(window)
    assert "8,400 euros a year" in runs(answer)[0]
    assert nowhere(answer) == ["420 times"]
    show_origins(window)
    seen = colours(enlarged(answer.body))
    assert {colour(source_color(0)), colour(source_color(1)), colour(NOWHERE_COLOR)} <= seen
    chips = window.views.transcript.findChildren(MessageChip)
    assert [colour(source_color(n)) in colours(enlarged(chip)) for n, chip in enumerate(chips)] == [True] * 2

    mark = next(mark for mark in answer.body.marks if "drum bearings" in answer.body.mark_text(mark))
    at = answer.body.mark_rect(mark).center()
    mouse(answer.body, QEvent.Type.MouseMove, at)
    tip = window.views.transcript.tip
    await until(tip.isVisible)
    assert tip.facts.class_name == "winch.md"
    assert "drum bearings" in tip.facts.passage[1]
    mouse(answer.body, QEvent.Type.MouseButtonPress, at)
    mouse(answer.body, QEvent.Type.MouseButtonRelease, at)
    assert window.views.side.tab == "document"
    assert window.views.document.shown.attachment.name == "winch.md"
    assert marked_words(window).startswith("Grease the drum bearings")

    fact = next(mark for mark in answer.body.marks if isinstance(mark, Fact))
    mouse(answer.body, QEvent.Type.MouseMove, answer.body.mark_rect(fact).center())
    await until(lambda: tip.isVisible() and tip.facts.class_name == "Not in your documents")


async def test_the_footer_counts_what_stands_in_the_documents(window: MainWindow) -> None:
    answer = await ask_about_both(window)
    line = answer.footer.facts.text()
    assert line.endswith(f"1 is not: {nowhere(answer)[0]}")
    assert "in the documents" in line
    assert answer.footer.nowhere_button.isHidden()
    show_origins(window)
    assert answer.footer.nowhere_button.isVisible()
    window.menu_actions["colors_off"].trigger()
    assert answer.footer.facts.isHidden()


async def test_without_a_source_nothing_is_shown(window: MainWindow) -> None:
    submit(window, said(ANSWER))
    answer = await traced(window)
    show_origins(window)
    assert answer.body.marks == []
    assert answer.footer.facts.isHidden()
    assert answer.footer.nowhere_button.isHidden()


async def test_the_keyboard_goes_from_mark_to_mark_and_to_their_places(window: MainWindow) -> None:
    answer = await ask_about_both(window)
    show_origins(window)
    answer.body.setFocus()
    await press(answer.body, KEY.Key_Right)
    assert answer.body.pointed_mark is answer.body.marks[0]
    tip = window.views.transcript.tip
    await until(tip.isVisible)
    assert "lease.md" in tip.accessibleName()
    await press(answer.body, KEY.Key_Return)
    assert window.views.document.shown.attachment.name == "lease.md"
    assert "8,400 euros" in marked_words(window)
    answer.body.setFocus()
    await press(answer.body, KEY.Key_End)
    assert isinstance(answer.body.pointed_mark, Fact)
    await press(answer.body, KEY.Key_Escape)
    assert answer.body.pointed_mark is None
    await click(answer.footer.nowhere_button)
    assert isinstance(answer.body.pointed_mark, Fact)


async def test_a_figure_repeated_from_an_earlier_answer_keeps_its_state(window: MainWindow) -> None:
    first = await ask_about_both(window)
    invented = nowhere(first)
    submit(window, said("As I said, it is at least 420 times, and the rent is 8,400 euros."))
    second = await traced(window)
    assert nowhere(second) == invented
    show_origins(window)
    assert "1 is not" in second.footer.facts.text()


async def test_typed_words_have_no_origin(window: MainWindow) -> None:
    answer = await ask_about_both(window)
    at = answer.text.index("420")
    window.controller.asking.edits.save_answer(last_id(window), (Edit(at, at + 3, "977"),))
    edited = await traced(window)
    assert "977" in edited.text
    assert nowhere(edited) == []
    assert runs(edited)


def last_id(window: MainWindow) -> str:
    return window.controller.chats.open.turns[-1].id


@pytest.mark.sweep
async def test_a_chat_that_is_opened_again_has_its_origins(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path)
    before = [type(mark) for mark in (await ask_about_both(window)).body.marks]
    window = await stage.ready(folder=tmp_path)
    answer = await traced(window)
    assert [type(mark) for mark in answer.body.marks] == before
    assert answer.footer.facts.isVisible()
    window.controller.chat.show()  # rebuilds the transcript
    answer = await traced(window)
    assert [type(mark) for mark in answer.body.marks] == before


async def test_copies_and_exports_have_the_places_as_notes(window: MainWindow) -> None:
    answer = await ask_about_both(window)
    chat = window.controller.chats.open
    menu = answer.body.menu_at(answer.body.mark_rect(answer.body.marks[0]).center())
    answer.body.add_to_menu(menu, answer.body.mark_rect(answer.body.marks[0]).center())
    next(each for each in menu.actions() if each.text() == "Copy with Sources").trigger()
    menu.deleteLater()
    copied = QGuiApplication.clipboard().text()
    assert "first Monday of March[^1]" in copied
    assert "\n[^1]: lease.md: “" in copied
    assert "420 times[^3]" in copied
    assert copied.endswith("[^3]: Not in your documents.\n")
    QGuiApplication.clipboard().clear()
    window.menu_actions["copy_with_sources"].trigger()
    assert QGuiApplication.clipboard().text() == copied
    written = to_markdown(chat)
    assert "lease.md: “" in written
    assert from_markdown(written).turns[0].answer.text == last(window).text, "an import is what was written"
    html = "".join(page(chat, ExportOptions(), "Boats"))
    assert "lease.md: “" in html
    assert "Not in your documents: 420" in html


async def test_a_figure_of_a_skipped_passage_is_named_and_can_be_read(window: MainWindow) -> None:
    filler = "".join(f"Paragraph {n} is about the weather on the lake in general. " for n in range(40))
    handbook = Attachment("handbook.md", f"{filler}The deposit is 77,310 euros. {filler}", 900)
    submit(window, f"skim {said('The deposit is 77,310 euros.')}", handbook)
    answer = await traced(window)
    reading = last(window).reading
    place = handbook.text.index("77,310")
    assert not any(p.kept and p.first_char <= place < p.last_char for p in reading.passages), "it was read"
    assert answer.footer.skipped.text() == "77,310 euros is in a passage that was not read."
    assert answer.footer.everything_button.isVisible()
    answer.footer.everything_button.click()
    await until(lambda: len(window.controller.chats.open.turns[-1].versions) == 2)
    answer = await traced(window)
    assert answer.footer.skipped.isHidden()


async def test_a_long_message_is_a_source_and_is_shown(window: MainWindow) -> None:
    pasted = "\n".join(
        f"Berth {n} belongs to boat {n * 7} and lies {n} metres from the pier." for n in range(9)
    )
    pasted += "\nThe eastern lock opens at seven in the morning between Easter and the harvest fair."
    submit(
        window, f"{pasted} {said('The eastern lock opens at seven in the morning between Easter and fall.')}"
    )
    answer = await traced(window)
    assert runs(answer)
    show_origins(window)
    answer.body.setFocus()
    await press(answer.body, KEY.Key_Right)
    assert window.views.transcript.tip.facts is None or answer.body.pointed_mark is answer.body.marks[0]
    await press(answer.body, KEY.Key_Return)
    assert window.views.transcript.verticalScrollBar().value() == 0
