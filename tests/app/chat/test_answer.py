"""An answer around its text: reading card, footer, actions."""

from __future__ import annotations

from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QContextMenuEvent, QEnterEvent, QGuiApplication, QHelpEvent
from PySide6.QtWidgets import QApplication, QMenu, QToolTip
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
    assert "tokens" in answer.footer.stats.text
    change = Change("sampling.max_tokens", "1024", "512", "the context ends there")
    transcript.finish_answer(
        "t", finished(Stats(tokens=3, prompt_tokens=9, read_tokens=9), changes=(change,))
    )
    assert answer.footer.stats.text.endswith("read all 9 tokens")
    assert answer.footer.notes == ("Length 512 instead of 1,024: the context ends there.",)
    copy, again, *_ = answer.footer.buttons
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
    transcript.set_tint_mode("never")
    assert answer.footer.strip.isHidden()
    assert answer.height_for(600) < before
    transcript.set_tint_mode("hover")
    assert not answer.footer.strip.isHidden()
    assert answer.height_for(600) == before


def test_a_cut_off_answer_keeps_what_was_written(transcript: Transcript) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", None, "The worker ran out of memory.")
    assert answer.footer.stats.text.endswith("stopped early")
    assert answer.footer.notes == ("The worker ran out of memory.",)
    assert transcript.answer_text("t").startswith("Under section")
    assert colour("danger") in colours(enlarged(answer.footer.stats))
    # Before its first token.
    transcript.begin_answer("u")
    transcript.show_progress("u", PrefillProgress("r", 100, 5000, 0, 9.0))
    transcript.finish_answer("u", None, "Cancelled.")
    assert transcript.answer("u").card is None
    assert transcript.answer("u").footer.stats.text == "stopped early"


def test_actions_show_on_the_newest_answer_and_on_hover(transcript: Transcript, qtbot: QtBot) -> None:
    first = stream(transcript, "One.", "1")
    transcript.finish_answer("1", finished())
    second = stream(transcript, "Two.", "2")
    assert first.footer.buttons[0].is_revealed
    transcript.finish_answer("2", finished())
    assert not first.footer.buttons[0].is_revealed
    assert second.footer.buttons[0].is_revealed
    first.footer.buttons[0].setFocus()
    assert first.footer.buttons[0].is_revealed


def test_each_figure_can_be_copied(transcript: Transcript, qtbot: QtBot) -> None:
    answer = stream(transcript, "Two words")
    transcript.finish_answer(
        "t", finished(Stats(tokens=2, prompt_tokens=9, read_tokens=9, tokens_per_s=50.0))
    )
    stats = answer.footer.stats
    assert stats.shown_text == "50.0 tok/s · 2 tokens · read all 9 tokens"
    QApplication.sendEvent(answer, QEnterEvent(QPointF(), QPointF(), QPointF()))
    assert stats.shown_text == stats.text
    found = [stats.part_at(QPointF(x, 8)) for x in range(0, 700, 4)]
    texts = [part.text for part in dict.fromkeys(found) if part]
    assert texts[:3] == ["50.0 tok/s", "TTFT 0.00 s", "2 tokens"]
    assert stats.part_at(QPointF(5, 60)) is None
    at = QPoint(4, 8)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Mouse, at, stats.mapToGlobal(at))
    QApplication.sendEvent(stats, event)
    menu = stats.findChild(QMenu)
    assert [action.text() for action in menu.actions()] == ["Copy “50.0 tok/s”", "Copy All Figures"]
    menu.actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == "50.0 tok/s"
    menu.actions()[1].trigger()
    assert QGuiApplication.clipboard().text() == stats.text
    menu.hide()


def test_pointing_at_figures_says_why_and_what_does_not_fit(transcript: Transcript) -> None:
    answer = stream(transcript, FERRY)
    transcript.finish_answer("t", finished(reading_reason="9 new tokens are quickly read"))
    stats = answer.footer.stats

    def pointed(x: int) -> str:
        at = QPoint(x, 8)
        QApplication.sendEvent(stats, QHelpEvent(QEvent.Type.ToolTip, at, stats.mapToGlobal(at)))
        return QToolTip.text()

    stats.resize(700, stats.height_for(700))
    QApplication.sendEvent(answer, QEnterEvent(QPointF(), QPointF(), QPointF()))
    where = {part.text: x for x in range(0, 700, 4) if (part := stats.part_at(QPointF(x, 8)))}
    assert pointed(where["3 tokens"]) == ""
    assert pointed(where["read all 9 tokens"]) == "9 new tokens are quickly read."
    assert stats.accessibleDescription() == "9 new tokens are quickly read."
    QApplication.sendEvent(answer, QEvent(QEvent.Type.Leave))
    height = stats.height_for(260)
    stats.resize(260, height)
    QApplication.sendEvent(answer, QEnterEvent(QPointF(), QPointF(), QPointF()))
    assert stats.height_for(260) == height
    assert "mean" in stats.text
    assert "mean" not in stats.shown_text
    assert pointed(4) == stats.text
    QToolTip.hideText()
