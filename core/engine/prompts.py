"""Prompts besides the rendered chat: an edited answer to continue, and the request for a chat's title."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from itertools import accumulate

from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.decoding.text import TokenTexts
from core.documents.page_choice import MOST_PAGES, unread_pages
from core.documents.strings import pages
from core.events import TYPED, Change, Generate, Image, Message, ModelInfo
from core.events.wire import well_formed
from core.prompt import Prompt, Span, encode, inner_of
from core.settings import Settings, assign_all

# ---- the token ids of an answer that a person edited
#
# Unchanged tokens keep the ids that the model chose. Where the person wrote, the ids are those that the
# tokenizer gives the whole answer, up to the nearest token boundaries of both tokenizations, because a token
# may reach across the boundary of an edit: "hel" followed by a typed "lo" becomes "hello".

# Enough of the prompt to tokenize the answer as its continuation.
_CONTEXT_CHARACTERS = 200


def edited_ids(
    tokenizer: TokenizerWrapper,
    prompt: Prompt,
    format: AnswerFormat | None,
    ids: Sequence[int],
    texts: Sequence[str],
) -> list[int]:
    """The ids of an answer after `prompt` whose tokens have these `ids` and `texts`.

    A token `TYPED` is a person's text, or a deletion if it is empty. Control tokens in that text are ordinary
    text, except the tags around thoughts of `format`. Raises `RequestError` if a control token cannot be
    avoided.
    """
    texts = [well_formed(text) for text in texts]
    starts = [0, *accumulate(map(len, texts))]
    typed = [(starts[at], starts[at + 1]) for at, each in enumerate(ids) if each == TYPED]
    text = "".join(texts)
    whole = _tokenized(tokenizer, prompt, format, text, typed)
    whole_texts = _texts_of(tokenizer, whole)
    if "".join(whole_texts) != text:  # the tokenizer normalizes text
        return whole
    own, canonical = _boundaries(texts), _boundaries(whole_texts)
    shared = sorted(own.keys() & canonical.keys())
    found: list[int] = []
    at = 0
    for start, end in typed:
        low = max(each for each in shared if at <= each <= max(at, start))
        high = min(each for each in shared if each >= end)
        found += ids[own[at] : own[low]]
        found += whole[canonical[low] : canonical[high]]
        at = high
    found += ids[own[at] :]
    # An edit next to a token that ends inside a character leaves half of it.
    return found if TYPED not in found and "".join(_texts_of(tokenizer, found)) == text else whole


def _tokenized(
    tokenizer: TokenizerWrapper,
    prompt: Prompt,
    format: AnswerFormat | None,
    text: str,
    typed: Sequence[Span],
) -> list[int]:
    """The ids of `text` as an answer after `prompt`."""
    inner = inner_of(tokenizer)
    contents = list(_without_tags(text, typed, format))
    before = prompt.text[-_CONTEXT_CHARACTERS:]
    # After white space the answer continues the prompt's text. Otherwise it begins after a control token,
    # where a decoder drops the space that a SentencePiece tokenizer adds to the beginning of a text.
    if before[-1:].isspace():
        shifted = [(start + len(before), end + len(before)) for start, end in contents]
        first = encode(inner, before, (), prompt.rows).ids
        ids = encode(inner, before + text, shifted, prompt.rows).ids
        if ids[: len(first)] == first:
            return ids[len(first) :]
    return encode(inner, text, contents, prompt.rows).ids


def _without_tags(text: str, spans: Iterable[Span], format: AnswerFormat | None) -> Iterable[Span]:
    """`spans` without the tags around thoughts."""
    tags = {tag for each in format.thoughts for tag in (each.begin, each.end)} if format else set()
    tags = {tag for tag in (*tags, format.thought_end if format else "") if tag}
    pattern = re.compile("|".join(map(re.escape, tags)) or "(?!)")
    for start, end in spans:
        for tag in pattern.finditer(text, start, end):
            if start < tag.start():
                yield start, tag.start()
            start = tag.end()
        if start < end:
            yield start, end


def _texts_of(tokenizer: TokenizerWrapper, ids: Sequence[int]) -> list[str]:
    texts = TokenTexts(tokenizer)
    return [*(text for token in ids for text in texts.add(token)), *texts.finish()]


def _boundaries(texts: Sequence[str]) -> dict[int, int]:
    """The index of the first token from each token boundary on, by character offset.

    A token without text holds the first bytes of the next character.
    """
    found = {0: 0}
    at = 0
    for number, text in enumerate(texts, start=1):
        at += len(text)
        if text:
            found[at] = number
    return found


# ---- images that an answer goes without


def asks_with_images(messages: Sequence[Message]) -> bool:
    """Whether the last question of `messages` has images. Those of results of tools are named instead."""
    question = next((each for each in reversed(messages) if each.role == "user"), None)
    return question is not None and bool(question.images)


def without_oldest_images(
    messages: Sequence[Message], tokens: int, rows_of: Callable[[Image], Sequence[int]]
) -> tuple[Message, ...]:
    """`messages` without the oldest images, of at least `tokens` rows; those of the last message stay."""
    found = list(messages)
    for at, message in enumerate(found[:-1]):
        kept = list(message.images)
        while kept and tokens > 0:
            tokens -= len(rows_of(kept.pop(0)))
        found[at] = replace(message, images=tuple(kept))
    return _filled(found, messages)


def without_images(messages: Sequence[Message]) -> tuple[Message, ...]:
    """`messages` for a model that cannot see. Results of tools name the images that they lack."""
    return _filled([_with_names(each) for each in messages], messages)


def _with_names(message: Message) -> Message:
    images = message.images if message.role == "tool" else ()
    names = [f"[image “{each.name}” left out: this model cannot see]" for each in images]
    content = "\n".join(filter(None, (message.content, *names)))
    return replace(message, content=content, images=())


def _filled(found: Sequence[Message], messages: Sequence[Message]) -> tuple[Message, ...]:
    """`found`, which are `messages` with fewer images, with a content where nothing else is left."""
    # A turn of images alone would disappear with them, and its answer would follow no question.
    return tuple(
        replace(each, content="…") if given.images and not (each.images or each.content.strip()) else each
        for each, given in zip(found, messages)
    )


def left_out_images(messages: Sequence[Message], count: int) -> Change:
    """The change reported for `count` images of the oldest turns that the context cannot hold."""
    total = sum(len(message.images) for message in messages)
    reason = "the context cannot hold more, so those of the oldest turns were left out"
    return Change("images", f"{total:,}", f"{total - count:,}", reason)


def unread_page_changes(messages: Sequence[Message]) -> tuple[Change, ...]:
    """The changes reported for pages without text of documents that are not among the images."""
    changes = []
    for attachment, left in unread_pages(messages):
        count = len(attachment.scans.pages) if attachment.scans else 0
        reason = (
            f"{pages(left)} of {attachment.name} were not read: they are images, and at most {MOST_PAGES} are"
            " read for a question, as far as half of the context holds them. Ask about a page by its number"
        )
        if len(left) == 1:
            reason = reason.replace(" were not read: they are images", " was not read: it is an image", 1)
        changes.append(Change("images", f"{count:,} pages", f"{count - len(left):,} pages", reason))
    return tuple(changes)


def unseen_images(messages: Sequence[Message], info: ModelInfo) -> Change:
    """The change reported for images of earlier questions and of results that the model cannot see."""
    total = sum(len(message.images) for message in messages)
    why = info.why_unseeing or "it has no part for images"
    return Change("images", f"{total:,}", "0", f"{info.name} cannot see images: {why}")


# ---- titles
#
# Only the beginnings of question and answer are sent, because a title must not take a minute. Unusable output
# (nothing, a sentence to the user, markup, a repeated word) gives no title; the chat then keeps the first
# words of its question.

MOST_TOKENS = 12
_QUESTION_CHARACTERS = 600
_ANSWER_CHARACTERS = 300
_MOST_CHARACTERS = 60
# The request is for at most six words; a longer line that was cut off is prose.
_MOST_WORDS_CUT = 7
# Short chunks, because a new question has to wait for the current one.
_CHUNK_TOKENS = 64
_ASK = (
    "Write a title of two to six words for this conversation. Name its subject, not the task, such as to"
    " summarize or translate. Answer with the title alone.\n\nQuestion: {question}\n\nAnswer: {answer}"
)
# “Title: …”, perhaps in Markdown.
_LABEL = re.compile(r"^[\s#*_>-]*title\b[\s*_]*[:\-–—]?[\s*_]*", re.I)
_AROUND = " \t\"'`*_#“”‘’«»„[](){}-–—:;,."
_SMALL = {"a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"}
_TO_THE_PERSON = re.compile(
    r"^(sure\b|certainly\b|of course\b|here (is|are)\b|here['’]s\b|i['’]?m\b|i (am|can|will|would)\b|as an\b"
    r"|you are\b|dear\b|this conversation\b|the (title|conversation|question|answer)\b|question\b|answer\b)",
    re.I,
)


# It names an operation on a text, not the text's subject.
_TASK_ALONE = re.compile(
    r"(?:(?:text|passage|article|document|code|email|message) )?(?:summary|summari[sz](?:e|ing|ation)"
    r"|translat(?:e|ing|ion)|rewrit(?:e|ing)|paraphras(?:e|ing)|proofread(?:ing)?|correct(?:ion|ing)|explanation"
    r"|analysis|review)(?: (?:of|the|a|an|this|following|given|provided|text|passage|article|document|code"
    r"|email|message|request|task))*",
    re.I,
)


def _ends(text: str, most: int) -> str:
    """At most `most` characters of `text`: its beginning and its end, where the question may be."""
    if len(text) <= most:
        return text
    half = max(0, (most - 3) // 2)
    return f"{text[:half]} … {text[len(text) - half :]}" if half else text[:most]


def title_request(messages: Sequence[Message], context_tokens: int) -> Generate | None:
    """The request for a title; None without a question or an answer."""
    question = next((each for each in messages if each.role == "user"), None)
    answer = next((each.content for each in messages if each.role == "assistant"), "")
    if question is None or not answer.strip():
        return None
    names = ", ".join(
        [*(each.name for each in question.images), *(each.name for each in question.attachments)]
    )
    # A token has at least one character.
    limit = max(0, (context_tokens - MOST_TOKENS) // 2 - len(_ASK))
    asked = " ".join(f"{names} {question.content}".split())
    asked = _ends(asked, min(_QUESTION_CHARACTERS, limit))
    answered = " ".join(answer.split())[: min(_ANSWER_CHARACTERS, limit)]
    settings = assign_all(
        Settings(),
        [
            ("drafting.drafter", "off"),
            ("sampling.temperature", 0.0),
            ("sampling.max_tokens", MOST_TOKENS),
            ("prefill.mode", "off"),
            ("prefill.chunk_tokens", _CHUNK_TOKENS),
            ("tables.learn", False),
            ("chat.thinking", "off"),
        ],
    )
    words = _ASK.format(question=asked, answer=answered)
    return Generate("", (Message("user", words),), settings, isolated=True)


def cleaned(written: str, *, cut: bool = False) -> str:
    """The title in the model's output, as one line; empty if it is unusable.

    `cut`: the output reached its token limit, so its last word may be incomplete.
    """
    line = next((line for line in written.splitlines() if line.strip(_AROUND)), "")
    words = _LABEL.sub("", line, count=1).strip(_AROUND).split()
    if cut and line and line == written.strip("\n").splitlines()[-1]:
        if len(words) > _MOST_WORDS_CUT:
            return ""
        words = words[:-1]
        while words and words[-1].casefold().strip(_AROUND) in _SMALL:
            words.pop()
    title = " ".join(words).strip(_AROUND)
    return "" if _is_unusable(title) else title[:1].upper() + title[1:]


def _is_unusable(title: str) -> bool:
    words = title.casefold().split()
    letters = sum(unicodedata.category(each)[0] in "LM" for each in title)  # with vowel signs
    wide = any(each.isalpha() and unicodedata.east_asian_width(each) == "W" for each in title)
    if letters < (2 if wide else 3) or 2 * letters < len(title) or len(title) > _MOST_CHARACTERS:
        return True
    if any(mark in title for mark in ("<", "|", ". ", '"')) or _TO_THE_PERSON.match(title):
        return True
    if _TASK_ALONE.fullmatch(title):
        return True
    return len(words) > 2 and len(set(words)) <= len(words) // 2
