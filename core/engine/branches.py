"""Branches: where the prompts of a chat's next turns diverge from the present prompt.

A template can render an answer in the history in another way than it began it: Qwen3.6 opens `<think>` for
the answer and drops the thought from the history, so that the next prompt leaves this one before `<think>`.
A cache that cannot return to any length needs a snapshot there. The place is found by rendering the chat
with a possible continuation and comparing token ids.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from core.errors import DraftlightError
from core.events import Generate, Message, ToolCall
from core.kv.cached_sequence import shared_prefix

_ANSWER = Message("assistant", "Yes.")
_QUESTION = Message("user", "Why?")


def branches(
    ids: Sequence[int], request: Generate, rendered: Callable[[Sequence[Message]], Sequence[int]]
) -> tuple[int, ...]:
    """Lengths of the prefixes of `ids` that continuations of the chat share with it.

    `ids` is the prompt of `request`, `rendered` gives the token ids of another conversation. A continuation
    that the template refuses has no branch.
    """
    found = []
    for more in _continuations(request):
        try:
            others = rendered((*request.messages, *more))
        except DraftlightError:
            continue
        found.append(shared_prefix(ids, others))
    return tuple(sorted(set(found)))


def _continuations(request: Generate) -> Iterator[tuple[Message, ...]]:
    """An answer and a question; where there are tools, a call and its result, too."""
    yield _ANSWER, _QUESTION
    if request.tools:
        call = ToolCall("call00001", request.tools[0].name, "{}")
        yield Message("assistant", "", tool_calls=(call,)), Message("tool", "Done.", tool_call_id=call.id)
