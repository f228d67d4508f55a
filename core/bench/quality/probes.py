"""Probes: what `bench quality` reads and what should follow: a document, a passage of one, a task's answer.

All are generated from seeds; nothing is fetched. Importing this loads MLX, which
`core.models.runtime.runtime.prepare` must have made ready.
"""

from __future__ import annotations

import re
from random import Random

from msgspec import Struct

from core.bench.documents import document
from core.bench.quality.tasks import Case, task
from core.bench.quality.trial import Part
from core.errors import RequestError
from core.events import Attachment, Message
from core.models.loader import LoadedModel
from core.models.prompt import Prompt, render

# What a template, the longest question and the beginning of the answer take beside the document.
_AROUND_TOKENS = 160
_QUOTED_TOKENS = 24


class Probe(Struct, frozen=True):
    """What is read and what should follow; `case` is None where only that is looked at."""

    part: Part
    name: str
    seed: int
    prompt: Prompt
    gold: list[int]
    case: Case | None = None
    answer_tokens: int = 0


def document_probe(loaded: LoadedModel, kind: str, seed: int, context: int, continuation: int) -> Probe:
    """A document's first `context` tokens and what follows; a short one ends its context sooner."""
    ids = _beginning(loaded, kind, seed, context + continuation)
    end = len(ids) - continuation
    return Probe("document", kind, seed, Prompt(ids[:end], "", ()), ids[end:])


def passage_probe(loaded: LoadedModel, kind: str, seed: int, context: int, continuation: int) -> Probe:
    """A chat of about `context` tokens, with a document attached and a passage asked for by its first words.

    The passage begins with any line whose first words stand nowhere else, wherever it is; these words
    are in the question and begin the answer, and the `continuation` tokens behind them should follow.
    Raises `RequestError` for a document without such a line.
    """
    text = loaded.tokenizer.decode(_beginning(loaded, kind, seed, context - _AROUND_TOKENS))
    rng = Random(f"passage {kind} {seed}")
    lines = [line.start() for line in re.finditer(r"^.*\S", text, re.MULTILINE)]
    for start in rng.sample(lines, len(lines)):
        ids = _encoded(loaded, text[start:])
        words = loaded.tokenizer.decode(ids[:_QUOTED_TOKENS])
        if len(ids) >= _QUOTED_TOKENS + continuation and text.count(words) == 1:
            break
    else:
        raise RequestError(
            f"A {kind} of {context:,} tokens has no passage of {continuation:,} to ask for.",
            "Choose a longer --context or a shorter --continuation.",
        )
    question = f"Which passage of the document begins with these words: “{words.strip()}”? Quote it."
    prompt = _begun(loaded, question, text, words)
    return Probe("passage", kind, seed, prompt, ids[_QUOTED_TOKENS : _QUOTED_TOKENS + continuation])


def task_probe(loaded: LoadedModel, name: str, seed: int, context: int) -> Probe:
    """A task's prompt of about `context` tokens, ending with the beginning of its answer."""
    chosen = task(name)
    room = context - _AROUND_TOKENS
    case = chosen.build(Random(f"{name} {seed}"), room, lambda text: len(_encoded(loaded, text)))
    prompt = _begun(loaded, case.question, case.document, case.lead)
    return Probe("task", name, seed, prompt, _encoded(loaded, case.gold), case, chosen.answer_tokens)


def _beginning(loaded: LoadedModel, kind: str, seed: int, tokens: int) -> list[int]:
    """The first `tokens` of a document, or all of a shorter one."""
    ids: list[int] = []
    for part in document(kind, seed):
        ids += _encoded(loaded, part)
        if len(ids) >= tokens:
            break
    return ids[:tokens]


def _begun(loaded: LoadedModel, question: str, text: str, lead: str) -> Prompt:
    """`question` about the attached `text`, and `lead`, with which the answer begins."""
    asked = render(loaded.tokenizer, (Message("user", question, (Attachment("document", text),)),))
    whole = asked.text + lead
    return Prompt(_encoded(loaded, whole), whole, asked.regions)


def _encoded(loaded: LoadedModel, text: str) -> list[int]:
    return [int(i) for i in loaded.tokenizer.encode(text, add_special_tokens=False)]
