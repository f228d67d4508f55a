"""Rendering of messages to token ids with the model's chat template.

The prompt includes the rendered text and the origin of its characters, so that sparse prefill can distinguish
the template from documents, and the reading map can locate characters of a document.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from core.answer_format import AnswerFormat, answer_format, answer_opening, parse_past_answer
from core.errors import ChatTemplateError, EmptyPromptError, PromptTooLongError, RequestError
from core.events import TYPED, Change, Generate, Image, Message, ModelInfo, Tool
from core.events.wire import well_formed, well_formed_record
from core.prompt.conversation import Conversation, Region, Turn, adapted, declared, messages_for, turns_of
from core.prompt.marks import OTHER, Rendering, Run, changed
from core.prompt.marks import rendered as rendered_by
from core.prompt.probe import (
    ChatTemplate,
    folder_template,
    inner_of,
    switches_thinking,
    thinking_change,
)
from core.prompt.template import LEAST, RefusedError
from core.prompt.tokens import Disguise, Span, Tokens, encode
from core.settings.request import ThinkingMode

# About the number of tokens that `core.prefill.layout` uses of the question.
_ASKED_CHARACTERS = 500
_QUOTED_CHARACTERS = 60
# Most characters that a template writes for one: two escapes of four digits.
_ESCAPE_CHARACTERS = 12


class ImageText(Struct, frozen=True):
    """How a model's prompts show images.

    The chat template writes `written` for one, which becomes `shown`; its token `token` becomes the ids
    `rows_of(image)`.
    """

    written: str
    shown: str
    token: str
    rows_of: Callable[[Image], list[int]]


class Prompt(Struct, frozen=True):
    """A rendered prompt. `ids` end where the answer begins. Text outside `regions` is the template's.

    - `contents`: sorted spans of `text` from messages and tools, without control tokens.
    - `rows`: number of the model's embedding rows, if known.
    - `changes`: adaptations that change the meaning of the conversation.
    - `tokens`: the tokenised text, of which `ids` may be a continuation.
    """

    ids: list[int]
    text: str
    regions: tuple[Region, ...]
    changes: tuple[Change, ...] = ()
    contents: tuple[Span, ...] = ()
    rows: int | None = None
    tokens: Tokens | None = None

    @property
    def asking(self) -> Region | None:
        """The last user message without its attachments."""
        return next((region for region in reversed(self.regions) if region.kind == "user"), None)

    @property
    def asked(self) -> str:
        """The question; of a very long one, its beginning and end."""
        region = self.asking
        words = self.text[region.start : region.end] if region else ""
        if len(words) > 2 * _ASKED_CHARACTERS:
            return f"{words[:_ASKED_CHARACTERS]}\n{words[-_ASKED_CHARACTERS:]}"
        return words


def check_continuation(request: Generate, info: ModelInfo) -> None:
    """Raises `RequestError` if the answer to continue has ids outside the model's vocabulary, or texts for
    other tokens.
    """
    ids, texts = request.continuation, request.continuation_texts
    if texts and len(texts) != len(ids):
        raise RequestError(
            f"The answer to continue has {len(ids):,} tokens and {len(texts):,} texts.",
            "Send a text for each token, or none.",
        )
    least = TYPED if texts else 0
    strange = next((token for token in ids if not least <= token < info.vocabulary), None)
    if strange is not None:
        raise RequestError(
            f"The answer to continue has the token {strange:,}; {info.name} has {info.vocabulary:,}.",
            "Load the model that wrote it.",
        )


def render(
    tokenizer: TokenizerWrapper,
    messages: Sequence[Message],
    system_prompt: str = "",
    tools: Sequence[Tool] = (),
    thinking: ThinkingMode = "auto",
    rows: int | None = None,
    image_text: ImageText | None = None,
) -> Prompt:
    """The prompt for the answer to `messages`. `thinking`: whether the model thinks first. `image_text`: of a
    model that sees; without it images are left out.

    Attachments come before the message's own text, each under its name. If the last message is an answer, the
    prompt ends with it, and the model continues it. A tokenizer without a chat template gets the texts only.
    Raises `EmptyPromptError` if there is nothing to answer, `ChatTemplateError` if the template refuses the
    conversation, omits a message or exceeds its limits, `RequestError` if a tool or a call is malformed, or
    if a control token in a message cannot be read as text.
    """
    messages, system_prompt = well_formed_record(tuple(messages)), well_formed(system_prompt)
    if image_text is None:
        messages = tuple(replace(each, images=()) if each.images else each for each in messages)
    given_tools = well_formed_record(tuple(tools))
    _check_has_content(messages, system_prompt)
    changes: tuple[Change, ...] = ()
    source = folder_template(tokenizer)
    thinks = tokenizer.has_thinking or answer_format(source, "").thinks
    if thinking == "off" and thinks and not switches_thinking(tokenizer):
        changes = (thinking_change(source),)
    inner = inner_of(tokenizer)
    given = Conversation(turns_of(messages, system_prompt), given_tools, changes)
    if not tokenizer.has_chat_template:
        reason = "the model's folder has no chat template; the model reads the texts without roles"
        given = replace(given, changes=(*changes, Change("chat template", "the model's own", "none", reason)))
        conversation = adapted(given, LEAST) if tools else given
        rendering = _texts(conversation.turns)
    else:
        template = ChatTemplate(tokenizer, given_tools, thinking)
        conversation, rendering = _rendered(template, given, rows)
    images = [image for turn in conversation.turns for image in turn.images]
    if images and image_text is not None:
        name = template.name if tokenizer.has_chat_template else "this model"
        rendering = _with_images_shown(rendering, image_text, len(images), name)
    contents = _merged(_without_tags(conversation.turns, rendering))
    tokens = encode(inner, rendering.text, contents, rows, add_special=not tokenizer.has_chat_template)
    if images and image_text is not None:
        token = inner.convert_tokens_to_ids(image_text.token)
        if tokens.ids.count(token) != len(images):
            raise _without_images(name, len(images))
        tokens = tokens.with_rows(token, [image_text.rows_of(image) for image in images])
    return Prompt(
        tokens.ids,
        rendering.text,
        _regions(conversation.turns, rendering),
        conversation.changes,
        contents,
        rows,
        tokens,
    )


def _with_images_shown(rendering: Rendering, image_text: ImageText, count: int, name: str) -> Rendering:
    """`rendering` with the placeholder of each of `count` images; contents that look the same stay."""
    written, text = image_text.written, rendering.text
    runs = [run for run in rendering.runs if run.start < run.end]
    found = [
        place.start()
        for place in re.finditer(re.escape(written), text)
        if not any(run.start < place.end() and place.start() < run.end for run in runs)
    ]
    if len(found) != count:
        raise _without_images(name, count)
    longer = len(image_text.shown) - len(written)
    pieces = [
        text[start:end] for start, end in zip([0, *(at + len(written) for at in found)], [*found, None])
    ]

    def moved(run: Run) -> Run:
        by = longer * bisect_left(found, run.start)
        return run._replace(start=run.start + by, end=run.end + by)

    return Rendering(image_text.shown.join(pieces), tuple(map(moved, rendering.runs)))


def _without_images(name: str, count: int) -> ChatTemplateError:
    images = "the image" if count == 1 else f"each of the {count:,} images"
    return ChatTemplateError(
        name, f"does not write {images} of this conversation once", "Choose another model."
    )


def plain(tokenizer: TokenizerWrapper, text: str, rows: int | None = None) -> Prompt:
    """A prompt of `text` without a template; all of it counts as the user's.

    It is in the model's own format, so control tokens in it are control tokens, except those without an
    embedding row. Raises `EmptyPromptError` if it is empty.
    """
    text = well_formed(text)
    inner = inner_of(tokenizer)
    tokens = encode(inner, text, [(0, len(text))], rows, raw=True, add_special=True)
    if not tokens.ids:
        raise EmptyPromptError("The prompt is empty.", "Give a prompt.")
    return Prompt(tokens.ids, text, (Region(0, len(text), "user"),), rows=rows, tokens=tokens)


def with_answer_opened(
    tokenizer: TokenizerWrapper, prompt: Prompt, format: AnswerFormat
) -> tuple[Prompt, AnswerFormat]:
    """`prompt` with its open thought or header closed, for an answer by a grammar."""
    opening = answer_opening(format, prompt.text)
    if not opening:
        return prompt, format
    more = [int(i) for i in inner_of(tokenizer)(opening, add_special_tokens=False)["input_ids"]]
    opened = replace(prompt, ids=[*prompt.ids, *more], text=prompt.text + opening)
    return opened, replace(format, begins="text", thought_end="")


def offsets(tokenizer: TokenizerWrapper, prompt: Prompt) -> NDArray[np.int64] | None:
    """The tokens' character ranges (int64 [n, 2]) in `prompt.text`; None if the tokenizer has no offsets.

    The text is tokenised again only if the prompt does not have its tokens.
    """
    inner = inner_of(tokenizer)
    if not getattr(inner, "is_fast", False):
        return None
    tokens = prompt.tokens or encode(inner, prompt.text, prompt.contents, prompt.rows)
    known = len(tokens.ids)
    spans = tokens.offsets
    if spans is None or tokens.ids != prompt.ids[:known] or (not prompt.tokens and known < len(prompt.ids)):
        return None
    found = np.full((len(prompt.ids), 2), len(prompt.text), np.int64)  # the answer begins at the end
    found[:known] = np.fromiter(chain.from_iterable(spans), np.int64, 2 * known).reshape(known, 2)
    return found


def _rendered(
    template: ChatTemplate, given: Conversation, rows: int | None
) -> tuple[Conversation, Rendering]:
    """The adapted conversation, rendered with all of its content."""
    last = given.turns[-1]
    if any(turn.role == "assistant" for turn in given.turns):
        given = replace(given, turns=_parsed(given.turns, template))
    begun = last if last.role == "assistant" and not given.turns[-1].has_content else None
    given = replace(given, turns=tuple(turn for turn in given.turns if turn.has_content))
    first_error: ChatTemplateError | None = None
    tried: list[Conversation] = []
    for support in (template.support, LEAST):
        conversation = adapted(given, support)
        if conversation in tried:
            break
        tried.append(conversation)
        try:
            rendering = _with_answer(template, conversation, rows)
        except RefusedError as error:
            first_error = first_error or error
            continue
        missing = _missing(conversation.turns, rendering)
        if missing is None and begun is not None:
            return _appended(conversation, rendering, begun)
        if missing is None:
            return conversation, rendering
        words = " ".join(missing.content.split())[:_QUOTED_CHARACTERS]
        first_error = first_error or ChatTemplateError(
            template.name, f"leaves out the {missing.role} message “{words}”", "Choose another model."
        )
    assert first_error is not None
    raise first_error


def _with_answer(template: ChatTemplate, conversation: Conversation, rows: int | None) -> Rendering:
    """The rendered conversation; if it ends with an answer, up to the answer's last word."""
    last = conversation.turns[-1]
    if last.role != "assistant" or last.calls:
        return _written(template, conversation, True, rows)
    try:
        rendering = _written(template, conversation, False, rows)
    except RefusedError:
        rendering = Rendering("")
    source = len(conversation.turns) - 1
    if end := max((run.end for run in rendering.runs if run.source == source), default=0):
        return Rendering(rendering.text[:end], tuple(run for run in rendering.runs if run.start < end))
    before = replace(conversation, turns=conversation.turns[:-1])
    return _appended_text(_written(template, before, True, rows), last.content, source)


