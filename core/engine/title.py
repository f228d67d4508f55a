"""Titles of chats: the request for one, and the check of the model's output. No MLX.

Only the beginnings of question and answer are sent, because a title must not take a minute. Unusable output
(nothing, a sentence to the user, markup, a repeated word) gives no title; the chat then keeps the first words
of its question.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from core.events import Generate, Message
from core.settings import Settings, assign_all

MOST_TOKENS = 12
_QUESTION_CHARACTERS = 600
_ANSWER_CHARACTERS = 300
_MOST_CHARACTERS = 60
# The request is for at most six words; a longer line that was cut off is prose.
_MOST_WORDS_CUT = 7
# Short chunks, because a new question has to wait for the current one.
_CHUNK_TOKENS = 64
_ASK = (
    "Write a title of two to six words for this conversation. Say what it is about. Answer with the title"
    " alone.\n\nQuestion: {question}\n\nAnswer: {answer}"
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


def title_request(messages: Sequence[Message], context_tokens: int) -> Generate | None:
    """The request for a title; None without a question or an answer."""
    question = next((each for each in messages if each.role == "user"), None)
    answer = next((each.content for each in messages if each.role == "assistant"), "")
    if question is None or not answer.strip():
        return None
    names = ", ".join(attachment.name for attachment in question.attachments)
    # A token has at least one character.
    limit = max(0, (context_tokens - MOST_TOKENS) // 2 - len(_ASK))
    asked = " ".join(f"{question.content} {names}".split())[: min(_QUESTION_CHARACTERS, limit)]
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
            ("chat.thinking", False),
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
    if cut and line == written.strip("\n").splitlines()[-1]:
        if len(words) > _MOST_WORDS_CUT:
            return ""
        words = words[:-1]
        while words and words[-1].casefold().strip(_AROUND) in _SMALL:
            words.pop()
    title = " ".join(words).strip(_AROUND)
    return "" if _is_unusable(title) else title[:1].upper() + title[1:]


def _is_unusable(title: str) -> bool:
    words = title.casefold().split()
    letters = sum(character.isalpha() for character in title)
    if letters < 3 or 2 * letters < len(title) or len(title) > _MOST_CHARACTERS:
        return True
    if any(mark in title for mark in ("<", "|", ". ", '"')) or _TO_THE_PERSON.match(title):
        return True
    return len(words) > 2 and len(set(words)) <= len(words) // 2
