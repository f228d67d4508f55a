"""The whole loop on a real small model and a real server: question, call, permission, result, answer.

The starter does not call tools by itself. A person begins the call by editing the answer; the grammar of the
tools' schemas writes the rest of it, as it does for models that call.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from app.chat.intents import AllowCall, ChooseTools, ContinueAnswer, SaveAnswer
from app.session.chats.answers import Edit
from app.session.tools.calls import ChosenTool
from app.shell.window import MainWindow
from core.events import Finished
from core.tools.messages import ServerEntry
from core.worker.client import worker_command
from tests.app.hand import Hand
from tests.app.journeys.test_tool_calls import answer_of
from tests.app.stage import Stage, ready, set_value, until

# Those after the question, which another turn may change.
_TEMPLATE_TOKENS = 8
SERVER = Path(__file__).with_name("forecasts.py")


def heard(window: MainWindow, kind: type) -> list[Any]:
    """The events of this kind that come from the worker from now on."""
    found: list[Any] = []
    link = window.controller.app.worker
    hear = link.hear

    def note(event: Any) -> None:
        if isinstance(event, kind):
            found.append(event)
        hear(event)

    link.hear = note
    return found


@pytest.mark.sweep
async def test_a_real_model_calls_a_real_server_and_answers_with_the_result(
    stage: Stage, tmp_path: Path
) -> None:
    window = await stage.ready(command=worker_command(), folder=tmp_path / "chats")
    servers, act, ran = window.controller.tool_servers, window.controller.asking.on_intent, tmp_path / "ran"
    servers.put(ServerEntry("weather", sys.executable, (str(SERVER), str(ran))))
    servers.set_on("weather", True)
    await until(lambda: servers.state("weather").phase == "ready", 60, "the server does not start")
    act(ChooseTools((ChosenTool("weather", "get_forecast"),)))
    for key, value in (("sampling.max_tokens", 4), ("sampling.temperature", 0.0)):
        set_value(window, key, value)
    await Hand(window).send("What is the weather in Thun? Use get_forecast.")
    await until(lambda: answer_of(window).over, 120, "no answer")
    await ready(window)

    turn = window.controller.chats.open.turns[-1]
    act(SaveAnswer(turn.id, (Edit(0, len(turn.answer.text), "<tool_call>"),)))
    set_value(window, "sampling.max_tokens", 60)
    act(ContinueAnswer())
    await until(lambda: answer_of(window).status == "calling", 120, "no call waits")
    turn = window.controller.chats.open.turns[-1]
    (call,) = turn.answer.calls
    assert (call.state, call.server, call.tool) == ("waiting", "weather", "get_forecast")
    assert json.loads(call.arguments)["town"] in ("Bern", "Thun")
    assert turn.answer.finished is not None
    assert turn.answer.finished.stats.forced > 0  # the schema's names and keys were drafted
    assert not ran.exists()

    ended = heard(window, Finished)
    act(AllowCall(turn.id, call.id, "once", '{"town": "Thun"}'))
    await until(lambda: answer_of(window).over, 120, "no answer after the call")
    await ready(window)
    answer = answer_of(window)
    assert ran.read_text("utf-8") == "Thun\n"
    assert "drizzle until noon" in answer.calls[0].result
    assert len(answer.tokens) > answer.calls[0].after, "the model wrote nothing after the result"
    assert answer.finished is not None
    assert answer.finished.stats.tokens == len(answer.tokens)
    # The tools and the question are in the cache already.
    (after,) = ended
    assert after.stats.reused_tokens >= turn.answer.finished.stats.prompt_tokens - _TEMPLATE_TOKENS
    await Hand(window).send("And in the afternoon?")
    await until(lambda: len(window.controller.chats.open.turns) == 2 and answer_of(window).over, 120)
    await ready(window)
    follow_up = ended[-1].stats
    assert follow_up.read_tokens <= 0.1 * follow_up.prompt_tokens, (
        "a follow-up reads much of the prompt again"
    )
    kept = window.controller.chats.open

    window = await stage.ready(command=worker_command(), folder=tmp_path / "chats")
    reopened = window.controller.chats.open
    assert [each.text for each in reopened.turns[0].answer.tokens] == [
        each.text for each in kept.turns[0].answer.tokens
    ]
    assert reopened.turns[0].answer.calls == kept.turns[0].answer.calls
    assert ran.read_text("utf-8") == "Thun\n"
