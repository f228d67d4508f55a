"""A long document in the real window: scored, chosen, read; its map, its tab, and reading it all."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QAbstractSlider

from app.chat.intents import OpenPassage
from app.chat.reading_map import Stretch
from app.chat.user_message import MessageChip
from app.panels.document_view import DocumentView
from app.shell.window import MainWindow
from core.events import Attachment, Message
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


async def test_a_source_leads_to_its_sentence_or_it_is_said_that_nothing_matches(window: MainWindow) -> None:
    views = window.views
    submit(window, "skim cite write 9", Attachment("handbook.md", CITED))
    await ready(window)
    view, buttons = views.document.view, answer_view(window).footer.sources.buttons
    assert len(buttons) == 2  # of four: one is there twice, one was skipped
    for begins in ("settings", "hidden", "document", "kept only"):
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
            await until(lambda: view.place is not None, what=f"nothing is marked, from {begins}")
            place = view.place
            assert CITED[place.first : place.last].startswith("It has number w")
            assert CITED[place.first : place.last] in button.toolTip()
            await until(lambda place=place: _is_seen(view, place), what=f"out of sight, from {begins}")
            marked = [each.cursor.selectedText() for each in view.extraSelections()]
            assert CITED[place.first : place.last] in marked
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


def _is_seen(view: DocumentView, place: Stretch) -> bool:
    """In the middle, unless it is at an end of the text."""
    first, last = view.visible_characters()
    share = (place.first - first) / max(1, last - first)
    is_whole = first < place.first < place.last < last
    return is_whole and (0.3 < share < 0.7 or first == 0 or last >= len(CITED) - 200)
