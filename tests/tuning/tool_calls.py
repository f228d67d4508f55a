"""`python -m tests.tuning tool-calls`: what calls and answers of recorded tool conversations are made of.

Each message of the assistant becomes a stream (`tests.tuning.streams`) of class `call` or `answer`, behind
the declared tools and the conversation before it, for `replay --streams` and `played --texts`. The table says
of its tokens, as the model writes them one after the other, which

- the grammar of the declared tools forces, as in an answer that must be a call,
- are copied: they follow the newest earlier occurrence of the two to eight tokens before them,
- are new.

Conversations are a JSON list of lists of messages in OpenAI's form, or of objects that have such a list as
`traj` or `messages`; tools a JSON list in OpenAI's form.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from core.bench.runner import table
from core.events import Tool
from tests.tuning.streams import Stream, write_streams

if TYPE_CHECKING:  # importing these loads MLX, which `run` must prepare first
    from core.decoding.grammar import GrammarState

_GRAM_TOKENS = range(8, 1, -1)
# Of the conversation before a message: what a model of the starter's size can hold.
_MOST_PROMPT_TOKENS = 7_000


class Shares(Struct):
    """Tokens by where they come from."""

    messages: int = 0
    tokens: int = 0
    forced: int = 0
    copied: int = 0

    def add(self, other: Shares) -> None:
        self.messages += other.messages
        self.tokens += other.tokens
        self.forced += other.forced
        self.copied += other.copied

    def cells(self) -> list[str]:
        new = self.tokens - self.forced - self.copied
        shares = (100 * each / max(1, self.tokens) for each in (self.forced, self.copied, new))
        return [f"{self.messages:,}", f"{self.tokens:,}", *(f"{share:.0f}%" for share in shares)]


class Grams:
    """Tokens that followed the newest occurrence of some tokens before."""

    def __init__(self) -> None:
        self._ids: list[int] = []
        self._next: dict[tuple[int, ...], int] = {}

    def guess(self) -> int | None:
        """What followed the longest known run that ends the text."""
        for length in _GRAM_TOKENS:
            if (found := self._next.get(tuple(self._ids[-length:]))) is not None:
                return found
        return None

    def add(self, ids: Iterable[int]) -> None:
        for token in ids:
            for length in _GRAM_TOKENS:
                if len(self._ids) >= length:
                    self._next[tuple(self._ids[-length:])] = token
            self._ids.append(token)


def run(options: argparse.Namespace) -> int:
    """Print the table, and write it with the streams."""
    from core.models.runtime import prepare

    prepare()
    from core.decoding.grammar import Grammars
    from core.folders.starter import ensure_starter
    from core.models.loader import load
    from core.tools.calls import ToolChoice
    from core.tools.schemas import relaxed

    model = load(str(ensure_starter()))
    declared = json.loads(options.tools.read_text("utf-8"))
    tools = tuple(_tool(each) for each in declared)
    wanted = ToolChoice(tools, must=True).grammar(model.info)
    assert wanted is not None
    grammar, _ = relaxed(wanted)
    grammars = Grammars(model)

    def ids_of(text: str) -> list[int]:
        return [int(each) for each in model.tokenizer.encode(text, add_special_tokens=False)]

    totals = {"call": Shares(), "answer": Shares()}
    streams: list[Stream] = []
    for messages in conversations(options.conversations)[: options.most]:
        context, grams = ids_of(json.dumps(declared)), Grams()
        grams.add(context)
        for kind, text in texts_of(messages):
            ids = ids_of(text)
            if kind in totals:
                state = grammars.start(grammar) if kind == "call" else None
                totals[kind].add(shares(ids, grams, state))
                streams.append(Stream(context[-_MOST_PROMPT_TOKENS:], ids, kind))
            else:
                grams.add(ids)
            context = [*context, *ids]
    both = Shares()
    for each in totals.values():
        both.add(each)
    rows = [" | ".join((kind, *each.cells())) for kind, each in (*totals.items(), ("all", both))]
    text = "\n".join(table("kind | messages | tokens | forced | copied | new", rows))
    print(text)
    out = Path(options.out)
    write_streams(out / "tool-calls.jsonl.gz", streams[:: max(1, len(streams) // options.streams)])
    (out / "tool-calls.md").write_text(text + "\n", "utf-8")
    return 0


def shares(ids: Sequence[int], grams: Grams, state: GrammarState | None) -> Shares:
    """Where the tokens of one message come from; adds them to `grams`."""
    found = Shares(1, len(ids))
    for token in ids:
        forced = state.forced[:1] if state is not None else ()
        if forced and forced[0] == token:
            found.forced += 1
        elif grams.guess() == token:
            found.copied += 1
        if state is not None:
            # A call that the grammar would write otherwise, as with other white space, is free from there on.
            state = _advanced(state, token)
        grams.add([token])
    return found


def _advanced(state: GrammarState, token: int) -> GrammarState | None:
    from core.errors import GrammarError

    try:
        state.advance([token])
    except GrammarError:
        return None
    return state


def conversations(path: Path) -> list[list[dict[str, Any]]]:
    """The messages of each conversation of a file."""
    held = json.loads(path.read_text("utf-8"))
    return [each if isinstance(each, list) else each.get("traj") or each["messages"] for each in held]


def texts_of(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, str]]:
    """The texts of messages: a role, or `call` and `answer` of the assistant, and what is written."""
    for message in messages:
        if message["role"] != "assistant":
            yield message["role"], message.get("content") or ""
            continue
        if message.get("content"):
            yield "answer", message["content"]
        for call in message.get("tool_calls") or ():
            function = call["function"]
            arguments = json.loads(function["arguments"])
            yield "call", json.dumps({"name": function["name"], "arguments": arguments}, ensure_ascii=False)


def _tool(declared: dict[str, Any]) -> Tool:
    function = declared["function"]
    return Tool(function["name"], function.get("description", ""), json.dumps(function["parameters"]))
