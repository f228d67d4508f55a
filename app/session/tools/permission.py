"""Permission of tool calls: which calls need the person's approval. Pure.

A permission for this chat, or for always, covers a call only if

- the tool is the one that was permitted: the same command, name, description and schema (`fingerprint`),
- every address, path and command in the arguments occurs in the person's own messages, and
- the same call was not made before in this turn.

All other calls need approval each time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from msgspec import Struct

from app.session import strings
from app.session.tools.arguments import outside_of, same_arguments
from app.session.tools.calls import CallRecord

# Most calls of one turn. Further calls are refused, and the answer stops.
MOST_CALLS = 12


class Allowance(Struct, frozen=True):
    """A permission that a person gave. `chat_id` is empty if `scope` is `always`."""

    fingerprint: str
    server: str
    tool: str
    scope: Literal["chat", "always"]
    chat_id: str = ""

    def is_for(self, call: CallRecord, chat_id: str) -> bool:
        """Whether it was given for this server's tool, in this chat or always; the tool may have changed."""
        here = self.scope == "always" or self.chat_id == chat_id
        return here and (self.server, self.tool) == (call.server, call.tool)


class Allowed(Struct, frozen=True):
    """An earlier permission covers the call."""

    by: Literal["chat", "always"]


class Ask(Struct, frozen=True):
    """The call needs approval. `reasons` are sentences, empty if the tool was never permitted."""

    reasons: tuple[str, ...] = ()


def decide(
    call: CallRecord,
    chat_id: str,
    allowances: Sequence[Allowance],
    own_texts: Sequence[str],
    calls_before: Sequence[CallRecord],
) -> Allowed | Ask:
    """Whether `call` may run without approval.

    `own_texts`: what the person typed in this chat (`own_texts` of `app.session.tools.loop`). `calls_before`:
    the earlier calls of the same turn.
    """
    given = [each for each in allowances if each.is_for(call, chat_id)]
    valid = [each for each in given if call.fingerprint and each.fingerprint == call.fingerprint]
    reasons: list[str] = []
    if given and not valid:
        reasons.append(strings.TOOL_CHANGED)
    if valid and (outside := outside_of(call.tool, call.arguments, own_texts)):
        reasons.append(strings.not_yours(outside))
    if any(
        (each.server, each.tool) == (call.server, call.tool)
        and same_arguments(each.arguments, call.arguments)
        for each in calls_before
        if each.id != call.id
    ):
        reasons.append(strings.SAME_CALL)
    if valid and not reasons:
        return Allowed("always" if any(each.scope == "always" for each in valid) else "chat")
    return Ask(tuple(reasons))
