"""From messages to token ids, through the model's own chat template.

Beside the ids stands the rendered text and which of its characters came from where, so that a
sparse prefill knows template from document and the reading map finds its characters.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from transformers import PreTrainedTokenizerBase

from core.answer_format import answer_format
from core.errors import EmptyPromptError, RequestError
from core.events import Change, Message, ModelInfo, Tool
from core.events.text import well_formed, well_formed_record
from core.models.library.naming import base_name, readable
from core.models.template import refused, renderer
from core.models.thinking import VARIABLE, knows_thinking, thinking_change, thinking_variables
from core.models.tools import called, declared, in_words, knows_tools, told

# About as many words as `core.prefill.layout` takes tokens for the question.
_ASKED_CHARACTERS = 500
RegionKind = Literal["system", "user", "assistant", "tool", "document"]


class Region(Struct, frozen=True):
    """Characters `start` to `end` (end-exclusive) of the rendered text, and what they are.

    Of a document: `source` is its ordinal among all attachments, and `first_char` where in its
    text the region begins. A document's name belongs to the template.
    """

    start: int
    end: int
    kind: RegionKind
    source: int = -1
    first_char: int = 0


class Prompt(Struct, frozen=True):
    """`ids` end where the answer begins. What is in no region of `text` is the template's own.

    `changes`: what was asked for and is told to the model in another way.
    """

    ids: list[int]
    text: str
    regions: tuple[Region, ...]
    changes: tuple[Change, ...] = ()

    @property
    def asking(self) -> Region | None:
        """The last user message's own words."""
        return next((region for region in reversed(self.regions) if region.kind == "user"), None)

    @property
    def asked(self) -> str:
        """The question; of a very long one its beginning and its end, where people ask."""
        region = self.asking
        words = self.text[region.start : region.end] if region else ""
        if len(words) > 2 * _ASKED_CHARACTERS:
            return f"{words[:_ASKED_CHARACTERS]}\n{words[-_ASKED_CHARACTERS:]}"
        return words


def check_continuation(continuation: Sequence[int], info: ModelInfo) -> None:
    """Raises `RequestError` if an answer that is to go on has ids that the model does not know."""
    strange = next((token for token in continuation if not 0 <= token < info.vocabulary), None)
    if strange is not None:
        raise RequestError(
            f"The continuation answer has the token {strange:,}; {info.name} knows {info.vocabulary:,}.",
            "Load the model that began it.",
        )


class _Piece(Struct, frozen=True):
    """A part of a turn's content; `region` is relative to the content."""

    content: str
    regions: tuple[Region, ...]


def render(
    tokenizer: TokenizerWrapper,
    messages: Sequence[Message],
    system_prompt: str = "",
    tools: Sequence[Tool] = (),
    thinking: bool = True,
) -> Prompt:
    """The prompt, ending where the answer begins; `thinking`: whether the model is to think first.

    A message's attachments come before its own words, each under its name. A tokenizer without
    a chat template gets the plain texts. Raises `EmptyPromptError` if the last message says
    nothing, `ChatTemplateError` if the template refuses the conversation or goes beyond its bounds,
    `RequestError` if a tool or a call is malformed.
    """
    messages, system_prompt = well_formed_record(tuple(messages)), well_formed(system_prompt)
    tools = well_formed_record(tuple(tools))
    changes: tuple[Change, ...] = ()
    last = messages[-1] if messages else None
    if not last or last.role not in ("user", "tool") or not (_says_something(last) or last.role == "tool"):
        raise EmptyPromptError("There is nothing to answer: the message is empty.", "Type a question.")
    template = _template(tokenizer)
    if not knows_tools(template):
        messages = tuple(map(in_words, messages))
        if tools:
            system_prompt = "\n\n".join(
                part for part in (_system(messages, system_prompt), told(tools)) if part
            )
            changes, tools = (_told_in_words(tools),), ()
    turns: list[tuple[dict[str, Any], _Piece]] = []
    attachments = 0
    for message in messages:
        if _says_something(message) or message.tool_calls or message.role == "tool":
            turns.append((_turn(message), _piece(message, attachments)))
        attachments += len(message.attachments)
    if system_prompt.strip():
        system = _Piece(system_prompt, (Region(0, len(system_prompt), "system"),))
        turns = [({"role": "system"}, system), *(turn for turn in turns if turn[0]["role"] != "system")]
    thinks = tokenizer.has_thinking or answer_format(template, "").thinks
    if not thinking and thinks and not switches_thinking(tokenizer):
        changes = (*changes, thinking_change(template))
    if not tokenizer.has_chat_template:
        text = "\n\n".join(piece.content for _, piece in turns)
        ids = [int(i) for i in tokenizer.encode(text)]
    else:
        contents = [{**turn, "content": piece.content} for turn, piece in turns]
        text, ids = _templated(tokenizer, contents, declared(tools) or None, thinking)
    return Prompt(ids, text, _placed(text, [piece for _, piece in turns]), changes)


def switches_thinking(tokenizer: TokenizerWrapper) -> bool:
    """Whether thinking can be switched on and off: by the folder's template, or by a library's code."""
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    if not tokenizer.has_chat_template:
        return False
    if not _is_of_the_folder(tokenizer, inner):
        return bool(tokenizer.has_thinking)
    return knows_thinking(_template(tokenizer))


