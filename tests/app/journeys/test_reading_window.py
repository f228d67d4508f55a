"""A long document in the real window: scored, chosen, read; its map, its tab, and reading it all."""

from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractSlider, QPushButton

from app.chat.intents import OpenPassage
from app.chat.reading_map import Stretch
from app.chat.user_message import MessageChip
from app.controls.shapes import blend
from app.panels.document_view import DocumentView
from app.panels.formatted_view import FormattedView
from app.shell.window import MainWindow
from app.theme.theme import color
from core.events import Attachment, Message
from tests.app.chat.watching import colours, picture
from tests.app.stage import answer_view, click, last, ready, until

HANDBOOK = "\n\n".join(f"{n} Section\n\nA vessel shall not leave in fog number {n}." * 2 for n in range(60))
COMMAND = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.AltModifier


def submit(window: MainWindow, question: str, *attachments: Attachment) -> str:
    window.views.composer.set_message(Message("user", question, attachments))
    window.controller.asking.submit(window.views.composer.message())
    return window.controller.chats.open.turns[-1].id


def chip_of(window: MainWindow) -> MessageChip:
    return window.views.transcript.findChildren(MessageChip)[-1]


async def test_a_sparse_reading_is_seen_from_beginning_to_end_changed_and_looked_at_again(
    window: MainWindow,
) -> None:
    views = window.views
    turn_id = submit(window, "skim slowly write 4", Attachment("handbook.md", HANDBOOK, 900))

    def card() -> object:
        answer = views.transcript.answer(turn_id)
        return answer.card if answer else None

    await until(lambda: card() is not None)
    answer = views.transcript.answer(turn_id)
    shown = answer.card
    assert [phase.title for phase in shown.facts.phases] == ["Scoring", "Chosen", "Reading"]
    await until(lambda: bool(shown.facts and shown.facts.phases[0].title == "Scored"))
    reading = last(window).reading
    assert views.composer.pill.used_tokens == reading.prompt_tokens
    # The map leads to its place in the document while it is read.
    views.transcript.intent.emit(OpenPassage(reading.passages[20]))
    assert views.side.tab == "document"
    assert window.columns.arrangement.inspector_px == 400
    first, end = views.document.view.visible_characters()
    assert first <= reading.passages[20].first_char < end
    await ready(window)
    assert "read" in chip_of(window).note
    finished = last(window).finished
    assert finished.effective.reading == "sparse"
    assert answer.footer.everything_button.isVisible()
    assert last(window).reading == reading

    window.controller.chat.start()
    tab = views.document
    first = submit(window, "skim write 4", Attachment("handbook.md", HANDBOOK))
    await ready(window)
    before = len(tab.view.stretches)
    submit(window, "skim write 5", Attachment("more.md", HANDBOOK[:4000]))
    await ready(window)
    views.document.choose(0)
    assert "earlier answer" not in tab.note_label.text()
    answer = views.transcript.answer(first)
    assert answer
    await click(answer)
    assert "earlier answer" in tab.note_label.text()
    assert tab.shown.answered_by == first
    assert len(tab.view.stretches) == before
    submit(window, "write 3")
    assert "earlier answer" not in tab.note_label.text()

    await ready(window)
    window.controller.chat.start()
    chats = window.controller.chats
    submit(window, "skim slowly write 4", Attachment("handbook.md", HANDBOOK))
    await until(lambda: last(window).reading is not None)
    views.composer.set_text("And then?")
    await click(answer_view(window).card.everything_button)
    await until(lambda: last(window).status == "finished")
    (turn,) = chats.open.turns
    assert turn.answer.finished.effective.reading == "dense"
    assert views.composer.text == "And then?"
    views.composer.set_text("")
    window.controller.chat.start()
    submit(window, "skim slowly write 5", Attachment("handbook.md", HANDBOOK))
    await until(lambda: last(window).reading is not None)
    await click(answer_view(window).card.cancel_button)
    await ready(window)
    assert chats.open.turns == ()
    assert views.composer.text == "skim slowly write 5"
    assert views.composer.attachments[0].name == "handbook.md"
    assert views.composer.pill.used_tokens < 2_000
    assert views.document.shown is None


