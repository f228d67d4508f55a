"""The whole window over a real process, with a worker that does as it is asked."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication

from app.chat.intents import Branch
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MINIMUM_SIZE, MainWindow
from app.store.preferences import PreferencesFile
from core.events import Attachment
from tests.app.hand import Hand
from tests.app.stage import (
    Stage,
    answer_view,
    answering,
    asked,
    click,
    gone,
    kill,
    last,
    press,
    ready,
    shown,
    stop,
    until,
)

CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


async def test_one_question_and_its_answer(stage: Stage) -> None:
    window = await stage.open()
    views = window.views
    assert views.composer.state == "later"
    assert "starting" in views.hint.text()
    assert views.pages.currentWidget() is views.first_page
    assert views.strip.isVisible()
    await ready(window)
    assert views.header.subtitle == "Fake 1M, drafting with Auto"
    assert views.header.title == "New chat"
    ask(window, "Please write 40 words")
    assert (views.composer.state, views.composer.text) == ("busy", "")
    await ready(window)
    answer = last(window)
    assert (answer.status, len(answer.tokens)) == ("finished", 40)
    assert {token.origin for token in answer.tokens} == {"accepted", "bonus", "normal"}
    assert shown(window) == answer.text
    assert answer.text.startswith("ECHO 1: w1 w2")
    assert views.pages.currentWidget() is views.transcript
    assert views.header.title == "Please write 40 words"
    assert views.composer.state == "idle"
    assert views.strip.isVisible()
    assert views.legend.isVisible()
    assert views.banner.isHidden()


async def test_killed_in_mid_answer_and_restarted(window: MainWindow) -> None:
    views = window.views
    ask(window, "write 100000 slowly")
    views.composer.set_text("typed meanwhile")
    await until(lambda: bool(window.controller.chats.open.turns) and len(last(window).tokens) > 20)
    pid = await kill(window)

    written = last(window)
    assert written.status == "cut_off"
    assert shown(window) == written.text
    trouble = views.banner.trouble
    assert views.banner.isVisible()
    assert trouble.title == "The engine stopped unexpectedly."
    assert "SIGKILL" in trouble.text
    assert f"with the {len(written.tokens):,} tokens written so far" in trouble.text
    assert views.header.subtitle == "Fake 1M, engine stopped"
    assert views.composer.state == "blocked"
    assert views.composer.text == "typed meanwhile"
    assert views.hint.isVisible()
    assert views.hint.text() == "Sending is paused until the engine is back. Your draft is kept."
    await press(window, Qt.Key.Key_Return)
    assert len(window.controller.chats.open.turns) == 1

    await click(views.banner.remedy_button)
    assert views.banner.isHidden()
    await ready(window)
    assert window.worker.pid != pid
    assert shown(window) == written.text
    assert views.composer.text == "typed meanwhile"
    await asked(window, "write 8")
    # The question, the partial answer, the new question.
    assert last(window).text.startswith("ECHO 3: w1")
    assert [turn.answer.status for turn in window.controller.chats.open.turns] == ["cut_off", "finished"]


async def test_a_worker_that_dies_by_itself_shows_its_last_words(window: MainWindow) -> None:
    ask(window, "die 5")
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert len(last(window).tokens) == 5
    assert "5 tokens" in window.views.banner.accessibleName()
    await click(window.views.banner.details_button)
    assert window.views.banner.log_view.toPlainText() == "about to be killed"
    # The banner can go and the worker can still be restarted.
    await click(window.views.banner.close_button)
    assert window.views.banner.isHidden()
    window.controller.restart()
    await ready(window)


async def test_refused_requests_change_nothing_and_an_earlier_question_branches_off(
    window: MainWindow,
) -> None:
    views = window.views
    views.composer.attach(Attachment("big.txt", "much text"))
    await until(lambda: bool(views.composer.attachments[0].tokens))
    await asked(window, "refuse this")
    assert views.composer.text == "refuse this"
    assert [(each.name, each.text) for each in views.composer.attachments] == [("big.txt", "much text")]
    assert window.controller.chats.open.turns == ()
    assert views.pages.currentWidget() is views.first_page
    # One warning, where it can be mended, and nothing is sent until it is.
    assert views.banner.isHidden()
    assert views.composer.notice.text == "808 tokens over this model’s limit of 8,192."
    assert not views.composer.send_button.isEnabled()
    await until(lambda: "Remove document (2 tokens)" in [b.text() for b in views.composer.notice.buttons])
    views.composer.set_text("refuse less")
    assert views.composer.notice.isHidden()
    assert views.composer.send_button.isEnabled()
    # The session lives.
    views.composer.clear()
    assert (await asked(window, "write 4")).status == "finished"
    assert views.banner.isHidden()
    # What is being typed is not overwritten: then the question stays.
    ask(window, "refuse this")
    views.composer.set_text("something new")
    await ready(window)
    assert views.composer.text == "something new"
    assert (last(window).status, Hand(window).questions) == ("failed", ["write 4", "refuse this"])

    window.controller.chat.start()
    controller = window.controller
    await asked(window, "write 5")
    await asked(window, "write 9")
    whole = controller.chats.open
    await click(answer_view(window, 0).footer.buttons["redo"])
    await until(lambda: controller.chats.open.id != whole.id)
    await ready(window)
    branch = controller.chats.open
    assert [turn.user.content for turn in branch.turns] == ["write 5"]
    assert shown(window) == last(window).text
    assert controller.chats.get(whole.id) == whole
    # The same chat, as if its question were one that is refused now.
    (turn,) = branch.turns
    refused = replace(turn, user=replace(turn.user, content="refuse"))
    controller.chats.keep(branch.with_turns((refused,)))
    controller.asking.regenerate()
    await ready(window)
    assert controller.chats.open.turns == (refused,)
    assert shown(window) == turn.answer.text
    assert window.views.composer.text == ""
    assert window.views.banner.isVisible()
    views.transcript.intent.emit(Branch(refused.id))
    assert controller.chats.open.id != branch.id
    assert (controller.chats.open.title, controller.chats.open.turns) == ("write 5 (2) (2)", (refused,))


async def test_an_answer_that_fails_half_way_stays_and_a_smaller_context_is_offered(
    window: MainWindow,
) -> None:
    views, pid = window.views, window.worker.pid
    await asked(window, "break 6")
    assert (last(window).status, len(last(window).tokens)) == ("failed", 6)
    assert shown(window) == last(window).text
    assert views.banner.trouble.remedy == "restart"
    assert views.composer.text == ""
    assert views.banner.smaller_button.text() == "Smaller context: 4,096 tokens"
    await click(views.banner.smaller_button)
    assert views.banner.isHidden()
    assert views.inspector.settings.prefill.context_tokens == 4096
    assert views.composer.pill.limit_tokens == 4096
    assert window.worker.pid == pid  # it lives, so it stays
    ask(window, "die 5")
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert views.banner.smaller_button.text() == "Smaller context: 2,048 tokens"
    await click(views.banner.smaller_button)
    await ready(window)  # a new worker
    assert views.composer.pill.limit_tokens == 2048
    window.controller.chat.start()
    assert views.composer.pill.limit_tokens == 8192  # it was for that chat


async def test_a_line_that_is_no_event_is_named_and_the_answer_goes_on(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    window = await stage.ready()
    await asked(window, "garble and write 12")
    assert len(last(window).tokens) == 13
    assert "stray word" in window.views.banner.trouble.text
    await stage.close()
    assert "broke the protocol" in caplog.text


async def test_a_model_that_cannot_be_loaded_can_be_tried_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "fail")
    monkeypatch.setenv("FAKE_LOAD_ONCE", str(tmp_path / "tried"))

    window = await stage.open(model="nonsense")
    banner = window.views.banner
    await until(lambda: banner.trouble is not None)
    assert banner.trouble.title == "The model could not be loaded."
    assert "no model nonsense" in banner.trouble.text
    assert "no model is loaded" in window.views.hint.text()
    assert window.views.first_page.title == "No model is loaded."
    await click(banner.remedy_button)
    await ready(window)
    assert banner.isHidden()


async def test_death_at_the_start_and_while_loading(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    window = await stage.open(command=["/nowhere/draftlight-worker"])
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert window.views.banner.trouble.title == "The engine could not be started."
    monkeypatch.setenv("FAKE_LOAD", "die")
    window = await stage.open()
    await until(lambda: window.controller.link.phase is Phase.DEAD)
    assert window.views.first_page.title == "The engine has stopped."
    assert "while the model was loading" in window.views.banner.trouble.title
    assert window.views.banner.trouble.log == ("no room for the weights",)


async def test_a_start_model_that_kills_the_worker_twice_is_not_loaded_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "die")
    monkeypatch.setenv("FAKE_SUGGESTED", "8")
    monkeypatch.setenv("FAKE_LOAD_ONLY", "deadly")

    preferences = PreferencesFile(tmp_path)
    preferences.change(model="deadly")
    assert preferences.flush()
    window = await stage.open(model="", folder=tmp_path)
    controller, banner = window.controller, window.views.banner
    for _ in range(2):
        await until(lambda: controller.link.phase is Phase.DEAD)
        await click(banner.remedy_button)
    await until(lambda: controller.link.phase is Phase.NO_MODEL)
    assert "stopped twice while it loaded" in banner.trouble.text
    assert controller.home.preferences.now.load_deaths == 2
    window = await stage.open(model="", folder=tmp_path)
    controller = window.controller
    await until(lambda: controller.link.phase is Phase.NO_MODEL)
    assert window.views.banner.trouble
    controller.models.load("starter")
    await ready(window)
    assert controller.home.preferences.now.load_deaths == 0


async def test_chats_and_switching_in_mid_answer(window: MainWindow) -> None:
    views, controller = window.views, window.controller
    await asked(window, "write 5")
    first = controller.chats.open.id
    await press(window, Qt.Key.Key_N, CTRL)
    second = controller.chats.open.id
    assert second != first
    assert views.pages.currentWidget() is views.first_page
    await answering(window, tokens=10)
    views.composer.set_text("draft of the second")
    views.sidebar.chat_selected.emit(first)
    assert views.header.title == "write 5"
    assert views.composer.text == ""
    assert shown(window) == last(window).text == controller.chats.get(first).turns[0].answer.text
    assert views.composer.state == "later"
    assert "is being answered" in views.hint.text()
    before = len(controller.chats.get(second).turns[0].answer.tokens)
    await until(lambda: len(controller.chats.get(second).turns[0].answer.tokens) > before + 10)
    views.sidebar.chat_selected.emit(second)
    assert views.composer.text == "draft of the second"
    assert views.composer.state == "busy"
    assert shown(window) == last(window).text
    answer = await stop(window)
    assert shown(window) == answer.text
    assert (answer.status, answer.finished.stats.tokens) == ("stopped", len(answer.tokens))
    assert [chat.id for chat in controller.chats.listed()] == [second, first]
    # One that ends in another chat is there afterwards.
    ask(window, "write 60 slowly")
    controller.chat.select(first)
    await ready(window)
    assert views.composer.state == "idle"
    controller.chat.select(second)
    assert last(window).status == "finished"
    assert shown(window) == last(window).text


async def test_sizes(window: MainWindow) -> None:
    views = window.views
    assert (window.width(), window.height()) == (1440, 900)
    window.resize(1100, 700)
    assert views.side.isHidden()
    assert views.sidebar.isVisible()
    window.resize(100, 100)
    assert (window.width(), window.height()) == (900, 600)
    assert views.sidebar.isHidden()
    await click(views.header.inspector_button)
    assert views.side.isVisible()
    await asyncio.sleep(0.05)
    assert views.composer.width() <= 752
    window.resize(1440, 900)
    await asyncio.sleep(0.05)
    assert views.composer.width() == 752
    content_left, content_width = views.header.x(), views.header.width()
    middle = views.composer.x() + views.composer.width() / 2
    assert abs(middle - (content_left + content_width / 2)) <= 1


async def test_closing_in_mid_answer_and_before_the_worker_said_anything(stage: Stage) -> None:
    window = await stage.ready()
    await answering(window)
    pid = window.worker.pid
    await press(window, Qt.Key.Key_W, CTRL)
    assert window.isHidden()
    await window.closed()
    assert gone(pid)
    window = await stage.open()
    window.close()


@pytest.mark.sweep
async def test_the_window_does_not_wander(stage: Stage, tmp_path: Path) -> None:
    window = await stage.open(folder=tmp_path)
    window.move(40, 50)
    place = window.pos()
    for _ in range(2):
        window = await stage.open(folder=tmp_path)
        assert window.pos() == place


def test_a_first_window_is_no_larger_than_the_screen(qapp: QApplication) -> None:
    window = MainWindow()
    screen = window.screen().availableGeometry()
    assert window.height() <= max(MINIMUM_SIZE.height(), screen.height() - 40)
    assert window.width() <= max(MINIMUM_SIZE.width(), screen.width())
    window.controller.home.close()
    window.deleteLater()


async def test_a_panel_over_the_content_goes_by_escape_by_a_click_and_by_its_button(
    window: MainWindow,
) -> None:
    views, columns = window.views, window.columns
    window.resize(1024, 700)
    await until(lambda: columns.arrangement.inspector_px == 0)
    button = views.composer.send_button
    corner = button.mapTo(window, button.rect().bottomRight()) - QPoint(8, 8)
    assert window.childAt(corner) is button
    for leave in ("escape", "click"):
        await click(views.header.inspector_button)
        assert columns.arrangement.inspector_over
        assert not views.composer.edit.hasFocus()
        if leave == "escape":
            await press(window, Qt.Key.Key_Escape)
        else:
            await click(window.childAt(columns.mapTo(window, QPoint(200, 400))))
        assert columns.arrangement.inspector_px == 0
        assert views.composer.edit.hasFocus()
        assert window.childAt(corner) is button
    for zoom_pct in (150, 100):
        window.app_settings.set("look.zoom_pct", zoom_pct)
        for show, tab, button in (
            (columns.show_inspector, "settings", views.side.close_button),
            (columns.show_inspector, "document", views.side.close_button),
            (columns.show_sidebar, "settings", views.sidebar.hide_button),
        ):
            views.side.show_tab(tab)
            show(True)
            assert columns.arrangement.inspector_over or columns.arrangement.sidebar_over
            assert window.childAt(button.mapTo(window, button.rect().center())) is button
            await click(button)
            assert not columns.arrangement.inspector_over
            assert not columns.arrangement.sidebar_over
            assert views.composer.edit.hasFocus()
    window.resize(1440, 900)
    columns.show_inspector(True)
    assert views.side.close_button.isHidden()  # the button that opened it can be seen
    await press(window, Qt.Key.Key_Escape)
    assert columns.arrangement.inspector_px > 0  # what stands beside the content stays
