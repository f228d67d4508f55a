"""How the server reads requests: those in `cases`, each with what becomes of it, without a worker.

A case has `asks`, fields that a short question gets in addition, or `body`, a whole request, and the APIs
(`to`) that read it so. `turns` stands for the API's field of the conversation. `becomes` is what the worker
is asked for beyond what it is for the question alone; its `changes` are the fields that are left out and
named, with what is used in their place. Or it says why the request is refused.

    make goldens      rewrites what becomes of requests; a commit that changes it gives the reason
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from core.drafting.registry import DRAFTERS
from core.events import Change, ModelInfo
from core.serve.answering import Serving
from core.serve.chat import chat_request
from core.serve.completions import completion_request
from core.serve.http import ApiError
from core.serve.messages import count_request, message_request
from core.serve.request import AnswerRequest
from core.serve.response_memory import ResponseMemory
from core.settings.declaration import declared, read
from tests.core import golden
from tests.core.serve.served import settings

FOLDER = Path(__file__).with_name("cases")
MODEL = ModelInfo("toy", "/toy", "f", "toy", "llama", "float32", "", 0, 0, 4096, 260, 2, True)
BASE = settings()
SERVING = Serving(base=lambda: BASE)
HI = [{"role": "user", "content": "hi"}]
READERS: dict[str, Callable[[dict[str, Any]], AnswerRequest]] = {
    "chat": chat_request,
    "completions": completion_request,
    "responses": lambda body: ResponseMemory().requested(body),
    "messages": message_request,
    "count": count_request,
}
SHORT: dict[str, dict[str, Any]] = {
    "chat": {"messages": HI, "max_tokens": 2},
    "completions": {"prompt": "hi", "max_tokens": 2},
    "responses": {"input": HI, "max_output_tokens": 2},
    "messages": {"messages": HI, "max_tokens": 2},
    "count": {"messages": HI},
}
# Lists in messages, which each new name makes longer.
LISTS = {
    ", ".join(DRAFTERS): "DRAFTERS",
    ", ".join(dict.fromkeys(setting.key.partition(".")[0] for setting in declared())): "GROUPS",
}
TURNS = {"chat": "messages", "messages": "messages", "count": "messages", "responses": "input"}


def body_of(case: dict[str, Any], to: str) -> dict[str, Any]:
    if "body" in case:
        return dict(case["body"])
    asks = {TURNS[to] if name == "turns" else name: value for name, value in case["asks"].items()}
    return SHORT[to] | asks


def command_of(
    to: str, body: dict[str, Any], serving: Serving = SERVING
) -> tuple[tuple[Change, ...], dict[str, Any]]:
    """The changes, and the command with the settings that differ from the server's. Raises `ApiError`."""
    made = serving.prepared(READERS[to](json.loads(json.dumps(body))), "r", MODEL)
    generate = made.generate
    command = msgspec.to_builtins(replace(generate, settings=BASE), str_keys=True)
    found = {each.key: read(generate.settings, each.key) for each in declared()}
    command["settings"] = {key: value for key, value in found.items() if value != read(BASE, key)}
    if "seed" not in body:
        del command["settings"]["sampling.seed"]  # another one each time
    return made.changes, command


def becomes(to: str, body: dict[str, Any]) -> dict[str, Any]:
    """What becomes of a request. Names of places, new ids and lists are the same for each API and run."""
    try:
        changes, command = command_of(to, body)
    except ApiError as error:
        found = {"refused": error.message, "param": error.param, "code": error.code, "status": error.status}
        found |= {"details": error.details}
        shown = {name: value for name, value in found.items() if value and (name, value) != ("status", 400)}
    else:
        _, plain = command_of(to, SHORT[to])
        shown = {name: value for name, value in command.items() if value != plain.get(name)}
        if "settings" in shown:
            more = shown["settings"].items() - plain["settings"].items()
            shown["settings"] = dict(sorted(more))
        for name in shown.keys() & {"messages", "tools"}:
            shown[name] = [{key: value for key, value in each.items() if value} for each in shown[name]]
        assert refused_strictly(to, body) == (changes[0].setting if changes else None)
        if changes:
            assert all(change.reason for change in changes)
            shown["changes"] = {change.setting: f"{change.asked} → {change.used}" for change in changes}
    text = re.sub(rf"\b{TURNS.get(to, 'turns')}\[", "turns[", json.dumps(shown, ensure_ascii=False))
    ids = dict.fromkeys(re.findall(r"call_[0-9a-f]{16,}", text))
    for number, new in enumerate(ids):
        text = text.replace(new, f"call {number}")
    for names, shorter in LISTS.items():
        text = text.replace(names, shorter)
    return json.loads(text)  # type: ignore[no-any-return]


def refused_strictly(to: str, body: dict[str, Any]) -> str | None:
    """The field that a server which leaves nothing out refuses."""
    try:
        command_of(to, body, replace(SERVING, strict=True))
    except ApiError as error:
        return error.param
    return None


def written(cases: list[dict[str, Any]]) -> str:
    """A case a line."""
    return "[\n" + ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases) + "\n]\n"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.json")), ids=lambda path: path.stem)
def test_requests_become_what_their_cases_say(path: Path) -> None:
    cases = json.loads(path.read_text("utf-8"))
    for case in cases:
        for to in case["to"]:
            found = becomes(to, body_of(case, to))
            if golden.writes():
                case["becomes"] = found
            assert (to, case.get("asks", case.get("body")), found) == (
                to,
                case.get("asks", case.get("body")),
                case["becomes"],
            )
    if golden.writes():
        path.write_text(written(cases), "utf-8")