# The fake worker answers “ECHO 1: w1 w2 …”: one sentence of each passage says some of it.
CITED = "\n\n".join(
    f"{n} Section. A vessel stays in fog. It has number w{n % 9} there. Ropes are dry." for n in range(160)
)


@pytest.mark.sweep
async def test_a_source_leads_to_its_sentence_or_it_is_said_that_nothing_matches(window: MainWindow) -> None:
    views = window.views
    submit(window, "skim cite write 9", Attachment("handbook.md", CITED))
    await ready(window)
    buttons = answer_view(window).footer.sources.buttons
    assert len(buttons) == 2  # of four: one is there twice, one was skipped
    for begins, style in (
        ("settings", "formatted"),
        ("hidden", "text"),
        ("document", "text"),
        ("kept only", "formatted"),
    ):
        views.document.style_choice.set_value(style)
        view = views.document.view
        views.side.show_tab("settings")
        if begins == "hidden":
            window.columns.show_inspector(False)
        elif begins != "settings":
            window.commands.show_document()
            views.document.filter.set_value("kept" if begins == "kept only" else "all")
        for button in buttons:
            view.place = None
            await click(button)
            assert views.side.tab == "document"
            assert window.columns.arrangement.inspector_px == 400
            await until(lambda view=view: view.place is not None, what=f"nothing is marked, from {begins}")
            place = view.place
            assert CITED[place.first : place.last].startswith("It has number w")
            assert CITED[place.first : place.last] in button.toolTip()
            seen = partial(_is_seen, view, place)
            await until(seen, what=f"out of sight, from {begins}")
            if isinstance(view, DocumentView):
                marked = [each.cursor.selectedText() for each in view.extraSelections()]
                assert CITED[place.first : place.last] in marked
            else:
                assert color("accent").name() in colours(picture(view.viewport()))  # its frame
    view.verticalScrollBar().triggerAction(QAbstractSlider.SliderAction.SliderPageStepSub)
    assert view.place is None

    window.controller.chat.start()
    # One line and Read Everything in place of sources that support nothing.
    for words, unmatched in (("skim cite write 9", False), ("skim cite unmatched write 9", True)):
        turn_id = submit(window, words, Attachment("handbook.md", CITED))
        await ready(window)
        answer = window.views.transcript.answer(turn_id)
        assert ("Nothing in the text matches this question." in answer.footer.notes) is unmatched
        assert bool(answer.footer.sources.buttons) is not unmatched
        assert answer.footer.everything_button.isVisible()
        assert answer.footer.everything_button.text() == "Read Everything"
    # The question is cached now, so the worker does not compare it again.
    window.controller.asking.regenerate()
    await ready(window)
    again = answer_view(window)
    assert again is not answer
    assert "Nothing in the text matches this question." in again.footer.notes
    assert not again.footer.sources.buttons

    window.controller.chat.start()
    views, chats = window.views, window.controller.chats
    turn_id = submit(window, "skim write 4", Attachment("handbook.md", HANDBOOK, 900))
    await ready(window)
    # Its map is shown again with its chat.
    note, chat_id = chip_of(window).note, chats.open.id
    assert "read" in note
    window.controller.chat.start()
    assert views.document.shown is None
    window.controller.chat.select(chat_id)
    assert chip_of(window).note == note
    assert views.document.shown.reading is not None
    button = answer_view(window).footer.everything_button
    assert button.accessibleDescription().startswith("All ")
    await click(button)
    await until(lambda: window.controller.link.busy)
    await ready(window)
    (turn,) = chats.open.turns
    assert turn.id != turn_id
    assert turn.answer.reading is None
    assert turn.answer.finished.effective.settings.prefill.mode == "off"
    assert answer_view(window).footer.everything_button.isHidden()
    # Only this answer: what is set stays as it was.
    assert views.inspector.settings.prefill.mode == "auto"


