"""Conversations of every shape that clients send, as OpenAI-style messages.

`forms` gives the ways in which a conversation may be put to a template without losing a word: system
messages merged or moved into the first question, empty turns left out, doubled turns joined, contents as
strings or as parts. A prompt is right if it is the reference's rendering of one of them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

Turn = dict[str, Any]

QUESTION = "Which city is the capital of Austria?"
ANSWER = "Vienna is."
SYSTEM = "Answer in very few words."
SECOND_SYSTEM = "The person is called Ada Quill."
FOLLOW = "And which river runs through it?"
THOUGHT = "The person wants a city.\nI know that one."

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of the city"},
        "days": {"type": "integer"},
        "alerts": {"type": "boolean"},
        "code": {"type": "string"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "place": {"type": "object", "properties": {"lat": {"type": "number"}}},
    },
    "required": ["city"],
}
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {"name": "get_weather", "description": "Weather of a city", "parameters": PARAMETERS},
    },
    {
        "type": "function",
        "function": {
            "name": "find_route",
            "description": "Way between two places",
            "parameters": {
                "type": "object",
                "properties": {"start": {"type": "string"}, "end": {"type": "string"}},
                "required": ["start", "end"],
            },
        },
    },
]
ARGUMENTS = {"city": "Vienna"}
TYPED_ARGUMENTS = {
    "city": "Zürich",
    "days": 3,
    "alerts": True,
    "code": "123",
    "tags": ["a b", "c"],
    "place": {"lat": 47.4},
}
RESULT = "It is 21 degrees and dry."


def user(content: str) -> Turn:
    """A question."""
    return {"role": "user", "content": content}


def assistant(content: str, thought: str = "") -> Turn:
    """An answer; `thought` came before it."""
    return {"role": "assistant", "content": content, **({"thought": thought} if thought else {})}


def call(arguments: Mapping[str, Any], name: str = "get_weather", number: int = 1) -> dict[str, Any]:
    """One call of a function."""
    return {
        "id": f"call_0a1b2c3d4e5f{number:06d}",
        "type": "function",
        "function": {"name": name, "arguments": dict(arguments)},
    }


def calls(*made: dict[str, Any], content: str = "") -> Turn:
    """An assistant's turn that calls functions."""
    return {"role": "assistant", "content": content, "tool_calls": list(made)}


def result(content: str, number: int = 1, name: str = "get_weather") -> Turn:
    """What a call returned."""
    return {
        "role": "tool",
        "tool_call_id": f"call_0a1b2c3d4e5f{number:06d}",
        "name": name,
        "content": content,
    }


_SYSTEM: Turn = {"role": "system", "content": SYSTEM}
_SECOND: Turn = {"role": "system", "content": SECOND_SYSTEM}
_DEVELOPER: Turn = {"role": "developer", "content": SYSTEM}
_WEATHER = user("What is the weather like in Vienna?")

SHAPES: dict[str, list[Turn]] = {
    "single": [user(QUESTION)],
    "several turns": [user(QUESTION), assistant(ANSWER), user(FOLLOW)],
    "system": [_SYSTEM, user(QUESTION)],
    "two systems": [_SYSTEM, _SECOND, user(QUESTION)],
    "system later": [_SYSTEM, user(QUESTION), assistant(ANSWER), _SECOND, user(FOLLOW)],
    "developer": [_DEVELOPER, user(QUESTION)],
    "system and developer": [_SYSTEM, {"role": "developer", "content": SECOND_SYSTEM}, user(QUESTION)],
    "empty answer": [user(QUESTION), assistant(""), user(FOLLOW)],
    "doubled users": [user(QUESTION), user(FOLLOW)],
    "doubled answers": [user(QUESTION), assistant(ANSWER), assistant("On the Danube."), user(FOLLOW)],
    "answer first": [assistant("Hello, I am here."), user(QUESTION)],
    "only system": [_SYSTEM],
    "past thought": [user(QUESTION), assistant(ANSWER, THOUGHT), user(FOLLOW)],
}
TOOL_SHAPES: dict[str, list[Turn]] = {
    "functions": [_SYSTEM, _WEATHER],
    "tool result": [_WEATHER, calls(call(ARGUMENTS)), result(RESULT)],
    "tool loop": [
        _SYSTEM,
        _WEATHER,
        calls(call(ARGUMENTS)),
        result(RESULT),
        assistant("Fine weather."),
        user("And which river runs through it?"),
    ],
    "two calls": [
        _WEATHER,
        calls(call(ARGUMENTS), call({"start": "Vienna", "end": "Graz"}, "find_route", 2)),
        result(RESULT),
        result("Two hours by train.", 2, "find_route"),
    ],
    "thought and call": [
        _WEATHER,
        {**calls(call(ARGUMENTS)), "thought": THOUGHT},
        result(RESULT),
    ],
}


