"""Adapts conversations to a model's chat template.

Templates differ in what they refuse or silently leave out: a system prompt, several of them, two questions
in a row, calls of tools, thoughts of earlier answers. `adapted` changes a conversation only where its
template requires it; any other conversation is rendered as transformers renders it. A system message that
comes after an answer becomes part of the question next to it and not of the first system message, so that the
rendered conversation before it stays the same and its cache entries are reused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from core.errors import RequestError
from core.events import Change, Image, Message, Role, Tool, ToolCall
from core.prompt.template import CallForm, TemplateSupport, call_id, parts, parts_with_images, with_thought

RegionKind = Literal["system", "user", "assistant", "tool", "document"]


class Region(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of a text, and their origin.

    For a document, `source` is its ordinal among all attachments, and `first_char` the region's offset in its
    text. A document's name belongs to the template.
    """

    start: int
    end: int
    kind: RegionKind
    source: int = -1
    first_char: int = 0


class Turn(Struct, frozen=True):
    """A message as passed to the template; `regions` are relative to `content`.

    `tags` are spans of `content` with the tags around a thought, which may become control tokens. `images`
    are in the order of `Image.at`, an offset in `content`.
    """

    role: Role
    content: str
    regions: tuple[Region, ...] = ()
    thought: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str = ""
    tags: tuple[tuple[int, int], ...] = ()
    images: tuple[Image, ...] = ()

    @property
    def has_content(self) -> bool:
        """Whether the turn has text, images or calls, or is a tool's result."""
        return bool(self.content.strip() or self.images or self.calls or self.role == "tool")


class Conversation(Struct, frozen=True):
    """Turns and tools for a template, and a `Change` for each adaptation that alters the meaning."""

    turns: tuple[Turn, ...]
    tools: tuple[Tool, ...] = ()
    changes: tuple[Change, ...] = ()


def turns_of(messages: Sequence[Message], system_prompt: str) -> tuple[Turn, ...]:
    """The messages with content; `system_prompt` replaces their system messages."""
    turns: list[Turn] = []
    attachments = 0
    for message in messages:
        turn = _turn(message, attachments)
        attachments += len(message.attachments)
        if turn.has_content:
            turns.append(turn)
    if not system_prompt.strip():
        return tuple(turns)
    return (_system(system_prompt), *(turn for turn in turns if turn.role != "system"))


def adapted(conversation: Conversation, support: TemplateSupport) -> Conversation:
    """`conversation` as a template with this `support` accepts it."""
    changes = list(conversation.changes)
    turns, tools = conversation.turns, conversation.tools
    calls = support.calls is not None
    if tools and not support.tools and not _front(turns) and support.tools_after_empty_system:
        turns = (Turn("system", ""), *turns)
    elif tools and not (support.tools or (_front(turns) and support.tools_after_system)):
        turns = _with_system(turns, tools_as_text(tools))
        changes.append(_tools_change(tools))
        tools, calls = (), False
    if any(turn.calls or turn.role == "tool" for turn in turns):
        if not calls:
            turns = tuple(map(_as_text, turns))
        elif any(len(turn.calls) > 1 for turn in turns) and not support.parallel_calls:
            turns = _one_call_each(turns)
    if any(turn.role == "system" for turn in turns):
        turns = _systems_adapted(turns, support, changes)
    if turns and turns[0].role == "assistant" and not support.answer_first:
        turns = (Turn("user", "…"), *turns)
        changes.append(_ANSWER_FIRST)
    return Conversation(_joined(turns, support), tools, tuple(changes))


def messages_for(conversation: Conversation, support: TemplateSupport) -> list[dict[str, Any]]:
    """The turns as the template's variable `messages`. Raises `RequestError` for malformed calls."""
    has_calls = any(turn.calls or turn.role == "tool" for turn in conversation.turns)
    form = (support.calls if has_calls else None) or CallForm()
    turns = _with_ids(conversation.turns, form)
    names = {call.id: call.name for turn in turns for call in turn.calls}
    return [_message(turn, form, names, support) for turn in turns]


def _message(turn: Turn, form: CallForm, names: dict[str, str], support: TemplateSupport) -> dict[str, Any]:
    match turn.role:
        case "user":
            typed = support.typed_user
        case "system":
            typed = support.typed_system
        case "assistant":
            typed = support.typed_answer
        case "tool":
            typed = form.typed_results
    content: Any = parts(turn.content) if typed else turn.content
    if turn.images:
        content = parts_with_images(turn.content, [image.at for image in turn.images])
    message: dict[str, Any] = {"role": turn.role, "content": content}
    if turn.calls:
        message["tool_calls"] = called(turn.calls, as_text=form.text_arguments)
    if turn.call_id:
        message["tool_call_id"] = turn.call_id
        if form.named_results and turn.call_id in names:
            message["name"] = names[turn.call_id]
    if turn.thought and (field := support.thought_field):
        message = with_thought(message, turn.thought, field)
    return message