def _written(template: ChatTemplate, conversation: Conversation, begins: bool, rows: int | None) -> Rendering:
    """The template's output. Control tokens in the conversation are always runs."""
    messages = messages_for(conversation, template.support)
    tools = declared(conversation.tools)
    given = json.dumps([template.source, messages, tools], ensure_ascii=False)
    disguise = Disguise(template.inner, rows, given)

    def hidden(value: Any, tags: Sequence[Span] = ()) -> Any:
        return changed(value, lambda text, under: disguise.hide(text, tags if under != "thinking" else ()))

    hidden_messages = [
        {key: hidden(value, turn.tags if key == "content" else ()) for key, value in message.items()}
        for turn, message in zip(conversation.turns, messages)
    ]
    rendering = rendered_by(template.write, hidden_messages, hidden(tools), begins, disguise.pattern)
    text, spans = disguise.show(rendering.text)
    return Rendering(text, (*rendering.runs, *(Run(start, end, OTHER) for start, end in spans)))


def _appended(
    conversation: Conversation, rendering: Rendering, begun: Turn
) -> tuple[Conversation, Rendering]:
    """The rendered conversation with an answer that consists of a thought only."""
    turns = (*conversation.turns, begun)
    text = begun.content
    opened = rendering.text.rstrip().rpartition("\n")[2].rpartition(">")[0]
    if opened and text.lstrip().startswith(tag := opened[opened.rfind("<") :] + ">"):
        text = text.lstrip().removeprefix(tag).lstrip("\n")
    appended = _appended_text(rendering, text, len(turns) - 1)
    return replace(conversation, turns=(*conversation.turns, replace(begun, content=text))), appended


