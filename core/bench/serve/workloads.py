"""What the servers are asked: an edit of a long file, records by a schema, two conversations in turn.

All texts are made here, from a short list of goods, so that they need no file and are alike on every machine.
"""

from __future__ import annotations

import json
from typing import Any

# What they are called; `core.bench.serve.serve` asks them.
WORKLOADS = ("edit", "records", "conversations", "overhead")
_GOODS = (
    *("apples", "bread", "candles", "dates", "eggs", "flour", "grapes", "honey", "ink", "jam"),
    *("knives", "lamps", "milk", "nuts", "onions", "pears", "quinces", "rice", "salt"),
)
_METHODS = (
    """    def sell_{name}(self, count):
        if count > self.{name}:
            raise ValueError("There are not enough {name}.")
        self.{name} -= count
        return count * self.price_of("{name}")""",
    """    def order_{name}(self, count, supplier):
        \"\"\"Have some {name} sent.\"\"\"
        self.{name} += count
        self.orders.append(("{name}", count, supplier))
        return len(self.orders)""",
    """    def show_{name}(self):
        shelf = self.shelves["{name}"]
        print("The {name} are on shelf", shelf)""",
)
_KINDS = ("fresh", "dried", "small", "large", "plain", "sweet")
_FILE_LINES = 300
_BEGUN_LINES = 25
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
    """A Python file of 300 lines: what a shop does with each of its goods."""
    lines = ['"""The shop."""', "", "", "class Shop:"]
    for name in _GOODS:
        for method in _METHODS:
            lines += method.format(name=name).splitlines()
            lines.append("")
    return "\n".join(lines[:_FILE_LINES])


def edit() -> str:
    """The file, then the edited one as far as the methods of its second goods, to be gone on with.

    Editors that have a model complete files ask so; small models that no instruction can make give a file
    back do so here.
    """
    begun = "\n".join(edited_file().splitlines()[:_BEGUN_LINES])
    return f"# The file\n{source_file()}\n\n# The same file, with Shop renamed to Store\n{begun}\n"


def predicted_rest() -> str:
    """What an editor that renames a symbol predicts."""
    return "\n".join(edited_file().splitlines()[_BEGUN_LINES:])


def edited_file() -> str:
    """The file with its class renamed."""
    return source_file().replace("Shop", "Store")


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
