"""An answer around its text: reading card, footer, actions."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QEnterEvent, QGuiApplication
from PySide6.QtWidgets import QApplication, QMenu, QWidget
from pytestqt.qtbot import QtBot

from app.chat.answer import AnswerView
from app.chat.intents import Regenerate
from app.chat.transcript import Transcript
from core.events import Change, PrefillProgress, Stats
from tests.app.chat.watching import colour, colours, enlarged, picture, stream
from tests.app.chat.written import FERRY, finished, tokens_of


def test_reading_shows_a_card_until_the_first_token(transcript: Transcript) -> None:
    transcript.begin_answer("t")
    answer = transcript.findChild(AnswerView)
    transcript.show_progress("t", PrefillProgress("r", 10, 90, 0))
    assert answer.card is None
    transcript.show_progress("t", PrefillProgress("r", 1024, 5120, 0, 8.0, fraction=0.2))
    assert answer.card.accessibleName() == "Reading 5,120 tokens"
    assert colour("accent_fill") in colours(picture(answer.card))
    transcript.append_tokens("t", tokens_of("Yes"))
    assert answer.card is None
    assert not answer.body.isHidden()
    transcript.show_progress("t", PrefillProgress("r", 5120, 5120, 0, 0.0))
    assert answer.card is None


def test_the_footer_has_figures_changes_and_actions(transcript: Transcript, qtbot: QtBot) -> None:
    answer = stream(transcript, FERRY)
    assert "tokens" in answer.footer.stats.figures
    change = Change("sampling.max_tokens", "1024", "512", "the context ends there")
    transcript.finish_answer(
        "t", finished(Stats(tokens=3, prompt_tokens=9, read_tokens=9), changes=(change,))
    )
    assert answer.footer.stats.figures.endswith("read all 9 tokens")
    assert answer.footer.notes == ("Length 512 instead of 1,024: the context ends there.",)
    copy, again = answer.footer.buttons["copy"], answer.footer.buttons["redo"]
    qtbot.mouseClick(copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text() == transcript.answer_text("t")
    with qtbot.waitSignal(transcript.intent) as emitted:
        qtbot.mouseClick(again, Qt.MouseButton.LeftButton)
    assert emitted.args == [Regenerate("t")]


def test_reading_everything_is_offered_only_where_everything_fits(transcript: Transcript) -> None:
    for number, (prompt_tokens, offered) in enumerate([(4000, True), (8192, False), (40_000, False)]):
        answer = stream(transcript, FERRY, f"{number}")
        stats = Stats(prompt_tokens=prompt_tokens, read_tokens=900, context_tokens=8192, prefill_s=3.0)
        whole = finished(stats)
        sparse = replace(whole, effective=replace(whole.effective, reading="sparse"))
        transcript.finish_answer(f"{number}", sparse)
        assert answer.footer.everything_button.isHidden() == (not offered)
        # Another model or limit is what the next answer has.
        transcript.set_context_limit(4096)
        assert answer.footer.everything_button.isHidden() == (prompt_tokens >= 4096)
        transcript.set_context_limit(131_072)
        assert not answer.footer.everything_button.isHidden()
        transcript.set_context_limit(0)


def test_without_tints_the_strip_goes_as_well(transcript: Transcript) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", finished())
    before = answer.height_for(600)
    transcript.set_token_colors("off")
    assert answer.footer.strip.isHidden()
    assert answer.height_for(600) < before
    transcript.set_token_colors("drafts")
    assert not answer.footer.strip.isHidden()
    assert answer.height_for(600) == before


def test_a_cut_off_answer_keeps_what_was_written(transcript: Transcript) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", None, "The worker ran out of memory.")
    assert answer.footer.stats.figures.endswith("stopped early")
    assert answer.footer.notes == ("The worker ran out of memory.",)
    assert transcript.answer_text("t").startswith("Under section")
    assert colour("danger") in colours(enlarged(answer.footer.stats))
    # Before its first token.
    transcript.begin_answer("u")
    transcript.show_progress("u", PrefillProgress("r", 100, 5000, 0, 9.0))
    transcript.finish_answer("u", None, "Cancelled.")
    assert transcript.answer("u").card is None
    assert transcript.answer("u").footer.stats.figures == "stopped early"


def test_actions_show_on_the_newest_answer_and_on_hover(transcript: Transcript, qtbot: QtBot) -> None:
    first = stream(transcript, "One.", "1")
    transcript.finish_answer("1", finished())
    second = stream(transcript, "Two.", "2")
    assert first.footer.buttons["copy"].is_revealed
    transcript.finish_answer("2", finished())
    assert not first.footer.buttons["copy"].is_revealed
    assert second.footer.buttons["copy"].is_revealed
    first.footer.buttons["copy"].setFocus()
    assert first.footer.buttons["copy"].is_revealed


def test_each_figure_can_be_copied(transcript: Transcript) -> None:
    answer = stream(transcript, "Two words")
    transcript.finish_answer(
        "t", finished(Stats(tokens=2, prompt_tokens=9, read_tokens=9, tokens_per_s=50.0))
    )
    stats = answer.footer.stats
    assert stats.line == "50.0 tok/s · first token 0.00 s"
    at = QPoint(4, 8)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, stats.mapToGlobal(at))
    QApplication.sendEvent(stats, event)
    menu = stats.findChild(QMenu)
    titles = [action.text() for action in menu.actions()]
    assert titles[:3] == ["Copy “50.0 tok/s”", "Copy “first token 0.00 s”", "Copy “2 tokens”"]
    assert titles[-1] == "Copy All Figures"
    menu.actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == "50.0 tok/s"
    menu.actions()[-1].trigger()
    assert QGuiApplication.clipboard().text() == stats.figures
    menu.hide()


def test_figures_have_their_reasons_in_a_tooltip_and_for_screen_readers(transcript: Transcript) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", finished(reading_reason="9 new tokens are quickly read"))
    stats = answer.footer.stats
    assert "read all 9 tokens: 9 new tokens are quickly read." in stats.toolTip().split("\n")
    assert stats.accessibleDescription() == "9 new tokens are quickly read."
    assert stats.accessibleName() == stats.figures


@pytest.mark.parametrize("width", [720, 260])
def test_nothing_under_an_answer_moves_when_it_is_pointed_at(transcript: Transcript, width: int) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", finished(), "A note.")

    def places() -> object:
        footer = answer.footer
        footer.resize(width, footer.height_for(width))
        return [(type(each), each.geometry()) for each in footer.children() if isinstance(each, QWidget)]

    before = places(), answer.footer.stats.line
    QApplication.sendEvent(answer, QEnterEvent(QPointF(), QPointF(), QPointF()))
    assert (places(), answer.footer.stats.line) == before


def test_a_token_has_one_mark(transcript: Transcript) -> None:
    """A tint or dots in the text, or a cell of the bar where the text has none."""
    answer = stream(transcript, FERRY)
    marks = {colour("accepted_tint"), colour("bonus_line")}
    bar = {colour("series_green"), colour("bonus_line")}
    assert marks <= colours(enlarged(answer.body))
    assert not bar & colours(enlarged(answer.footer.strip))  # while it is written
    transcript.finish_answer("t", finished())
    assert not marks & colours(enlarged(answer.body))
    assert bar <= colours(enlarged(answer.footer.strip))
