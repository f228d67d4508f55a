"""A question, its calls, the permission, the results and the answer, with a real tool server.

The worker is a fake one that says what the question has; the server notes each call that it carried out.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.chat.intents import AllowCall, ChooseTools, ContinueAnswer, RefuseCall, StopAnswer
from app.session import strings
from app.session.chats.conversation import Answer
from app.session.tools.calls import CallRecord, ChosenTool
from app.shell.window import MainWindow
from core.events import CountTokens, Generate
from tests.app.fake_worker import said
from tests.app.hand import Hand
from tests.app.journeys.asking.test_images import picture, read
from tests.app.stage import Stage, ready, sent, until
from tests.core.tools.serving import noted, plain


def written(name: str, **arguments: object) -> str:
    """A call as the model writes it."""
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def answer_of(window: MainWindow) -> Answer:
    turns = window.controller.chats.open.turns
    return turns[-1].answer if turns else Answer()


async def with_tools(window: MainWindow, folder: Path, *tools: str) -> None:
    """Switch a server on, and let the open chat use `tools` of it."""
    servers = window.controller.tool_servers
    if servers.entry("plain") is None:
        servers.put(plain(folder))
        servers.set_on("plain", True)
    await until(lambda: servers.state("plain").phase == "ready", what="the server is not ready")
    chosen = tuple(ChosenTool("plain", tool) for tool in tools)
    window.controller.asking.on_intent(ChooseTools(chosen))


async def asked(window: MainWindow, *texts: str) -> list[CallRecord]:
    """Ask for an answer with calls, and wait until they wait."""
    await ready(window)
    await Hand(window).send(f"{said(' '.join(texts))} https://own.example/a")
    await until(lambda: bool(answer_of(window).calls), what="no call")
    return list(answer_of(window).calls)


def allow(window: MainWindow, call: CallRecord, scope: str = "once", arguments: str = "") -> None:
    turn_id = window.controller.chats.open.turns[-1].id
    intent = AllowCall(turn_id, call.id, scope, arguments or call.arguments)  # type: ignore[arg-type]
    window.controller.asking.on_intent(intent)


async def over(window: MainWindow) -> Answer:
    await until(lambda: answer_of(window).over, what="the answer does not end")
    await ready(window)
    return answer_of(window)


@pytest.mark.sweep
async def test_a_call_runs_once_it_is_allowed_and_the_answer_goes_on(
    window: MainWindow, tmp_path: Path
) -> None:
    assert window.controller.tool_servers.client.pid is None
    counted = sent(window, CountTokens)
    await with_tools(window, tmp_path, "echo")
    await until(lambda: any(each.prompt and each.prompt.tools for each in counted), what="not counted")
    (call,) = await asked(window, "I look. ", written("echo", city="Bern"))
    assert (call.state, call.server, call.tool) == ("waiting", "plain", "echo")
    assert noted(tmp_path, "ran") == []
    allow(window, call, arguments='{"city": "Thun"}')
    allow(window, call, arguments='{"city": "Thun"}')
    answer = await over(window)
    assert noted(tmp_path, "ran") == ["echo"]
    (call,) = answer.calls
    assert (call.state, call.result, call.allowed_by) == ("done", '{"city": "Thun"}', "once")
    assert answer.text.endswith("ECHO 3:")
    assert [token.position for token in answer.tokens] == list(range(len(answer.tokens)))


@pytest.mark.sweep
async def test_a_call_that_is_not_allowed_never_runs(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "echo")
    commands = sent(window, Generate)
    first, second = await asked(window, written("echo", n=1), written("echo", n=2))
    turn_id = window.controller.chats.open.turns[-1].id
    window.controller.asking.on_intent(RefuseCall(turn_id, first.id))
    assert answer_of(window).status == "calling"
    window.controller.asking.on_intent(RefuseCall(turn_id, second.id))
    await over(window)
    assert noted(tmp_path, "ran") == []
    last = commands[-1]
    assert [m.content for m in last.messages if m.role == "tool"] == [strings.REFUSED] * 2
    assert [tool.name for tool in last.tools] == ["echo"]


@pytest.mark.sweep
async def test_several_calls_run_together_and_all_results_go_to_the_model(
    window: MainWindow, tmp_path: Path
) -> None:
    await with_tools(window, tmp_path, "slow", "echo")
    slow, quick = await asked(window, written("slow", seconds=1), written("echo", n=1))
    allow(window, slow)
    await until(lambda: "slow" in noted(tmp_path, "ran"))
    allow(window, quick)
    await until(lambda: answer_of(window).calls[1].state == "done")
    assert answer_of(window).calls[0].state == "running"
    answer = await over(window)
    assert [call.result for call in answer.calls] == ["done", '{"n": 1}']


@pytest.mark.sweep
async def test_a_permission_for_the_chat_covers_what_the_person_wrote(
    window: MainWindow, tmp_path: Path
) -> None:
    await with_tools(window, tmp_path, "echo")
    (call,) = await asked(window, written("echo", url="https://own.example/a"))
    allow(window, call, "chat")
    await over(window)
    assert [each.scope for each in window.controller.tool_calls.allowances] == ["chat"]
    # The same address, and a plain word: both are covered.
    await Hand(window).send(said(written("echo", url="https://own.example/a", n=2)))
    await over(window)
    assert answer_of(window).calls[0].allowed_by == "chat"
    (call,) = await asked(window, written("echo", url="https://other.example"))
    assert call.state == "waiting"
    window.controller.asking.on_intent(StopAnswer())
    assert (await over(window)).calls[0].state == "denied"
    window.controller.home.preferences.change(tool_allowances=())
    (call,) = await asked(window, written("echo", n=3))
    assert call.state == "waiting"
    window.controller.asking.on_intent(StopAnswer())
    await over(window)
    assert noted(tmp_path, "ran") == ["echo", "echo"]


async def test_stop_ends_a_running_call_and_what_waits(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "slow", "echo")
    slow, _ = await asked(window, written("slow", seconds=60), written("echo"))
    allow(window, slow)
    await until(lambda: noted(tmp_path, "ran") == ["slow"])
    window.controller.asking.on_intent(StopAnswer())
    answer = await over(window)
    assert [call.state for call in answer.calls] == ["unknown", "denied"]
    await until(lambda: noted(tmp_path, "cancelled") == [""], what="the call was not cancelled")
    window.controller.asking.on_intent(ContinueAnswer())
    await until(lambda: answer_of(window).text.endswith("ECHO 4:"), what="it does not continue")
    await ready(window)
    assert noted(tmp_path, "ran") == ["slow"]


async def test_a_message_waits_for_the_calls(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "echo")
    (call,) = await asked(window, written("echo"))
    hand = Hand(window)
    await hand.send("write 3")
    assert hand.waiting == ["write 3"]
    assert len(hand.questions) == 1
    allow(window, call)
    await until(lambda: len(hand.questions) == 2 and answer_of(window).over)
    assert hand.waiting == []
    await ready(window)


@pytest.mark.sweep
async def test_another_chat_is_answered_while_a_call_waits(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "echo")
    (call,) = await asked(window, written("echo"))
    first = window.controller.chats.open.id
    window.controller.chat.start()
    assert (await Hand(window).ask("write 3")).status == "stopped" or answer_of(window).over
    window.controller.chat.listing.open_chat(first)
    assert answer_of(window).calls[0].state == "waiting"
    allow(window, call)
    await over(window)
    assert noted(tmp_path, "ran") == ["echo"]


@pytest.mark.sweep
async def test_a_call_that_waits_still_does_after_a_restart(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path / "chats")
    await with_tools(window, tmp_path, "echo")
    await asked(window, written("echo", n=1))
    window = await stage.ready(folder=tmp_path / "chats")
    (call,) = answer_of(window).calls
    assert (call.state, answer_of(window).status) == ("waiting", "calling")
    assert noted(tmp_path, "ran") == []
    allow(window, call)
    answer = await over(window)
    assert [call.state for call in answer.calls] == ["done"]
    assert noted(tmp_path, "ran") == ["echo"]


@pytest.mark.sweep
async def test_a_call_that_was_running_is_never_repeated(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path / "chats")
    await with_tools(window, tmp_path, "slow")
    (call,) = await asked(window, written("slow", seconds=60))
    allow(window, call)
    await until(lambda: noted(tmp_path, "ran") == ["slow"])
    window = await stage.ready(folder=tmp_path / "chats")
    answer = answer_of(window)
    assert [call.state for call in answer.calls] == ["unknown"]
    assert answer.over
    allow(window, answer.calls[0])
    window.controller.asking.on_intent(ContinueAnswer())
    await until(lambda: answer_of(window).text.endswith("ECHO 3:"), what="it does not continue")
    await ready(window)
    assert noted(tmp_path, "ran") == ["slow"]


@pytest.mark.sweep
async def test_a_death_is_told_to_the_model_and_not_repeated(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "die")
    (call,) = await asked(window, written("die"))
    allow(window, call)
    answer = await over(window)
    assert [call.state for call in answer.calls] == ["unknown"]
    assert noted(tmp_path, "ran") == ["die"]


PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
LOOK = written("parts", content=[{"type": "image", "data": PNG, "mimeType": "image/png"}])


@pytest.mark.sweep
@pytest.mark.parametrize("sees", [False, True])
async def test_images_are_kept_for_a_model_that_sees_and_else_named(
    stage: Stage, tmp_path: Path, sees: bool
) -> None:
    window = await stage.ready(model="hub/eyes" if sees else "starter", folder=tmp_path / "chats")
    await with_tools(window, tmp_path, "parts")
    (call,) = await asked(window, LOOK)
    allow(window, call)
    (call,) = (await over(window)).calls
    assert len(call.images) == sees
    assert bool(call.left_out) is not sees
    if sees:
        assert window.controller.home.library.images.is_kept(call.images[0].hash)


@pytest.mark.sweep
async def test_a_model_that_cannot_see_goes_on_without_the_images_of_results_and_says_so(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(model="hub/eyes", folder=tmp_path / "chats")
    hand, commands = Hand(window), sent(window, Generate)
    await with_tools(window, tmp_path, "parts", "echo")
    look, other = await asked(window, LOOK, written("echo", n=1))
    allow(window, look)
    await until(lambda: answer_of(window).calls[0].state == "done")
    window.controller.models.load("starter")
    left_out = "The image of this chat is left out of new answers, because Fake 1M cannot see images."
    await until(lambda: hand.notice == left_out, what="it does not say what becomes of the image")
    await ready(window)
    allow(window, other)
    answer = await over(window)
    assert answer.status == "finished"
    for question in ("", "write 2"):
        if question:
            answer = await hand.ask(question)
        assert answer.finished is not None
        assert [(each.setting, each.used) for each in answer.finished.effective.changes] == [("images", "0")]
        assert sum(len(each.images) for each in commands[-1].messages) == 1
    # A model that sees gets it again.
    window.controller.models.load("hub/eyes")
    await until(lambda: window.controller.link.info.name == "Fake Eyes")
    answer = await hand.ask("write 3")
    assert answer.finished is not None
    assert answer.finished.effective.changes == ()
    assert sum(len(each.images) for each in commands[-1].messages) == 1


@pytest.mark.sweep
async def test_a_question_with_an_image_waits_for_a_model_that_sees_after_its_calls(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(model="hub/eyes", folder=tmp_path / "chats")
    hand, asking = Hand(window), window.controller.asking
    await with_tools(window, tmp_path, "echo")
    window.views.composer.attach_files([picture(tmp_path / "a.png")])
    await read(window, 1)
    (call,) = await asked(window, written("echo", n=1))
    window.controller.models.load("starter")
    await until(lambda: "is left out of new answers" in hand.notice)
    await ready(window)
    allow(window, call)
    answer = await over(window)
    assert (answer.status, [call.state for call in answer.calls]) == ("stopped", ["done"])
    assert window.views.banner.trouble.title == "Fake 1M cannot see images."
    asking.on_intent(ContinueAnswer())
    assert hand.notice.startswith("Fake 1M cannot see the image")
    window.controller.models.load("hub/eyes")
    await until(lambda: window.controller.link.info.name == "Fake Eyes")
    await ready(window)
    asking.on_intent(ContinueAnswer())
    await until(lambda: answer_of(window).status == "finished", what="it does not continue")
    assert noted(tmp_path, "ran") == ["echo"]


@pytest.mark.sweep
async def test_a_full_context_leaves_out_the_oldest_results(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "big")
    (call,) = await asked(window, written("big", letters=3000, letter="a"))
    allow(window, call)
    await over(window)
    commands = sent(window, Generate)
    await Hand(window).send("refuse, the context is full")
    await until(lambda: len(commands) == 2)
    await ready(window)
    first, second = commands
    assert [each.text for m in first.messages for each in m.attachments] == ["a" * 3000]
    assert [m.attachments for m in second.messages if m.role == "tool"] == [()]
    assert [m.content for m in second.messages if m.role == "tool"] == [strings.RESULT_LEFT_OUT]
    assert window.controller.chats.open.turns[0].answer.calls[0].result == "a" * 3000


@pytest.mark.sweep
async def test_a_call_does_not_run_if_the_chat_cannot_be_stored(stage: Stage, tmp_path: Path) -> None:
    window = await stage.ready(folder=tmp_path / "chats")
    await with_tools(window, tmp_path, "echo")
    (call,) = await asked(window, written("echo"))
    assert window.controller.home.library.flush()
    database = tmp_path / "chats" / "chats.db"
    with closing(sqlite3.connect(database)) as other:
        other.execute("BEGIN EXCLUSIVE")
        allow(window, call)
        await until(lambda: answer_of(window).calls[0].state == "failed", 30, "it is not refused")
        assert noted(tmp_path, "ran") == []
    await over(window)
    assert noted(tmp_path, "ran") == []


@pytest.mark.sweep
async def test_calls_of_a_deleted_chat_end(window: MainWindow, tmp_path: Path) -> None:
    await with_tools(window, tmp_path, "slow")
    (call,) = await asked(window, written("slow", seconds=60))
    allow(window, call)
    await until(lambda: noted(tmp_path, "ran") == ["slow"])
    chat_id = window.controller.chats.open.id
    window.controller.chat.listing.delete(chat_id)
    await until(lambda: noted(tmp_path, "cancelled") == [""], what="the call was not cancelled")
    assert [each.state for each in window.controller.chats.get(chat_id).turns[-1].answer.calls] == ["unknown"]
