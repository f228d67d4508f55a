"""Predicted answers and answers by a schema, over HTTP: the same text, told truly, at fewer steps."""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from tests.core.serve.served import CHAT, Served

SCHEMA = {
    "type": "object",
    "properties": {"name_of_city": {"enum": ["Köln", "Lyon"]}, "is_capital": {"type": "boolean"}},
    "required": ["name_of_city", "is_capital"],
    "additionalProperties": False,
}


def complete(served: Served, **fields: Any) -> Any:
    return served.ask("POST", "/v1/completions", {"prompt": "Once", "max_tokens": 40, **fields}).json


def by_schema(served: Served, **fields: Any) -> Any:
    asked = {
        "messages": [{"role": "user", "content": "A city?"}],
        "response_format": {"type": "json_schema", "json_schema": {"name": "city", "schema": SCHEMA}},
        **fields,
    }
    return served.ask("POST", CHAT, asked).json


def test_a_right_prediction_is_accepted_and_counted(served: Served) -> None:
    plain = complete(served, drafter="off")
    text = plain["choices"][0]["text"]
    predicted = complete(served, prediction={"type": "content", "content": text})
    assert predicted["choices"] == plain["choices"]
    details = predicted["usage"]["completion_tokens_details"]
    # The random model also writes bytes that are no characters, which no predicted text can hold.
    assert details["accepted_prediction_tokens"] > 10
    assert predicted["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"] == 40
    assert predicted["draftlight"]["steps"] < plain["draftlight"]["steps"]


def test_a_wrong_prediction_changes_nothing_and_is_counted_apart(served: Served) -> None:
    plain = complete(served)
    wrong = complete(served, prediction={"type": "content", "content": [{"type": "text", "text": "#" * 30}]})
    assert wrong["choices"] == plain["choices"]
    details = wrong["usage"]["completion_tokens_details"]
    assert details["rejected_prediction_tokens"] == 30
    assert wrong["usage"]["completion_tokens"] == plain["usage"]["completion_tokens"]


def test_what_a_schema_forces_costs_no_steps(served: Served) -> None:
    plain = by_schema(served, drafter="off", draftlight={"forced": False})
    text = plain["choices"][0]["message"]["content"]
    jsonschema.validate(json.loads(text), SCHEMA)
    assert plain["draftlight"]["forced"] == 0
    assert plain["draftlight"]["steps"] == plain["usage"]["completion_tokens"]
    drafted = by_schema(served, drafter="off")
    assert drafted["choices"] == plain["choices"]
    forced, steps = (drafted["draftlight"][name] for name in ("forced", "steps"))
    assert forced > 20
    assert steps <= plain["draftlight"]["steps"] - forced + 0.05 * forced
