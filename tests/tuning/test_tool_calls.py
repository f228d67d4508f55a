"""Texts of recorded tool conversations, and where their tokens come from."""

from __future__ import annotations

import json
from pathlib import Path

from tests.tuning.tool_calls import Grams, conversations, shares, texts_of

CALL = {"function": {"name": "find", "arguments": '{"what":"Öl"}'}}
MESSAGES = [
    {"role": "user", "content": "Find oil."},
    {"role": "assistant", "content": "I look.", "tool_calls": [CALL]},
    {"role": "tool", "content": "3 l"},
    {"role": "assistant", "content": "There are 3 l."},
]


def test_messages_of_the_assistant_are_calls_and_answers(tmp_path: Path) -> None:
    for held in ([MESSAGES], [{"traj": MESSAGES}], [{"messages": MESSAGES}]):
        path = tmp_path / "held.json"
        path.write_text(json.dumps(held), "utf-8")
        (messages,) = conversations(path)
        assert list(texts_of(messages)) == [
            ("user", "Find oil."),
            ("answer", "I look."),
            ("call", '{"name": "find", "arguments": {"what": "Öl"}}'),
            ("tool", "3 l"),
            ("answer", "There are 3 l."),
        ]


def test_what_follows_the_newest_longest_run_is_copied() -> None:
    grams = Grams()
    grams.add([1, 2, 3, 9, 2, 3, 4, 1, 2])
    assert grams.guess() == 3  # after 1 2
    grams.add([3])
    assert grams.guess() == 9  # after 1 2 3, although 2 3 was followed by 4 since
    grams = Grams()
    grams.add([5, 6, 7, 8])
    found = shares([5, 6, 7, 8, 9], grams, None)
    assert (found.tokens, found.forced, found.copied) == (5, 0, 2)
