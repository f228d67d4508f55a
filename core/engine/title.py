"""Titles: what the model is asked for one with, and what of its words is fit for use. No MLX.

The question's beginning and the answer's are enough, and little to read: a title must not take a
minute. What is no title (nothing, a whole sentence to the person, a tag, one word over and over) is none;
the chat then keeps its question's first words.
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
# Six were asked for. What is longer and not done by then is prose.
_MOST_WORDS_CUT = 7
# A new question waits for the chunk that is being read.
_CHUNK_TOKENS = 64
_ASK = (
    "Write a title of two to six words for this conversation. Say what it is about. Answer with the title"
    " alone.\n\nQuestion: {question}\n\nAnswer: {answer}"
)
# Of the form “Title: …”, with the marks of Markdown around it.
_LABEL = re.compile(r"^[\s#*_>-]*title\b[\s*_]*[:\-–—]?[\s*_]*", re.I)
_AROUND = " \t\"'`*_#“”‘’«»„[](){}-–—:;,."
_SMALL = {"a", "an", "and", "at", "by", "for", "from", "in", "of", "on", "or", "the", "to", "with"}
_TO_THE_PERSON = re.compile(
    r"^(sure\b|certainly\b|of course\b|here (is|are)\b|here['’]s\b|i['’]?m\b|i (am|can|will|would)\b|as an\b"
    r"|you are\b|dear\b|this conversation\b|the (title|conversation|question|answer)\b|question\b|answer\b)",
    re.I,
)


def title_request(messages: Sequence[Message], context_tokens: int) -> Generate | None:
    """What the model is asked; None if there is no question or no answer to speak of."""
    question = next((each for each in messages if each.role == "user"), None)
    answer = next((each.content for each in messages if each.role == "assistant"), "")
    if question is None or not answer.strip():
        return None
    names = ", ".join(attachment.name for attachment in question.attachments)
    asked = " ".join(f"{question.content} {names}".split())
    # A token has a character at least.
    room = max(0, (context_tokens - MOST_TOKENS) // 2 - len(_ASK))
    asked = asked[: min(_QUESTION_CHARACTERS, room)]
    answered = " ".join(answer.split())[: min(_ANSWER_CHARACTERS, room)]
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
    """The title in what the model wrote, in one line; empty if there is none.

    `cut`: it was not done; then its last word may not be whole.
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
    return "" if _is_silly(title) else title[:1].upper() + title[1:]


def _is_silly(title: str) -> bool:
    words = title.casefold().split()
    letters = sum(character.isalpha() for character in title)
    if letters < 3 or 2 * letters < len(title) or len(title) > _MOST_CHARACTERS:
        return True
    if any(mark in title for mark in ("<", "|", ". ", '"')) or _TO_THE_PERSON.match(title):
        return True
    return len(words) > 2 and len(set(words)) <= len(words) // 2
