"""The loop of an answer that calls tools: question → calls → permissions → results → answer. Pure.

    finish(generation) ─calls→ calling: each call waiting ─allow→ running ─→ ended
                                                         └─refuse→ denied
    calling, no call open ─→ the next generation, whose prompt ends with the results

Each function returns the changed chat, and raises `CallError` if the call is not in the required state,
so no call runs without a permission or twice. The caller stores the chat before it acts on it. When a chat is
loaded, `Conversation.settled` ends the calls that were running.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from app.session import strings
from app.session.chats.conversation import Answer, Conversation
from app.session.tools.arguments import checked_arguments
from app.session.tools.calls import CallRecord, OfferedTool, Scope
from app.session.tools.permission import MOST_CALLS, Allowance
from core.errors import RequestError
from core.events import Image, ToolCall
from core.origins import PASTED_CHARACTERS
from core.tools.messages import CallResult, ToolsError


class CallError(RequestError, code="call-refused"):
    """The call is not in the state that the step requires, or its arguments cannot be sent."""


def calls_of(answer: Answer, offered: Sequence[OfferedTool]) -> tuple[ToolCall, ...]:
    """The calls of the tools `offered` that the newest generation of an ended answer made.

    Empty if it was stopped or cut off: the last call may be incomplete.
    """
    tokens = answer.tokens[answer.last_generation :]
    if not offered or not tokens or answer.finished is None or answer.finished.reason != "stop":
        return ()
    from core.tools.calls import CallRules, Written  # not in a chat without tools

    first = replace(tokens[0], format=tokens[0].format or answer.finished.effective.format)
    written = Written(CallRules(tuple(tool.declared for tool in offered)))
    pieces = [*written.add((first, *tokens[1:])), *written.end()]
    return tuple(piece for piece in pieces if isinstance(piece, ToolCall))


def is_answered(answer: Answer) -> bool:
    """Whether all calls have ended, so that the next generation can begin."""
    return answer.status == "calling" and not answer.open_calls


def made(
    chat: Conversation, turn_id: str, calls: Sequence[ToolCall], offered: Sequence[OfferedTool]
) -> Conversation:
    """The chat whose newest generation of the answer `turn_id` made `calls` of the tools `offered`.

    Calls beyond `MOST_CALLS` are denied, and the answer stops with a note; calls whose arguments cannot be
    sent have failed.
    """
    answer = chat.turn(turn_id).answer
    by_name = {tool.name: tool for tool in offered}
    records = list(answer.calls)
    for number, call in enumerate(calls):
        record = _record(call, by_name[call.name], len(answer.tokens))
        if len(answer.calls) + number >= MOST_CALLS:
            record = replace(record, state="denied", result=strings.TOO_MANY.format(most=MOST_CALLS))
        records.append(record)
    return _with_calls(chat, turn_id, replace(answer, status="calling"), records)


def _record(call: ToolCall, tool: OfferedTool, after: int) -> CallRecord:
    record = CallRecord(
        call.id,
        call.name,
        tool.server,
        tool.tool.name,
        call.arguments,
        call.arguments,
        tool.fingerprint,
        after=after,
    )
    try:
        return replace(record, arguments=checked_arguments(call.arguments))
    except RequestError as error:
        told = strings.FAILED_CALL.format(why=error.message)
        return replace(record, arguments="{}", state="failed", result=told)


def allow(chat: Conversation, turn_id: str, call_id: str, by: Scope, arguments: str) -> Conversation:
    """The chat with a waiting call permitted to run, with `arguments` as the person saw them."""
    waiting = _call(chat, turn_id, call_id, "waiting")
    try:
        checked = checked_arguments(arguments)
    except RequestError as error:
        raise CallError(error.message, error.hint) from error
    return _with(chat, turn_id, replace(waiting, state="running", arguments=checked, allowed_by=by))


def refuse(chat: Conversation, turn_id: str, call_id: str) -> Conversation:
    """The chat with a waiting call denied by the person."""
    waiting = _call(chat, turn_id, call_id, "waiting")
    return _with(chat, turn_id, replace(waiting, state="denied", result=strings.REFUSED))


def ask_again(chat: Conversation, turn_id: str, call_id: str, fingerprint: str) -> Conversation:
    """The chat with a call that waits for permission again, because its tool has changed."""
    return _with(chat, turn_id, replace(_call(chat, turn_id, call_id, "waiting"), fingerprint=fingerprint))


def returned(
    chat: Conversation, turn_id: str, call_id: str, result: CallResult, images: Sequence[Image] = ()
) -> Conversation:
    """The chat with the result of a running call, and those of its images that the model sees."""
    record = replace(
        _call(chat, turn_id, call_id, "running"),
        state="failed" if result.is_error else "done",
        result=strings.FAILED_CALL.format(why=result.text) if result.is_error else result.text,
        images=tuple(images),
        left_out=result.other,
        is_cut=result.cut,
        seconds=result.seconds,
    )
    return _with(chat, turn_id, record)


def failed(chat: Conversation, turn_id: str, call_id: str, error: ToolsError, seconds: float) -> Conversation:
    """The chat with a running call that ended without a result. It may have run unless `error` says no."""
    running = _call(chat, turn_id, call_id, "running")
    why = f"{error.message} {error.hint}".strip()
    told = strings.FAILED_CALL if error.ran is False else strings.MAY_HAVE_RUN
    state = "failed" if error.ran is False else "unknown"
    return _with(chat, turn_id, replace(running, state=state, result=told.format(why=why), seconds=seconds))


def stopped(chat: Conversation, turn_id: str) -> Conversation:
    """The chat with an answer that the person stopped while it was calling."""
    answer = chat.turn(turn_id).answer.with_calls_ended(strings.STOPPED, strings.STOPPED_CALL)
    return chat.with_answer(turn_id, replace(answer, status="stopped"))


def without_results(chat: Conversation, characters: int) -> tuple[Conversation, int]:
    """The chat without the results of its oldest calls, at least `characters` in total; and their number.

    The results of the newest generation stay.
    """
    left, count = characters, 0
    for turn in chat.turns:
        answer, records = turn.answer, []
        newest = answer.last_generation if turn is chat.turns[-1] else -1
        for call in answer.calls:
            if left > 0 and call.result and not (call.is_left_out or call.is_open or call.after == newest):
                left -= len(call.result)
                call, count = replace(call, is_left_out=True), count + 1
            records.append(call)
        if count:
            chat = chat.with_answer(turn.id, replace(answer, calls=tuple(records)))
    return chat, count


def own_texts(chat: Conversation, turn_id: str) -> tuple[str, ...]:
    """The person's typed texts up to the turn `turn_id`: without quotes and without long messages, which are
    pasted.
    """
    asked = [turn.user.content for turn in chat.upto(turn_id)]
    lines = [
        [line for line in text.split("\n") if not line.lstrip().startswith(">")]
        for text in asked
        if len(text) <= PASTED_CHARACTERS
    ]
    return tuple("\n".join(each) for each in lines)


def waiting(chat: Conversation) -> tuple[CallRecord, ...]:
    """The calls of the last answer that wait for permission."""
    answer = chat.turns[-1].answer if chat.turns else Answer()
    return (
        tuple(call for call in answer.calls if call.state == "waiting") if answer.status == "calling" else ()
    )


def allowance(call: CallRecord, scope: Scope, chat_id: str) -> Allowance | None:
    """The permission for later calls that a person gave with `call`."""
    if scope == "once" or not call.fingerprint:
        return None
    here = chat_id if scope == "chat" else ""
    return Allowance(call.fingerprint, call.server, call.tool, scope, here)


# ---- inside


def _call(chat: Conversation, turn_id: str, call_id: str, state: str) -> CallRecord:
    answer = chat.turn(turn_id).answer if chat.has(turn_id) else Answer()
    found = next((call for call in answer.calls if call.id == call_id), None)
    if found is None or found.state != state or answer.status != "calling":
        now = found.state if found and answer.status == "calling" else "over"
        raise CallError(strings.call_not(state, now), strings.CALL_HINT)
    return found


def _with(chat: Conversation, turn_id: str, record: CallRecord) -> Conversation:
    answer = chat.turn(turn_id).answer
    calls = [record if call.id == record.id else call for call in answer.calls]
    return _with_calls(chat, turn_id, answer, calls)


def _with_calls(
    chat: Conversation, turn_id: str, answer: Answer, calls: Sequence[CallRecord]
) -> Conversation:
    """The chat with these calls; an answer that made too many ends once none is open."""
    answer = replace(answer, calls=tuple(calls))
    if len(calls) > MOST_CALLS and not answer.open_calls:
        answer = replace(answer, status="stopped", note=strings.stopped_after(MOST_CALLS))
    return chat.with_answer(turn_id, answer)
