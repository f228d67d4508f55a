"""The whole window over a real process, with a worker that does as it is asked."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QApplication

from app.chat.intents import Regenerate
from app.launch.scenario import ask
from app.session.turn.link_state import Phase
from app.shell.window import MINIMUM_SIZE, MainWindow
from app.store.preferences import PreferencesFile
from core.events import Attachment
from core.settings import assign
from tests.app.stage import FAKE, click, gone, last, play, press, ready, shown, until

CTRL, SHIFT, ALT = (
    Qt.KeyboardModifier.ControlModifier,
    Qt.KeyboardModifier.ShiftModifier,
    Qt.KeyboardModifier.AltModifier,
)


async def test_one_question_and_its_answer(window: MainWindow) -> None:
    views = window.views
    assert views.composer.state == "later"
    assert "starting" in views.hint.text()
    assert views.pages.currentWidget() is views.first_page
    assert views.strip.isHidden()
    await ready(window)
    assert views.header.subtitle == "Fake 1M, drafting with Auto"
    assert views.header.title == "New chat"
    assert views.composer.state == "idle"
    ask(window, "Please write 40 words")
    assert views.composer.state == "busy"
    assert views.composer.text == ""
    await ready(window)
    answer = last(window)
    assert answer.status == "finished"
    assert len(answer.tokens) == 40
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
    await ready(window)
    ask(window, "write 100000 slowly")
    views.composer.set_text("typed meanwhile")
    await until(lambda: bool(window.controller.chats.open.turns) and len(last(window).tokens) > 20)
    pid = window.worker.pid
    assert pid
    os.kill(pid, signal.SIGKILL)
    await until(lambda: window.controller.link.phase is Phase.DEAD)

    written = last(window)
    assert written.status == "cut_off"
    assert shown(window) == written.text
    trouble = views.banner.trouble
    assert trouble
    assert views.banner.isVisible()
    assert trouble.title == "The worker stopped unexpectedly."
    assert "SIGKILL" in trouble.text
    assert f"with the {len(written.tokens):,} tokens written so far" in trouble.text
    assert views.header.subtitle == "Fake 1M, worker stopped"
    assert views.composer.state == "blocked"
    assert views.composer.text == "typed meanwhile"
    assert views.hint.isVisible()
    assert views.hint.text() == "Sending is paused until the worker is back. Your draft is kept."
    await press(window, Qt.Key.Key_Return)
    assert len(window.controller.chats.open.turns) == 1

    await click(views.banner.remedy_button)
    assert views.banner.isHidden()
    await ready(window)
    assert window.worker.pid != pid
    assert shown(window) == written.text
    assert views.composer.text == "typed meanwhile"
    ask(window, "write 8")
    await ready(window)
    # The question, the partial answer, the new question.
    assert last(window).text.startswith("ECHO 3: w1")
    assert [turn.answer.status for turn in window.controller.chats.open.turns] == ["cut_off", "finished"]


async def test_a_worker_that_dies_by_itself_shows_its_last_words(window: MainWindow) -> None:
    await ready(window)
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


async def test_stop_keeps_what_is_written(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 5)
    await press(window, Qt.Key.Key_Escape)
    await ready(window)
    answer = last(window)
    assert answer.status == "stopped"
    assert shown(window) == answer.text
    assert answer.finished
    assert answer.finished.stats.tokens == len(answer.tokens)
    assert window.views.composer.state == "idle"


@pytest.mark.parametrize("with_period", [True, False])
async def test_stop_by_key_from_anywhere(window: MainWindow, with_period: bool) -> None:
    await ready(window)
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 2)
    window.views.sidebar.setFocus()
    window.views.composer.edit.clearFocus()
    if with_period:
        await press(window, Qt.Key.Key_Period, CTRL)
    else:
        await press(window, Qt.Key.Key_Escape)
    await ready(window)
    assert last(window).status == "stopped"


async def test_a_refused_request_gives_the_text_back(window: MainWindow) -> None:
    views = window.views
    await ready(window)
    views.composer.attach(Attachment("big.txt", "much text"))
    ask(window, "refuse this")
    await ready(window)
    assert views.composer.text == "refuse this"
    assert views.composer.attachments == (Attachment("big.txt", "much text"),)
    assert window.controller.chats.open.turns == ()
    assert views.pages.currentWidget() is views.first_page
    # One warning, where it can be mended, and nothing is sent until it is.
    assert views.banner.isHidden()
    assert views.composer.notice.text == "808 tokens over this model’s limit of 8,192."
    assert not views.composer.send_button.isEnabled()
    views.composer.set_text("refuse less")
    assert views.composer.notice.isHidden()
    assert views.composer.send_button.isEnabled()
    # The session lives.
    views.composer.clear()
    ask(window, "write 4")
    await ready(window)
    assert views.banner.isHidden()
    assert last(window).status == "finished"


async def test_a_refused_request_does_not_overwrite_what_is_being_typed(window: MainWindow) -> None:
    await ready(window)
    ask(window, "refuse this")
    window.views.composer.set_text("something new")
    await ready(window)
    assert window.views.composer.text == "something new"
    assert last(window).status == "failed"
    assert window.controller.chats.open.turns[-1].user.content == "refuse this"


async def test_a_smaller_context_where_memory_is_short(window: MainWindow) -> None:
    views = window.views
    await ready(window)
    pid = window.worker.pid
    ask(window, "break 6")
    await ready(window)
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


async def test_an_answer_that_fails_half_way_stays(window: MainWindow) -> None:
    await ready(window)
    ask(window, "break 6")
    await ready(window)
    assert last(window).status == "failed"
    assert len(last(window).tokens) == 6
    assert shown(window) == last(window).text
    assert window.views.banner.trouble
    assert window.views.banner.trouble.remedy == "restart"
    assert window.views.composer.text == ""


def test_a_silent_worker_is_named_and_can_be_replaced(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        views = window.views
        await ready(window)
        ask(window, "mute 3")
        await until(lambda: views.banner.trouble is not None)
        assert views.banner.trouble
        assert views.banner.trouble.title == "The worker does not respond."
        pid = window.worker.pid
        assert pid
        await click(views.banner.remedy_button)
        assert last(window).status == "cut_off"
        assert len(last(window).tokens) == 3
        await ready(window)
        assert gone(pid)

    play(qapp, scene, silence_s=0.5)


def test_a_line_that_is_no_event_is_named_and_the_answer_goes_on(
    qapp: QApplication, caplog: pytest.LogCaptureFixture
) -> None:
    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "garble and write 12")
        await ready(window)
        assert len(last(window).tokens) == 13
        assert window.views.banner.trouble
        assert "stray word" in window.views.banner.trouble.text

    play(qapp, scene)
    assert "broke the protocol" in caplog.text


def test_a_model_that_cannot_be_loaded_can_be_tried_again(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "fail")
    monkeypatch.setenv("FAKE_LOAD_ONCE", str(tmp_path / "tried"))

    async def scene(window: MainWindow) -> None:
        banner = window.views.banner
        await until(lambda: banner.trouble is not None)
        assert banner.trouble
        assert banner.trouble.title == "The model could not be loaded."
        assert "no model nonsense" in banner.trouble.text
        assert "no model is loaded" in window.views.hint.text()
        await click(banner.remedy_button)
        await ready(window)
        assert banner.isHidden()

    play(qapp, scene, model="nonsense")


def test_death_while_loading(qapp: QApplication, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_LOAD", "die")

    async def scene(window: MainWindow) -> None:
        await until(lambda: window.controller.link.phase is Phase.DEAD)
        assert window.views.banner.trouble
        assert "while the model was loading" in window.views.banner.trouble.title
        assert window.views.banner.trouble.log == ("no room for the weights",)

    play(qapp, scene)


def test_a_start_model_that_kills_the_worker_twice_is_not_loaded_again(
    qapp: QApplication, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("FAKE_LOAD", "die")
    monkeypatch.setenv("FAKE_SUGGESTED", "8")
    monkeypatch.setenv("FAKE_LOAD_ONLY", "deadly")

    async def scene(window: MainWindow) -> None:
        controller, banner = window.controller, window.views.banner
        for _ in range(2):
            await until(lambda: controller.link.phase is Phase.DEAD)
            await click(banner.remedy_button)
        await until(lambda: controller.link.phase is Phase.NO_MODEL)
        assert banner.trouble
        assert "stopped twice while it loaded" in banner.trouble.text
        assert controller.home.preferences.now.load_deaths == 2

    async def next_start(window: MainWindow) -> None:
        controller = window.controller
        await until(lambda: controller.link.phase is Phase.NO_MODEL)
        assert window.views.banner.trouble
        controller.models.load("starter")
        await ready(window)
        assert controller.home.preferences.now.load_deaths == 0

    preferences = PreferencesFile(tmp_path)
    preferences.change(model="deadly")
    assert preferences.flush()
    play(qapp, scene, model="", folder=tmp_path)
    play(qapp, next_start, model="", folder=tmp_path)


def test_a_worker_that_cannot_be_started(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        await until(lambda: window.controller.link.phase is Phase.DEAD)
        assert window.views.banner.trouble
        assert window.views.banner.trouble.title == "The worker could not be started."

    play(qapp, scene, command=["/nowhere/draftlight-worker"])


async def test_chats_and_switching_in_mid_answer(window: MainWindow) -> None:
    views, controller = window.views, window.controller
    await ready(window)
    ask(window, "write 5")
    await ready(window)
    first = controller.chats.open.id
    await press(window, Qt.Key.Key_N, CTRL)
    second = controller.chats.open.id
    assert second != first
    assert views.pages.currentWidget() is views.first_page
    ask(window, "write 100000 slowly")
    await until(lambda: len(last(window).tokens) > 10)
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
    controller.asking.stop()
    await ready(window)
    assert shown(window) == last(window).text
    assert last(window).status == "stopped"
    assert [chat.id for chat in controller.chats.listed()] == [second, first]


async def test_an_answer_that_ends_in_another_chat_is_there_afterwards(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 60 slowly")
    chat = window.controller.chats.open.id
    await until(lambda: len(last(window).tokens) > 3)
    window.controller.chat.start()
    await ready(window)
    assert window.views.composer.state == "idle"
    assert window.controller.chats.open.turns == ()
    window.controller.chat.select(chat)
    assert last(window).status == "finished"
    assert shown(window) == last(window).text


async def test_answering_again_replaces_the_last_answer(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 5")
    await ready(window)
    ask(window, "write 9")
    await ready(window)
    old = [turn.id for turn in window.controller.chats.open.turns]
    await press(window, Qt.Key.Key_R, CTRL)
    await until(lambda: window.controller.chats.open.turns[-1].id != old[1])
    await ready(window)
    turns = window.controller.chats.open.turns
    assert len(turns) == 2
    assert turns[0].id == old[0]
    assert turns[1].id != old[1]
    assert turns[1].answer.status == "finished"
    assert shown(window).startswith("ECHO 3:")


async def test_answering_an_earlier_question_again_branches_off(window: MainWindow) -> None:
    await ready(window)
    ask(window, "write 5")
    await ready(window)
    ask(window, "write 9")
    await ready(window)
    whole = window.controller.chats.open
    window.views.transcript.intent.emit(Regenerate(whole.turns[0].id))
    await ready(window)
    branch = window.controller.chats.open
    assert branch.id != whole.id
    assert [turn.user.content for turn in branch.turns] == ["write 5"]
    assert shown(window) == last(window).text
    assert window.controller.chats.get(whole.id) == whole


async def test_a_regeneration_that_is_refused_brings_the_old_answer_back(window: MainWindow) -> None:
    controller = window.controller
    await ready(window)
    ask(window, "write 5")
    await ready(window)
    chat = controller.chats.open
    # The same chat, as if its question were one that is refused now.
    turn = chat.turns[0]
    refused = replace(turn, user=replace(turn.user, content="refuse"))
    controller.chats.keep(chat.with_turns((refused,)))
    controller.asking.regenerate()
    await ready(window)
    assert controller.chats.open.turns == (refused,)
    assert shown(window) == turn.answer.text
    assert window.views.composer.text == ""
    assert window.views.banner.isVisible()


async def test_settings_of_the_panel_go_with_the_request(window: MainWindow) -> None:
    await ready(window)
    inspector = window.views.inspector
    inspector.set_settings(assign(inspector.settings, "drafting.drafter", "off"))
    inspector.settings_changed.emit(inspector.settings)
    assert window.views.header.subtitle == "Fake 1M, drafting is off"
    ask(window, "write 3")
    await ready(window)
    finished = last(window).finished
    assert finished
    assert finished.effective.drafter == "off"


async def test_typed_text_and_chips_are_counted_while_idle(window: MainWindow) -> None:
    composer = window.views.composer
    await ready(window)
    assert composer.pill.limit_tokens == 8192
    composer.attach(Attachment("a.txt", "one two three"))
    composer.set_text("four five")
    (chip,) = composer.chips.chips
    await until(lambda: chip.size_text == "3 tokens")
    assert composer.pill.used_tokens == 5
    ask(window, "write 4")
    await ready(window)
    assert composer.pill.used_tokens == last(window).finished.stats.context_used_tokens  # type: ignore[union-attr]
    composer.set_text("six")
    context = window.controller.chats.open.context_used_tokens
    await until(lambda: composer.pill.used_tokens == context + 1)
    window.controller.chat.start()
    assert composer.pill.used_tokens == 0


async def test_keys(window: MainWindow) -> None:
    views = window.views
    await ready(window)
    assert views.header.tint.value == "hover"
    for expected in ("never", "always", "hover"):
        await press(window, Qt.Key.Key_T, CTRL)
        assert views.header.tint.value == expected
        assert views.legend.is_wanted == (expected != "never")  # the first page has none
    await press(window, Qt.Key.Key_I, CTRL | ALT)
    assert views.side.isHidden()
    assert not views.header.inspector_button.isChecked()
    await press(window, Qt.Key.Key_I, CTRL | ALT)
    assert views.side.isVisible()
    if sys.platform != "darwin":
        await press(window, Qt.Key.Key_S, CTRL | ALT)
        assert views.sidebar.isHidden()
        assert views.header.sidebar_button.isVisible()
        await click(views.header.sidebar_button)
        assert views.sidebar.isVisible()
    await press(window, Qt.Key.Key_R, CTRL)
    assert window.controller.link.phase is Phase.READY  # nothing to answer again


async def test_sizes(window: MainWindow) -> None:
    views = window.views
    assert (window.width(), window.height()) == (1440, 900)
    window.resize(1100, 700)
    assert views.side.isHidden()
    assert views.sidebar.isVisible()
    window.resize(100, 100)
    assert (window.width(), window.height()) == (980, 640)
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


def test_closing_in_mid_answer_leaves_nothing(qapp: QApplication) -> None:
    pids: list[int] = []

    async def scene(window: MainWindow) -> None:
        await ready(window)
        ask(window, "write 100000 slowly")
        await until(lambda: len(last(window).tokens) > 3)
        assert window.worker.pid
        pids.append(window.worker.pid)
        await press(window, Qt.Key.Key_W, CTRL)
        assert window.isHidden()
        await window.closed()

    play(qapp, scene)
    assert gone(pids[0])


def test_closing_before_the_worker_said_anything(qapp: QApplication) -> None:
    async def scene(window: MainWindow) -> None:
        window.close()

    play(qapp, scene, command=FAKE)


async def test_answer_again_by_mouse(window: MainWindow) -> None:
    """The button that is clicked goes away with its answer."""
    await ready(window)
    ask(window, "write 4")
    await ready(window)
    (turn,) = window.controller.chats.open.turns
    answer = window.views.transcript.answer(turn.id)
    assert answer
    await click(answer.footer.buttons[1])
    await until(lambda: window.controller.chats.open.turns[-1].answer.status == "finished")
    assert window.controller.chats.open.turns[-1].id != turn.id


def test_the_window_does_not_wander(qapp: QApplication, tmp_path: Path) -> None:
    places: list[QPoint] = []

    async def scene(window: MainWindow) -> None:
        window.move(40, 50)
        places.append(window.pos())

    async def again(window: MainWindow) -> None:
        assert window.pos() == places[0]

    play(qapp, scene, folder=tmp_path)
    for _ in range(3):
        play(qapp, again, folder=tmp_path)


def test_a_first_window_is_no_larger_than_the_screen(qapp: QApplication) -> None:
    window = MainWindow()
    screen = window.screen().availableGeometry()
    assert window.height() <= max(MINIMUM_SIZE.height(), screen.height() - 40)
    assert window.width() <= max(MINIMUM_SIZE.width(), screen.width())
    window.controller.home.close()
    window.deleteLater()


async def test_at_1024_a_panel_leaves_send_free_and_goes_by_escape_and_by_a_click(window: MainWindow) -> None:
    views, columns = window.views, window.columns
    await ready(window)
    window.resize(1024, 700)
    await until(lambda: columns.arrangement.inspector_px == 0)
    button = views.composer.send_button
    corner = button.mapTo(window, button.rect().bottomRight())
    assert window.childAt(corner - QPoint(8, 8)) is button
    for leave in ("escape", "click"):
        await click(views.header.inspector_button)
        assert columns.arrangement.inspector_over
        assert not views.composer.edit.hasFocus()
        if leave == "escape":
            await press(window, Qt.Key.Key_Escape)
        else:
            beside = window.childAt(columns.mapTo(window, QPoint(200, 400)))
            await click(beside)
        assert columns.arrangement.inspector_px == 0
        assert views.composer.edit.hasFocus()
        assert window.childAt(corner - QPoint(8, 8)) is button


async def test_each_panel_over_the_content_has_a_button_that_closes_it(window: MainWindow) -> None:
    views, columns = window.views, window.columns
    await ready(window)
    window.resize(1024, 700)
    for zoom_pct in (150, 100):
        window.app_settings.set("look.zoom_pct", zoom_pct)
        for show, tab, button in (
            (columns.show_inspector, "settings", views.side.close_button),
            (columns.show_inspector, "document", views.side.close_button),
            (columns.show_sidebar, "settings", views.sidebar.hide_button),
        ):
            views.side.show_tab(tab)  # type: ignore[arg-type]
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