def _appended_text(rendering: Rendering, text: str, source: int) -> Rendering:
    start = len(rendering.text)
    return Rendering(rendering.text + text, (*rendering.runs, Run(start, start + len(text), source)))


def _parsed(turns: Sequence[Turn], template: ChatTemplate) -> tuple[Turn, ...]:
    """Splits the texts of earlier answers into thought and text.

    The thought stays in the content if that is where the template reads and keeps it.
    """
    form = template.answer_format()
    tags = template.kept_thought_tags()
    found: list[Turn] = []
    for turn in turns:
        if turn.role != "assistant" or not turn.content.strip():
            found.append(turn)
            continue
        parsed = parse_past_answer(turn.content, form.without_calls())
        if tags is not None and (parsed.text.strip() or turn.calls):
            found.append(_with_thought_in_content(turn, parsed.thought, tags))
            continue
        if not parsed.thought and parsed.text.strip() == turn.content.strip():
            found.append(turn)
            continue
        text = parsed.text
        start = max(0, turn.content.find(text))
        regions = (Region(0, len(text), "assistant", first_char=start),)
        found.append(replace(turn, content=text, regions=regions, thought=turn.thought or parsed.thought))
    return tuple(found)


def _with_thought_in_content(turn: Turn, parsed_thought: str, tags: tuple[str, str]) -> Turn:
    """An earlier answer whose content begins with its thought, as the model wrote it, if known."""
    opening, closing = tags
    begin = opening.rstrip()
    if parsed_thought:
        # The opening tag may be at the end of the earlier prompt.
        added = "" if turn.content.lstrip().startswith(begin) else opening
    elif turn.thought:
        added = f"{opening}{turn.thought}\n{closing}\n\n"
    else:
        return turn
    content = added + turn.content
    regions = (Region(len(added), len(content), "assistant"),)
    spans = ((content.find(tag), len(tag)) for tag in (begin, closing))
    located = tuple((start, start + length) for start, length in spans if start >= 0)
    return replace(turn, content=content, regions=regions, thought="", tags=located)