NOTES = "# Harbour *notes*\n\n" + "\n\n".join(
    f"## Part {n}\n\nA **vessel** stays in fog. It has *number* w{n % 9} there.\n\n- Ropes are `dry` {n}\n\n"
    f"| Berth | Slot |\n|---|---|\n| North {n} | {n}:15 |\n\n```\n{'x = 1; ' * 30}# {n}\n```"
    for n in range(40)
)


async def test_a_markdown_document_is_followed_switched_and_searched(window: MainWindow) -> None:
    views = window.views
    tab = views.document
    turn_id = submit(window, "skim write 4", Attachment("notes.md", NOTES, 900))
    await ready(window)
    passage = next(each for each in last(window).reading.passages if each.kept and each.first_char > 4_000)
    views.transcript.intent.emit(OpenPassage(passage))
    assert views.side.tab == "document"
    await until(lambda: tab.formatted_view.is_laid_out)
    assert tab.view is tab.formatted_view
    kinds = {box.piece.kind for box in tab.formatted_view.canvas.boxes}
    assert {"heading", "text", "table", "code"} <= kinds
    await until(lambda: _shows(tab.view, passage.first_char), what="the passage is out of sight")
    found = colours(picture(tab.view.viewport()))
    passage_tint = blend(color("accent_mid"), color("accent_tint"), 0.35)
    assert {passage_tint.name(), color("dim").name()} <= found
    number = tab.view.current_stretch

    # The same passage as text, and back with the keys.
    option = next(each for each in tab.style_choice.findChildren(QPushButton) if each.text() == "Text")
    await click(option)
    assert tab.view is tab.text_view
    assert tab.text_view.toPlainText().startswith("# Harbour *notes*")
    assert tab.view.current_stretch == number
    await until(lambda: _shows(tab.view, passage.first_char), what="the passage is out of sight as text")
    option.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(option, Qt.Key.Key_Left)
    assert tab.view is tab.formatted_view
    await until(lambda: _shows(tab.view, passage.first_char), what="the passage is out of sight again")
    window.commands.jump(1)
    assert tab.view.current_stretch == number + 1

    # Find: what is read, without its marks; what is written, in the text.
    window.commands.show_document()
    tab.view.setFocus()
    window.commands.find()
    tab.finder.bar.field.setText("has number w7")
    assert tab.finder.bar.count.text().endswith("of 4")
    window.commands.find_step(True)
    match = tab.view.marks.matches
    assert "*number* w7" in NOTES[match.starts[match.current] : match.ends[match.current]]
    await until(lambda: _shows(tab.view, match.starts[match.current]), what="the match is out of sight")
    await click(option)
    assert tab.finder.is_open
    tab.finder.bar.field.setText("*number* w7")
    assert tab.finder.bar.count.text().endswith("of 4")
    tab.finder.close()
    await click(next(each for each in tab.style_choice.findChildren(QPushButton) if each is not option))
    # Another answer's reading, and another chat.
    answer = window.views.transcript.answer(turn_id)
    await click(answer)
    assert tab.view is tab.formatted_view
    window.controller.chat.start()
    assert tab.shown is None


def _shows(view: DocumentView | FormattedView, character: int) -> bool:
    first, end = view.visible_characters()
    return first <= character < end


def _is_seen(view: DocumentView | FormattedView, place: Stretch) -> bool:
    """In the middle, unless it is at an end of the text."""
    first, last = view.visible_characters()
    share = (place.first - first) / max(1, last - first)
    is_whole = first < place.first < place.last < last
    return is_whole and (0.3 < share < 0.7 or first == 0 or last >= len(CITED) - 200)