def plain(tokenizer: TokenizerWrapper, text: str) -> Prompt:
    """`text` as it stands, without a template; all of it is the user's.

    Raises `EmptyPromptError` if it says nothing.
    """
    text = well_formed(text)
    ids = [int(i) for i in tokenizer.encode(text)]
    if not ids:
        raise EmptyPromptError("There is nothing to go on from: the prompt is empty.", "Give a prompt.")
    return Prompt(ids, text, (Region(0, len(text), "user"),))


def _turn(message: Message) -> dict[str, Any]:
    """What a template is told of a message beside its content."""
    turn: dict[str, Any] = {"role": message.role}
    if message.tool_calls:
        turn["tool_calls"] = called(message.tool_calls)
    if message.tool_call_id:
        turn["tool_call_id"] = message.tool_call_id
    return turn


def _system(messages: Sequence[Message], system_prompt: str) -> str:
    """What the model is told before the chat: `system_prompt`, or else what the messages say of it."""
    said = [message.content for message in messages if message.role == "system"]
    return system_prompt if system_prompt.strip() else "\n\n".join(said)


def _told_in_words(tools: Sequence[Tool]) -> Change:
    names = ", ".join(tool.name for tool in tools)
    reason = "the model's chat template knows no tools"
    return Change("tools", names, "told in the system prompt", reason)


def _template(tokenizer: TokenizerWrapper) -> str:
    """The chat template's source; empty if there is none, or if it is code of a library."""
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    if not tokenizer.has_chat_template or not _is_of_the_folder(tokenizer, inner):
        return ""
    try:
        return str(inner.get_chat_template())
    except ValueError:  # none of several is the default one: rendering says so
        return ""


def offsets(tokenizer: TokenizerWrapper, prompt: Prompt) -> list[tuple[int, int]] | None:
    """The tokens' character ranges in `prompt.text`; None if the tokenizer cannot tell."""
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    if not getattr(inner, "is_fast", False):
        return None
    told = inner(prompt.text, add_special_tokens=False, return_offsets_mapping=True)
    return [(int(a), int(b)) for a, b in told["offset_mapping"]] if told["input_ids"] == prompt.ids else None


def _templated(
    tokenizer: TokenizerWrapper,
    turns: list[dict[str, Any]],
    tools: list[dict[str, Any]] | None,
    thinking: bool,
) -> tuple[str, list[int]]:
    inner: Any = getattr(tokenizer, "_tokenizer", tokenizer)
    name = readable(base_name(Path(str(getattr(inner, "name_or_path", "") or "this model"))))
    if not _is_of_the_folder(tokenizer, inner):
        thinks = {VARIABLE: thinking and tokenizer.has_thinking}
        try:
            text = tokenizer.apply_chat_template(turns, add_generation_prompt=True, tokenize=False, **thinks)
            ids = tokenizer.apply_chat_template(turns, add_generation_prompt=True, **thinks)
        except Exception as error:  # libraries raise their own kinds
            raise refused(name, str(error)) from error
        return str(text), [int(i) for i in ids]
    try:
        template = inner.get_chat_template()
        # What mlx-lm and transformers give a template.
        named = {
            **inner.special_tokens_map,
            **thinking_variables(str(template), thinking),
            "tools": tools,
            "documents": None,
            "add_generation_prompt": True,
        }
        text = renderer().render(name, template, turns, named)
        return text, [int(i) for i in inner(text, add_special_tokens=False)["input_ids"]]
    except ValueError as error:  # none of several templates is the default one, or a text that has no ids
        raise refused(name, str(error)) from error


def _is_of_the_folder(tokenizer: TokenizerWrapper, inner: Any) -> bool:
    """Whether the template is the folder's, and not code of mlx-lm or transformers."""
    own: Any = getattr(tokenizer, "_chat_template", None)
    return own is None and type(inner).apply_chat_template is PreTrainedTokenizerBase.apply_chat_template


def _placed(text: str, pieces: Sequence[_Piece]) -> tuple[Region, ...]:
    """The pieces' regions in the rendered text; sought stripped, as templates may strip contents."""
    found: list[Region] = []
    cursor = 0
    for piece in pieces:
        stripped = piece.content.strip()
        at = text.find(stripped, cursor)
        if at < 0:
            continue  # a template that rewrites contents: it stays the template's own, and is read
        cursor = at + len(stripped)
        shift = at - (len(piece.content) - len(piece.content.lstrip()))
        for region in piece.regions:
            start, end = max(region.start + shift, at), min(region.end + shift, cursor)
            skipped = start - region.start - shift
            found.append(Region(start, end, region.kind, region.source, region.first_char + skipped))
    return tuple(found)


def _says_something(message: Message) -> bool:
    return bool(message.content.strip() or any(a.text.strip() for a in message.attachments))


def _piece(message: Message, first_source: int) -> _Piece:
    parts: list[str] = []
    regions: list[Region] = []
    at = 0
    for source, attachment in enumerate(message.attachments, start=first_source):
        body = attachment.text.strip()
        if not body:
            continue
        head = f"{attachment.name}:\n\n"
        start = at + len(head)
        stripped = len(attachment.text) - len(attachment.text.lstrip())
        regions.append(Region(start, start + len(body), "document", source, stripped))
        parts.append(head + body)
        at = start + len(body) + 2
    regions.append(Region(at, at + len(message.content), message.role))
    return _Piece("\n\n".join([*parts, message.content]) if parts else message.content, tuple(regions))