def _missing(turns: Sequence[Turn], rendering: Rendering) -> Turn | None:
    """The last turn whose text is missing in the rendered prompt."""
    written = {run.source for run in rendering.runs}
    return next(
        (
            turns[at]
            for at in reversed(range(len(turns)))
            if turns[at].role != "assistant" and turns[at].content.strip() and at not in written
        ),
        None,
    )


def _regions(turns: Sequence[Turn], rendering: Rendering) -> tuple[Region, ...]:
    """The regions of the turns' contents in the rendered text."""
    found: list[Region] = []
    for run in rendering.runs:
        if run.source == OTHER:
            continue  # calls, thoughts and tools are always kept
        turn, written = turns[run.source], rendering.text[run.start : run.end]
        escaped = len(written) <= _ESCAPE_CHARACTERS and not turn.content.startswith(written, run.offset)
        for region in turn.regions:
            start = max(region.start, run.offset)
            end = min(region.end, run.offset + (1 if escaped else len(written)))
            if start >= end:
                continue
            at = run.start + start - run.offset
            stop = run.end if escaped else at + end - start
            before = found[-1] if found else None
            first_char = region.first_char + start - region.start
            # A question with escaped characters is one region.
            if before and region.kind != "document" and (before.kind, before.end) == (region.kind, at):
                found[-1] = replace(before, end=stop)
            else:
                found.append(Region(at, stop, region.kind, region.source, first_char))
    return tuple(found)


def _without_tags(turns: Sequence[Turn], rendering: Rendering) -> list[Run]:
    """The runs of contents without the tags around thoughts, which are control tokens of some models."""
    found: list[Run] = []
    for run in rendering.runs:
        turn = turns[run.source] if run.source != OTHER else None
        written = rendering.text[run.start : run.end]
        if turn is None or not turn.tags or not turn.content.startswith(written, run.offset):
            found.append(run)
            continue
        at = run.start
        for start, end in turn.tags:
            first, last = run.start + start - run.offset, run.start + end - run.offset
            if run.start <= first and last <= run.end:
                found.append(Run(at, first, run.source, run.offset + at - run.start))
                at = last
        found.append(Run(at, run.end, run.source, run.offset + at - run.start))
    return [run for run in found if run.start < run.end]