def _with_ids(turns: Sequence[Turn], form: CallForm) -> list[Turn]:
    """`turns` with ids of calls and results in the form that the template accepts."""
    found: list[Turn] = []
    ids: dict[str, str] = {}
    index = 0
    for turn in turns:
        if form.numbered_ids == "message":
            index = 0
        calls: list[ToolCall] = []
        for call in turn.calls:
            ids[call.id] = call_id(form, call.id, call.name, index)
            calls.append(replace(call, id=ids[call.id]))
            index += 1
        result_id = turn.call_id
        if result_id in ids:
            result_id = ids[result_id]
        elif result_id and not form.numbered_ids:
            result_id = call_id(form, result_id, "", 0)
        found.append(replace(turn, calls=tuple(calls), call_id=result_id))
    return found


_DOCUMENT_END = "\n</document>"


def _turn(message: Message, first_source: int) -> Turn:
    """A message with its attachments, each named and marked as a document, before its own text. Pages of
    documents that are images follow the documents, each after its name.

    Without an end mark small models go on with the document instead of answering (docs/model-habits.md).
    """
    texts: list[str] = []
    regions: list[Region] = []
    at = 0
    for source, attachment in enumerate(message.attachments, start=first_source):
        body = attachment.text.strip()
        if not body:
            continue
        head = f'<document name="{attachment.name}">\n'
        start = at + len(head)
        stripped = len(attachment.text) - len(attachment.text.lstrip())
        regions.append(Region(start, start + len(body), "document", source, stripped))
        texts.append(head + body + _DOCUMENT_END)
        at = start + len(body) + len(_DOCUMENT_END) + 2
    images: list[Image] = []
    for page in (each for each in message.images if each.page):
        texts.append(f"{page.name}:\n")
        at += len(texts[-1])
        images.append(replace(page, at=at))
        at += 2
    regions.append(Region(at, at + len(message.content), message.role))
    content = "\n\n".join([*texts, message.content]) if texts else message.content
    most = len(message.content)
    others = (each for each in message.images if not each.page)
    images += sorted((replace(each, at=at + min(max(0, each.at), most)) for each in others), key=_at)
    return Turn(
        message.role,
        content,
        tuple(regions),
        message.thought,
        message.tool_calls,
        message.tool_call_id,
        images=tuple(images),
    )


def _at(image: Image) -> int:
    return image.at


def _system(text: str) -> Turn:
    return Turn("system", text, (Region(0, len(text), "system"),))


def _join(first: Turn, second: Turn, role: Role | None = None, between: str = "\n\n") -> Turn:
    """Both turns as one with `role`, by default that of the first."""
    if not first.content or not second.content:
        between = ""
    shift = len(first.content) + len(between)
    moved = (replace(each, start=each.start + shift, end=each.end + shift) for each in second.regions)
    return Turn(
        role or first.role,
        first.content + between + second.content,
        (*first.regions, *moved),
        "\n\n".join(thought for thought in (first.thought, second.thought) if thought),
        (*first.calls, *second.calls),
        first.call_id,
        (*first.tags, *((start + shift, end + shift) for start, end in second.tags)),
        (*first.images, *(replace(each, at=each.at + shift) for each in second.images)),
    )


def _merged(turns: Sequence[Turn]) -> Turn:
    return reduce(_join, turns)


def _with_system(turns: Sequence[Turn], text: str) -> tuple[Turn, ...]:
    """`turns` with `text` appended to their leading system messages, as one message."""
    front = _front(turns)
    return (_merged([*turns[:front], _system(text)]), *turns[front:])


def _front(turns: Sequence[Turn]) -> int:
    """Number of leading system messages."""
    return next((at for at, turn in enumerate(turns) if turn.role != "system"), len(turns))


def _systems_adapted(
    turns: Sequence[Turn], support: TemplateSupport, changes: list[Change]
) -> tuple[Turn, ...]:
    """`turns` with system messages where the template accepts them; others become part of a question."""
    front = _front(turns)
    if front > 1 and not support.several_systems:
        turns, front = (_merged(turns[:front]), *turns[front:]), 1
    adapted: list[Turn] = []
    waiting: Turn | None = None
    for at, turn in enumerate(turns):
        if turn.role == "system" and not _keeps_system(support, at, front, len(turns)):
            changes.extend(each for each in [_SYSTEM_IN_QUESTION[at < front]] if each not in changes)
            waiting = _join(waiting, turn) if waiting else turn
            continue
        if waiting and turn.role == "user":
            turn = _join(waiting, turn, "user")
        elif waiting:
            _append_question(adapted, waiting)
        waiting = None
        adapted.append(turn)
    if waiting:
        _append_question(adapted, waiting)
    return tuple(adapted)


def _keeps_system(support: TemplateSupport, at: int, front: int, turns: int) -> bool:
    if at < front:
        return support.system if turns > front else support.system_alone
    return support.last_system if at == turns - 1 else support.later_system