def words(conversation: list[Turn]) -> list[str]:
    """What must be in the text: every word of people, of the system and of functions."""
    texts = [turn["content"] for turn in conversation if turn["role"] != "assistant"]
    return [text for text in texts if text.strip()]


def forms(conversation: list[Turn], written: str = "") -> Iterator[list[Turn]]:
    """The conversation as it may be rendered, plain ones first; `written` is a past thought and its answer
    as the model writes them."""
    seen: set[str] = set()
    for choice in itertools.product(*_choices(conversation, written)):
        turns = deepcopy(conversation)
        for change in choice:
            turns = change(turns)
        key = json.dumps(turns)
        if turns and key not in seen:
            seen.add(key)
            yield turns


def _choices(conversation: list[Turn], written: str) -> list[list[Any]]:
    roles = [turn["role"] for turn in conversation]
    choices: list[list[Any]] = []
    if any("thought" in turn for turn in conversation):
        # A template that keeps thoughts in the content gets them with the tag that the prompt opened.
        opened = written if not written or written.startswith("<think>") else f"<think>\n{written}"
        raw = [lambda turns, text=text: _thought_raw(turns, text) for text in (written, opened)]
        choices.append([_thought_named, _thought_dropped, *raw, _thought_part])
    if any(turn.get("tool_calls") for turn in conversation):
        choices.append([_same, _arguments_text])
        choices.append(
            [
                _same,
                lambda turns: _ids(turns, lambda id, name, at: id[-9:]),
                lambda turns: _ids(turns, lambda id, name, at: f"functions.{name}:{at}"),
            ]
        )
        choices.append([_same, _unnamed])
        choices.append([_same, _one_call_each])
        choices.append([_same, _no_content])
    if any(not turn["content"].strip() and not turn.get("tool_calls") for turn in conversation):
        choices.append([_dropped, _same])
    if "system" in roles or "developer" in roles:
        choices.append([_systems, _same])
        choices.append([_same, _late_in_question])
        choices.append([_same, _merged, _folded, _as_user])
    elif any(turn.get("tool_calls") for turn in conversation):
        # Some templates declare functions in a system message only.
        choices.append([_same, lambda turns: [{"role": "system", "content": ""}, *turns]])
    choices.append([_same, _joined, lambda turns: _joined(turns, "\n")])
    if roles and roles[0] == "assistant":
        choices.append([_same, lambda turns: _begun(turns, "…")])
    choices.append([_same, _parts])
    return choices


def _same(turns: list[Turn]) -> list[Turn]:
    return turns


def _thought_named(turns: list[Turn]) -> list[Turn]:
    for turn in turns:
        if thought := turn.pop("thought", ""):
            turn |= {"reasoning_content": thought, "thinking": thought, "reasoning": thought}
    return turns


def _thought_dropped(turns: list[Turn]) -> list[Turn]:
    return [{name: value for name, value in turn.items() if name != "thought"} for turn in turns]


def _thought_raw(turns: list[Turn], written: str) -> list[Turn]:
    for turn in turns:
        if turn.pop("thought", "") and written and not turn.get("tool_calls"):
            turn["content"] = written
    return turns


def _thought_part(turns: list[Turn]) -> list[Turn]:
    for turn in turns:
        if thought := turn.pop("thought", ""):
            text = [{"type": "text", "text": turn["content"]}] if turn["content"] else []
            turn["content"] = [{"type": "thinking", "thinking": thought}, *text]
    return turns


def _arguments_text(turns: list[Turn]) -> list[Turn]:
    for made in _calls(turns):
        made["function"]["arguments"] = json.dumps(made["function"]["arguments"], ensure_ascii=False)
    return turns


