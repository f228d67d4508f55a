"""What the servers are asked: an edit of a long file, records by a schema, two conversations in turn.

All texts are made here, from a short list of goods, so that they need no file and are alike on every machine.
"""

from __future__ import annotations

import json
from typing import Any

_GOODS = ("apples", "bread", "candles", "dates", "eggs", "flour", "grapes", "honey", "ink", "jam")
_KINDS = ("fresh", "dried", "small", "large", "plain", "sweet")
_FILE_LINES = 300
_RECORDS = 20
_PARAGRAPHS = 40

Messages = list[dict[str, str]]

RECORD_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "records": {
            "type": "array",
            "minItems": _RECORDS,
            "maxItems": _RECORDS,
            "items": {
                "type": "object",
                "properties": {
                    "product_name": {"type": "string", "maxLength": 40},
                    "quantity_in_stock": {"type": "integer"},
                    "needs_reordering": {"type": "boolean"},
                },
                "required": ["product_name", "quantity_in_stock", "needs_reordering"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["records"],
    "additionalProperties": False,
}


def source_file() -> str:
    """A Python file of 300 lines: what a shop has of each of its goods."""
    lines = ['"""What the shop has."""', "", "STOCK = 0"]
    for number in range(_FILE_LINES - len(lines)):
        name = f"{_KINDS[number * 7 % len(_KINDS)]}_{_GOODS[number * 3 % len(_GOODS)]}"
        lines.append(f"{name}_{number} = {number * 37 % 90 + 10}")
    return "\n".join(lines)


def edit() -> Messages:
    """The file, to be given back with one name changed."""
    file = f"```python\n{source_file()}\n```"
    return [{"role": "user", "content": f"{file}\n\nGive this file back whole, with STOCK renamed to GOODS."}]


def edited_file() -> str:
    """What an editor that renames a symbol predicts."""
    return source_file().replace("STOCK", "GOODS")


def records() -> Messages:
    """Twenty lines, to be given back as JSON."""
    lines = [
        f"{_KINDS[number % len(_KINDS)]} {_GOODS[number % len(_GOODS)]}: {number * 7 % 40} left,"
        f" {'order more' if number % 3 == 0 else 'enough'}"
        for number in range(_RECORDS)
    ]
    asked = 'Give each line as a record of JSON: {"records": [{"product_name": …, "quantity_in_stock": …}]}'
    return [{"role": "user", "content": "\n".join([*lines, "", asked])}]


def response_format() -> dict[str, Any]:
    """OpenAI's field for `RECORD_SCHEMA`."""
    schema = {"name": "records", "schema": RECORD_SCHEMA, "strict": True}
    return {"type": "json_schema", "json_schema": schema}


def conversation(number: int, pair: int) -> Messages:
    """The first question of conversation `number`, about a text that no other pair has."""
    words = [
        f"Store {number}-{pair}-{place} keeps {_KINDS[(place + number) % len(_KINDS)]}"
        f" {_GOODS[(place * 3 + pair) % len(_GOODS)]} on shelf {place * 13 % 57}; whoever needs some asks at"
        f" the desk, which is open from {place % 5 + 6} to {place % 7 + 14}."
        for place in range(_PARAGRAPHS)
    ]
    return [{"role": "user", "content": "\n".join([*words, "", "What does the first store keep?"])}]


def second_question() -> dict[str, str]:
    """The next one, about the same text."""
    return {"role": "user", "content": "And the second store?"}


def as_json(text: str) -> Any:
    """What the answer holds; None if it is no JSON."""
    try:
        return json.loads(text)
    except ValueError:
        return None
