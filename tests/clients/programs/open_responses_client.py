"""What Open Responses' compliance suite asks, by the names of its cases, with the types made of its schemas.

Left out of its 17: `websocket-…` (seven cases; the server has no WebSockets), `image-input` (no loaded model
sees images), `compact-response` and `compact-missing-model` (the server compacts nothing), and
`response-output-phase-schema` (it tries the schema alone). In `tool-calling` a call is required, because
the starter model seldom makes one by itself.
"""

import json
from typing import Union

import openresponses_types as types
from cases import MODEL, run
from pydantic import TypeAdapter
from shapes_client import sent

KINDS = [getattr(types, name) for name in dir(types) if name.endswith("StreamingEvent")]
EVENT = TypeAdapter(Union[tuple(KINDS)])
PLACE = {"type": "object", "properties": {"location": {"enum": ["Oslo"]}}, "required": ["location"]}
WEATHER = {"type": "function", "name": "get_weather", "parameters": PLACE}


def said(role, text, **more):
    return {"type": "message", "role": role, "content": text, **more}


def response(*items, **fields):
    """The response to `items`, valid by the schema and complete; that of the last event of a stream."""
    body = {"model": MODEL, "input": list(items), "max_output_tokens": 200, "temperature": 0, **fields}
    text = sent("/v1/responses", body)
    if fields.get("stream"):
        lines = [line[6:] for line in text.splitlines() if line.startswith("data: ")]
        events = [EVENT.validate_json(line) for line in lines]
        assert len(events) > 4, text
        text = json.dumps(json.loads(lines[-1])["response"])
    made = types.ResponseResource.model_validate_json(text)
    assert (made.status, bool(made.output)) == ("completed", True), text
    return made


def case_basic_response():
    response(said("user", "Say hello in exactly 3 words."))


def case_streaming_response():
    response(said("user", "Count from 1 to 5."), stream=True)


def case_system_prompt():
    response(said("system", "You are a pirate. Always respond in pirate speak."), said("user", "Say hello."))


def case_multi_turn():
    response(said("user", "My name is Alice."), said("assistant", "Hello Alice!"), said("user", "My name?"))


def case_assistant_phase():
    phases = {"commentary": "I look it up.", "final_answer": "The number is four."}
    answers = [said("assistant", text, phase=phase) for phase, text in phases.items()]
    response(*answers, said("user", "Repeat only the number."))


def case_tool_calling():
    for stream in (False, True):
        fields = {"tools": [WEATHER], "tool_choice": "required", "stream": stream}
        made = response(said("user", "What's the weather like in Oslo?"), **fields)
        assert "function_call" in made.model_dump_json()


if __name__ == "__main__":
    run(globals())