def _ids(turns: list[Turn], made_of: Any) -> list[Turn]:
    new = {
        made["id"]: made_of(made["id"], made["function"]["name"], at) for at, made in enumerate(_calls(turns))
    }
    for made in _calls(turns):
        made["id"] = new[made["id"]]
    for turn in turns:
        if "tool_call_id" in turn:
            turn["tool_call_id"] = new[turn["tool_call_id"]]
    return turns


def _calls(turns: list[Turn]) -> list[dict[str, Any]]:
    return [made for turn in turns for made in turn.get("tool_calls") or ()]


def _one_call_each(turns: list[Turn]) -> list[Turn]:
    """Gives each call a turn of its own, with its result behind it."""
    results = {turn["tool_call_id"]: turn for turn in turns if turn["role"] == "tool"}
    split: list[Turn] = []
    for turn in turns:
        made = turn.get("tool_calls") or []
        if turn["role"] == "tool" and turn in split:
            continue
        if len(made) < 2:
            split.append(turn)
        for each in made if len(made) > 1 else []:
            split += [{**turn, "tool_calls": [each]}, results[each["id"]]]
    return split


def _unnamed(turns: list[Turn]) -> list[Turn]:
    return [{name: value for name, value in turn.items() if name != "name"} for turn in turns]


def _no_content(turns: list[Turn]) -> list[Turn]:
    for turn in turns:
        if turn.get("tool_calls") and not turn["content"]:
            turn["content"] = None
    return turns


def _dropped(turns: list[Turn]) -> list[Turn]:
    return [turn for turn in turns if (turn["content"] or "").strip() or turn.get("tool_calls")]


def _systems(turns: list[Turn]) -> list[Turn]:
    return [{**turn, "role": "system"} if turn["role"] == "developer" else turn for turn in turns]


def _split(turns: list[Turn]) -> tuple[str, list[Turn]]:
    said = [turn["content"] for turn in turns if turn["role"] in ("system", "developer")]
    return "\n\n".join(said), [turn for turn in turns if turn["role"] not in ("system", "developer")]


def _merged(turns: list[Turn]) -> list[Turn]:
    lead, others = _split(turns)
    return [{"role": "system", "content": lead}, *others]


def _late_in_question(turns: list[Turn]) -> list[Turn]:
    """Moves system messages that come after an answer into the next question."""
    moved: list[Turn] = []
    late = ""
    for turn in turns:
        begun = any(each["role"] not in ("system", "developer") for each in moved)
        if begun and turn["role"] in ("system", "developer"):
            late = turn["content"]
        elif late and turn["role"] == "user":
            moved.append({**turn, "content": f"{late}\n\n{turn['content']}"})
            late = ""
        else:
            moved.append(turn)
    return turns if late else moved


def _folded(turns: list[Turn]) -> list[Turn]:
    lead, others = _split(turns)
    at = next((at for at, turn in enumerate(others) if turn["role"] == "user"), None)
    if at is None:
        return [{"role": "user", "content": lead}, *others]
    others[at] = {**others[at], "content": f"{lead}\n\n{others[at]['content']}"}
    return others


def _as_user(turns: list[Turn]) -> list[Turn]:
    return [{**turn, "role": "user"} if turn["role"] in ("system", "developer") else turn for turn in turns]


def _joined(turns: list[Turn], between: str = "\n\n") -> list[Turn]:
    joined: list[Turn] = []
    for turn in turns:
        plain = isinstance(turn["content"], str) and not turn.get("tool_calls")
        last = joined[-1] if joined else {"role": ""}
        plain = plain and last["role"] == turn["role"] and not last.get("tool_calls")
        if plain and turn["role"] in ("user", "assistant"):
            joined[-1] = {**last, "content": f"{last['content']}{between}{turn['content']}"}
        else:
            joined.append(turn)
    return joined


def _begun(turns: list[Turn], content: str) -> list[Turn]:
    return [user(content), *turns]


def _parts(turns: list[Turn]) -> list[Turn]:
    return [
        {**turn, "content": [{"type": "text", "text": turn["content"]}]}
        if isinstance(turn["content"], str)
        else turn
        for turn in turns
    ]
