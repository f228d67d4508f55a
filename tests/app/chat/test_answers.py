"""The starter answers the three examples of the first page rightly: at its defaults, and those without a
document also sampled with several seeds.
"""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable

import pytest

from app.chat import strings
from app.chat.first_page import example_document
from core.engine.engine import Engine
from core.events import Attachment, Generate, Message, Token
from core.prefill.layout import layout
from core.prefill.words import CLEAR, asked_by, clearness, words_of
from core.prompt import offsets, render
from core.settings import assign_all
from core.settings.prefill import Prefill
from tests.tuning.answers import is_right, loops

MONTHS = list(calendar.month_name)[1:]
# As the model card of SmolLM2 recommends.
SAMPLED = {"sampling.temperature": 0.2, "sampling.top_p": 0.9}


def answer(
    engine: Engine,
    words: str,
    documents: tuple[Attachment, ...] = (),
    values: Iterable[tuple[str, object]] = (),
) -> str:
    settings = assign_all(engine.loaded.info.settings, list(values))
    events = list(engine.generate(Generate("r", (Message("user", words, documents),), settings)))
    assert documents or events[-1].reason == "stop", "it loops"
    return "".join(event.text for event in events if isinstance(event, Token))


def check_list(text: str) -> None:
    """All twelve, once each and in order."""
    assert re.findall("|".join(MONTHS), text) == MONTHS, text


def check_code(text: str) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", text, re.S)
    names: dict[str, object] = {}
    exec(code, {"__builtins__": {"print": lambda *_: None}}, names)  # it may show a call of it
    (function,) = names.values()
    assert callable(function)
    assert (function(2, 3), function(-1, 1)) == (5, 0), text


pytestmark = pytest.mark.sweep  # the starter model writes for many seconds
CARDS = [(strings.EXAMPLE_LIST_TEXT, check_list), (strings.EXAMPLE_CODE_TEXT, check_code)]


@pytest.mark.parametrize(("words", "check"), CARDS)
def test_at_the_default_settings(starter_engine: Engine, words: str, check: object) -> None:
    starter_engine.forget()
    check(answer(starter_engine, words))


def test_the_document_example_is_answered_from_the_document(starter_engine: Engine) -> None:
    """As the first question, and after another one, whose beginning is reused."""
    documents, limit = (example_document(),), ("sampling.max_tokens", 120)
    for before in ((), (strings.EXAMPLE_CODE_TEXT,)):
        starter_engine.forget()
        for words in before:
            answer(starter_engine, words)
        text = answer(starter_engine, strings.EXAMPLE_DOCUMENT_TEXT, documents, [limit])
        check_document(text)


def check_document(text: str) -> None:
    assert is_right(text, ("210",)), text
    assert not loops(text)


@pytest.mark.parametrize("seed", range(1, 11))
@pytest.mark.parametrize(("words", "check"), CARDS)
def test_sampled(starter_engine: Engine, words: str, check: object, seed: int) -> None:
    values = [*SAMPLED.items(), ("sampling.seed", seed)]
    check(answer(starter_engine, words, values=values))


def test_the_place_of_the_answer_stands_out(starter_engine: Engine) -> None:
    """Where nothing stands out all of it is read, for minutes."""
    tokenizer = starter_engine.loaded.tokenizer
    asked = (Message("user", strings.EXAMPLE_DOCUMENT_TEXT, (example_document(),)),)
    prompt = render(tokenizer, asked, "", (), True)
    words = words_of(tokenizer.convert_ids_to_tokens(prompt.ids))
    parts = layout(prompt, offsets(tokenizer, prompt))
    passages = parts.passages(0, len(prompt.ids), Prefill())
    assert clearness(words, asked_by(words, parts.question), passages) > 1.2 * CLEAR
