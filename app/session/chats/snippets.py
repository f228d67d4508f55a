"""Saved prompts: texts with placeholders that are inserted into a message by name. Pure.

A placeholder is a name in braces, such as `{the document}`. It is inserted without its braces, so that a
prompt whose placeholders are not changed can be sent. Braces of code are not placeholders. The person's own
prompts are stored in the preferences and hide built-in ones of the same name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct

MOST_NAME_CHARACTERS = 60
_PLACEHOLDER = re.compile(r"\{(\w(?:[^{}\n\"':;=<>()\[\]]{0,60}\w)?)\}")


class Snippet(Struct, frozen=True):
    """A saved prompt; `text` has its placeholders in braces."""

    name: str
    text: str


class Filled(NamedTuple):
    """A prompt without braces; `places` are its placeholders, end-exclusive, in order."""

    text: str
    places: tuple[tuple[int, int], ...]


BUILT_IN = (
    Snippet("Summarize", "Summarize {the document} in {five sentences}."),
    Snippet("Translate", "Translate {the text} into {English}. Keep its meaning, tone and formatting."),
    Snippet("Explain", "Explain {the passage} in simple words, with an example."),
    Snippet("Rewrite", "Rewrite {the text} so that it is {shorter and clearer}. Keep its meaning."),
    Snippet("Quote the Passage", "Quote the passage of {the document} about {the subject}, word for word."),
)


def known(own: Sequence[Snippet]) -> tuple[Snippet, ...]:
    """Own and built-in prompts, own ones first; those without a name or a text are left out."""
    own = [each for each in own if each.name.strip() and each.text.strip()]
    names = {each.name.casefold() for each in own}
    return (*own, *(each for each in BUILT_IN if each.name.casefold() not in names))


def matching(snippets: Sequence[Snippet], typed: str) -> tuple[Snippet, ...]:
    """Prompts whose name begins with `typed`, then those with a word that does; case is ignored."""
    wanted = typed.casefold()
    first = [each for each in snippets if each.name.casefold().startswith(wanted)]
    later = [each for each in snippets if f" {wanted}" in each.name.casefold() and each not in first]
    return (*first, *later)


def filled(text: str) -> Filled:
    """`text` with its placeholders' names in their places."""
    pieces: list[str] = []
    places: list[tuple[int, int]] = []
    length = at = 0
    for found in _PLACEHOLDER.finditer(text):
        before, name = text[at : found.start()], found[1]
        at = found.end()
        places.append((length + len(before), length + len(before) + len(name)))
        length += len(before) + len(name)
        pieces += [before, name]
    return Filled("".join([*pieces, text[at:]]), tuple(places))