def _append_question(turns: list[Turn], question: Turn) -> None:
    if turns and turns[-1].role == "user":
        turns[-1] = _join(turns[-1], question)
    else:
        turns.append(replace(question, role="user"))


def _as_text(turn: Turn) -> Turn:
    """`turn` with a role that every template accepts, with its calls or result as text."""
    if turn.role == "tool":
        before, after = RESULT_MARKS
        result = _join(Turn("user", before), turn, between="")
        return _join(result, Turn("user", after), between="")
    if not turn.calls:
        return turn
    return _join(replace(turn, calls=()), Turn("assistant", calls_as_text(turn.calls)), between="\n")


def _one_call_each(turns: Sequence[Turn]) -> tuple[Turn, ...]:
    """Each call in a separate turn, followed by its result."""
    found: list[Turn] = []
    results = {turn.call_id: turn for turn in turns if turn.role == "tool" and turn.call_id}
    placed: set[str] = set()
    for turn in turns:
        if turn.role == "tool" and turn.call_id in placed:
            continue
        if len(turn.calls) < 2:
            found.append(turn)
            continue
        for at, call in enumerate(turn.calls):
            found.append(replace(turn, calls=(call,)) if at == 0 else Turn(turn.role, "", calls=(call,)))
            if call.id in results:
                placed.add(call.id)
                found.append(results[call.id])
    return tuple(found)


def _joined(turns: Sequence[Turn], support: TemplateSupport) -> tuple[Turn, ...]:
    """`turns` with consecutive questions or answers joined if the template does not accept them."""
    found: list[Turn] = []
    for turn in turns:
        same = found and found[-1].role == turn.role
        if same and (
            (turn.role == "user" and not support.consecutive_users)
            or (turn.role == "assistant" and not support.consecutive_answers)
        ):
            found[-1] = _join(found[-1], turn)
        else:
            found.append(turn)
    return tuple(found)


def _tools_change(tools: Sequence[Tool]) -> Change:
    names = ", ".join(tool.name for tool in tools)
    reason = "the model's chat template does not support tools"
    return Change("tools", names, "described in the system prompt", reason)


_ANSWER_FIRST = Change(
    "messages", "begins with an answer", "begins with “…”", "the model's chat template begins with a question"
)
# For a later system message, and for the first one.
_SYSTEM_IN_QUESTION = (
    Change(
        "messages",
        "a system message after the first question",
        "part of a question",
        "the model's chat template accepts system messages only at the beginning",
    ),
    Change(
        "chat.system_prompt",
        "a system message",
        "part of the first question",
        "the model's chat template has no system role",
    ),
)


# ---- tools, calls and results, in the form that chat templates expect
#
# A template with tools gets them as from transformers, with arguments as objects. For others, tools are
# described in the system prompt, and calls and results are part of the turns' text, in the format of Hermes
# models, which most small models have seen in training.


def declared(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The tools for a template. Raises `RequestError` if a tool's parameters are not a JSON object."""
    return [
        {
            "type": "function",
            "function": {
                "name": tool.name,
                "description": tool.description,
                "parameters": _object(tool.parameters, f"The parameters of the tool “{tool.name}”"),
            },
        }
        for tool in tools
    ]


def called(calls: Sequence[ToolCall], *, as_text: bool = False) -> list[dict[str, Any]]:
    """An assistant's calls for a template; `as_text`: arguments as JSON text.

    Raises `RequestError` if arguments are not a JSON object.
    """
    return [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": call.name,
                "arguments": json.dumps(arguments, ensure_ascii=False) if as_text else arguments,
            },
        }
        for call in calls
        for arguments in [_arguments(call)]
    ]


def tools_as_text(tools: Sequence[Tool]) -> str:
    """A description of the tools for the system prompt of a model whose template does not support tools."""
    lines = "\n".join(json.dumps(each, ensure_ascii=False) for each in declared(tools))
    return (
        "You can call functions. They are described here, one JSON object a line:\n"
        f"<tools>\n{lines}\n</tools>\n"
        "To call one, answer with its name and arguments as a JSON object, like this:\n"
        '<tool_call>\n{"name": "…", "arguments": {…}}\n</tool_call>'
    )


# Text before and after a result.
RESULT_MARKS = ("<tool_response>\n", "\n</tool_response>")


def calls_as_text(calls: Sequence[ToolCall]) -> str:
    """An assistant's calls as text, for a model whose template does not support tools."""
    texts = (
        json.dumps({"name": call.name, "arguments": _arguments(call)}, ensure_ascii=False) for call in calls
    )
    return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)


def _arguments(call: ToolCall) -> Mapping[str, Any]:
    return _object(call.arguments or "{}", f"The arguments of the call of “{call.name}”")


def _object(text: str, what: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RequestError(f"{what} are not JSON: {error}.", "Send a JSON object.") from error
    if not isinstance(value, dict):
        raise RequestError(f"{what} are not a JSON object.", "Send a JSON object.")
    return value