def _merged(runs: Sequence[Run]) -> tuple[Span, ...]:
    spans: list[Span] = []
    for run in sorted(runs):
        if spans and spans[-1][1] >= run.start:
            spans[-1] = (spans[-1][0], max(spans[-1][1], run.end))
        else:
            spans.append((run.start, run.end))
    return tuple(spans)


def _texts(turns: Sequence[Turn]) -> Rendering:
    """The joined contents, for a tokenizer without a chat template."""
    rendering = Rendering("")
    for number, turn in enumerate(turns):
        between = Rendering(rendering.text + ("\n\n" if number else ""), rendering.runs)
        rendering = _appended_text(between, turn.content, number)
    return rendering


def _check_has_content(messages: Sequence[Message], system_prompt: str) -> None:
    """Raises `EmptyPromptError` if there is nothing to answer."""
    last = messages[-1] if messages else None
    if last is None and not system_prompt.strip():
        raise EmptyPromptError("The conversation is empty.", "Type a question.")
    if last is None or last.role == "tool" or last.tool_calls or last.content.strip() or last.images:
        return
    if not any(attachment.text.strip() for attachment in last.attachments):
        raise EmptyPromptError("The last message is empty.", "Type a question.")


# ---- token counts without tokenising a huge text
#
# A tokenizer takes seconds and hundreds of megabytes for a few million characters, more than any context. A
# long text is therefore counted in pieces until it is certainly too long; the result is then an estimate.


_PIECE_CHARACTERS = 16_384
# A text up to this length is counted completely, which takes a tenth of a second.
_LONG_CHARACTERS = 200_000
# Most additional tokens from a divided word, in nearly all texts.
_MORE_A_CUT = 8


def count_tokens(
    length: Callable[[str], int], text: str, limit_tokens: int, whole_characters: int = 0
) -> tuple[int, bool]:
    """Number of tokens of `text` without a template, and whether it is exact; `length` counts a text.

    A text of at most `whole_characters` is counted completely. One that is longer, and longer than a tenth of
    a second takes, is estimated: counted as far as `limit_tokens` require.
    """
    if len(text) <= max(_LONG_CHARACTERS, whole_characters):
        return length(text), True
    tokens, characters = _counted(length, text, 2 * limit_tokens)
    return round(tokens * len(text) / characters), False


def plain_length(tokenizer: TokenizerWrapper) -> Callable[[str], int]:
    """Counts the tokens of a text without special tokens."""
    return lambda text: len(tokenizer.encode(text, add_special_tokens=False))


def check_fits(
    tokenizer: TokenizerWrapper, messages: Sequence[Message], limit_tokens: int, chosen: bool
) -> None:
    """Raises `PromptTooLongError` if `messages` are certainly too long, before rendering.

    Otherwise the rendered prompt's tokens decide. `chosen` is that error's.
    """
    texts = [text for each in messages for text in (each.content, *(a.text for a in each.attachments))]
    characters = sum(map(len, texts))
    if len(messages) > limit_tokens:
        raise PromptTooLongError(max(len(messages), characters // 4), limit_tokens, chosen)
    if characters <= max(_LONG_CHARACTERS, 8 * limit_tokens):
        return
    tokens = done = 0
    for text in texts:
        counted, of_them = _counted(plain_length(tokenizer), text, limit_tokens - tokens)
        tokens, done = tokens + counted, done + of_them
        if tokens > limit_tokens:
            raise PromptTooLongError(round(tokens * characters / done), limit_tokens, chosen)


def _counted(length: Callable[[str], int], text: str, enough: int) -> tuple[int, int]:
    """A lower bound of the token count, exact up to `enough`; and the number of counted characters."""
    tokens = at = 0
    while at < len(text) and tokens <= enough:
        piece = text[at : at + _PIECE_CHARACTERS]
        at += len(piece)
        cut = _MORE_A_CUT if at < len(text) else 0
        tokens += max(0, length(piece) - cut)
    return tokens, at
