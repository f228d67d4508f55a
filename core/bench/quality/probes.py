"""Prompts of `bench quality` with their right continuations, generated from seeds.

Importing this loads MLX, which `core.models.runtime.prepare` must precede.
"""

from __future__ import annotations

import re
from random import Random

from msgspec import Struct

from core.bench.documents import document
from core.bench.quality.results import Part
from core.bench.quality.tasks import Case, task
from core.errors import RequestError
from core.events import Attachment, Message
from core.models.loader import LoadedModel
from core.models.prompt import Prompt, render

# Limit for the template, the question and the given beginning of the answer.
_AROUND_TOKENS = 160
_QUOTED_TOKENS = 24


class Probe(Struct, frozen=True):
    """A prompt and its right continuation `gold`; `case` is None if only the likelihood is measured."""

    part: Part
    name: str
    seed: int
    prompt: Prompt
    gold: list[int]
    case: Case | None = None
    answer_tokens: int = 0


def document_probe(loaded: LoadedModel, kind: str, seed: int, context: int, continuation: int) -> Probe:
    """The first `context` tokens of a document (fewer of a shorter one) and the `continuation` after them."""
    ids = _first_tokens(loaded, kind, seed, context + continuation)
    end = len(ids) - continuation
    return Probe("document", kind, seed, Prompt(ids[:end], "", ()), ids[end:])


def passage_probe(loaded: LoadedModel, kind: str, seed: int, context: int, continuation: int) -> Probe:
    """A request of about `context` tokens to quote the passage of a document that begins with given words.

    The passage starts at a random line whose first words are unique in the document. The words are in the
    question and begin the answer; `gold` are the `continuation` tokens after them. Raises `RequestError` if
    the document has no such line.
    """
    text = loaded.tokenizer.decode(_first_tokens(loaded, kind, seed, context - _AROUND_TOKENS))
    rng = Random(f"passage {kind} {seed}")
    lines = [line.start() for line in re.finditer(r"^.*\S", text, re.MULTILINE)]
    for start in rng.sample(lines, len(lines)):
        ids = _encoded(loaded, text[start:])
        words = loaded.tokenizer.decode(ids[:_QUOTED_TOKENS])
        if len(ids) >= _QUOTED_TOKENS + continuation and text.count(words) == 1:
            break
    else:
        raise RequestError(
            f"A {kind} of {context:,} tokens has no passage of {continuation:,} with unique first words.",
            "Choose a longer --context or a shorter --continuation.",
        )
    question = f"Which passage of the document begins with these words: “{words.strip()}”? Quote it."
    prompt = _prompt(loaded, question, text, words)
    return Probe("passage", kind, seed, prompt, ids[_QUOTED_TOKENS : _QUOTED_TOKENS + continuation])


def task_probe(loaded: LoadedModel, name: str, seed: int, context: int) -> Probe:
    """A task's prompt of about `context` tokens, with the given beginning of its answer."""
    chosen = task(name)
    room = context - _AROUND_TOKENS
    case = chosen.build(Random(f"{name} {seed}"), room, lambda text: len(_encoded(loaded, text)))
    prompt = _prompt(loaded, case.question, case.document, case.lead)
    return Probe("task", name, seed, prompt, _encoded(loaded, case.gold), case, chosen.answer_tokens)


def _first_tokens(loaded: LoadedModel, kind: str, seed: int, tokens: int) -> list[int]:
    """The first `tokens` of a document; all of a shorter one."""
    ids: list[int] = []
    for part in document(kind, seed):
        ids += _encoded(loaded, part)
        if len(ids) >= tokens:
            break
    return ids[:tokens]


def _prompt(loaded: LoadedModel, question: str, text: str, lead: str) -> Prompt:
    """`question` about the attached `text`, followed by `lead`, the given beginning of the answer."""
    rendered = render(loaded.tokenizer, (Message("user", question, (Attachment("document", text),)),))
    whole = rendered.text + lead
    return Prompt(_encoded(loaded, whole), whole, rendered.regions)


def _encoded(loaded: LoadedModel, text: str) -> list[int]:
    return [int(i) for i in loaded.tokenizer.encode(text, add_special_tokens=False)]
