"""Which passages an answer stands on."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from mlx_lm.utils import load_tokenizer

from core.events import Attachment, Message, Passage
from core.prefill.layout import Layout, layout
from core.prefill.sources import sources
from core.prefill.words import words_of
from core.prompt import Prompt, offsets, render
from core.settings.prefill import Prefill

NAMES = ["zebra", "walrus", "badger", "lynx", "ibex", "heron", "otter", "quokka", "vole", "yak"]
STARTS = (
    "Bar",
    "Tolm",
    "Gren",
    "Usk",
    "Wey",
    "Nor",
    "Cald",
    "Pim",
    "Rud",
    "Eb",
    "Quar",
    "Hox",
    "Zel",
    "Mif",
    "Jas",
)
HILLS = [f"{first}{last}" for first in STARTS for last in ("wick", "fold", "mere", "ham", "ley", "stow")]
LINES = [
    f"The {name} of {hill} Hill sleeps under tree {at * 7} and eats roots and leaves, then rests till dusk.\n"
    for at, (name, hill) in enumerate(zip(NAMES * 9, HILLS))
]
OTHERS = "In the harbour lie eleven boats. Nobody knows who painted them green, or when.\n"


@pytest.fixture(scope="module")
def loaded(toy_folder: Path) -> Any:
    return SimpleNamespace(tokenizer=load_tokenizer(toy_folder))


@pytest.fixture
def prompt(loaded: Any) -> Prompt:
    attached = (Attachment("valley.txt", "".join(LINES)), Attachment("harbour.txt", OTHERS))
    return render(loaded.tokenizer, (Message("user", "Who sleeps where?", attached),))


@pytest.fixture
def parts(loaded: Any, prompt: Prompt) -> Layout:
    return layout(prompt, offsets(loaded.tokenizer, prompt))


def found(loaded: Any, prompt: Prompt, parts: Layout, answer: str, unseen: range = range(0)) -> Any:
    answered = len(prompt.ids) + 20  # the answer is in the cache by then
    seen = np.setdiff1d(np.arange(answered, dtype=np.int32), unseen)
    ids = loaded.tokenizer.encode(answer, add_special_tokens=False)
    words = words_of(loaded.tokenizer.convert_ids_to_tokens(prompt.ids))
    return sources(loaded, parts, words, seen, ids, Prefill())


def inside(source: Passage, text: str, words: str) -> bool:
    at = text.index(words)
    return source.first_char < at + len(words) and source.last_char > at


def test_a_quotation_is_found_where_it_stands(loaded: Any, prompt: Prompt, parts: Layout) -> None:
    first, *_ = found(loaded, prompt, parts, LINES[16].strip())
    assert first.source == 0
    assert inside(first, "".join(LINES), LINES[16].strip()[:60])
    first, *_ = found(loaded, prompt, parts, "Eleven boats lie in the harbour, painted green.")
    assert first.source == 1
    assert first.last_char <= len(OTHERS)


@pytest.mark.parametrize("at", [5, 21, 40])
def test_a_quotation_of_two_lines_is_one_source_and_not_much_more(
    loaded: Any, prompt: Prompt, parts: Layout, at: int
) -> None:
    text = "".join(LINES)
    begin, end = text.index(LINES[at]), text.index(LINES[at + 2])
    first, *_ = found(loaded, prompt, parts, text[begin:end])
    assert first.first_char <= begin + 60
    assert first.last_char >= end - 60
    assert first.last_char - first.first_char < 2 * (end - begin)


def test_there_are_few_and_they_do_not_overlap(loaded: Any, prompt: Prompt, parts: Layout) -> None:
    several = found(loaded, prompt, parts, LINES[3] + LINES[17] + LINES[28] + LINES[9])
    assert 1 < len(several) <= 3
    assert [p.score for p in several] == sorted((p.score for p in several), reverse=True)
    places = sorted((p.start, p.end) for p in several)
    assert all(one[1] <= other[0] for one, other in pairwise(places))


def test_what_was_not_read_is_no_source(loaded: Any, prompt: Prompt, parts: Layout) -> None:
    answer = LINES[16].strip()
    first, *_ = found(loaded, prompt, parts, answer)
    unseen = range(first.start, first.end)
    for other in found(loaded, prompt, parts, answer, unseen):
        assert other.end <= unseen.start or other.start >= unseen.stop


MANUAL = (
    "The heat pump takes heat from the air outside. The compressor needs 1.4 kW.\n\n"
    "The cylinder for hot water holds 180 litres; a plate on its side names the year.\n\n"
    "I do not know a filter that lasts for ever: rinse it with water each spring and let it dry.\n\n"
    "Thank you for your trust in our product. If you have any other questions, feel free to write to us."
    " You are welcome to visit our works.\n\n"
    "The model of your unit is on the plate. We can help you choose a language for the display.\n\n"
)
POLITE = (
    "Hello!",
    "You're welcome!",
    "I don't know.",
    "Yes.",
    "Hello! How can I help you today?",
    "I don't have enough information to answer that question.",
    "The document does not say.",
    "As an AI language model, I do not have personal opinions, but I can help you with the text.",
    "I'm sorry, but as a model I do not have feelings, so I can not say how you should feel about your day.",
)
USED = (
    ("The cylinder for hot water holds 180 litres.", "cylinder"),
    ("Rinse the filter with water each spring, and let it dry.", "filter"),
    (f"{POLITE[4]} The heat pump takes heat from the air; its compressor needs 1.4 kW.", "compressor"),
)


def test_an_answer_that_says_nothing_of_the_documents_has_none(loaded: Any) -> None:
    """Whatever small words it shares with them; one sentence about them is enough."""
    for document in (MANUAL, MANUAL * 3, "".join(LINES) + MANUAL):
        prompt = render(loaded.tokenizer, (Message("user", "Thanks", (Attachment("m.txt", document),)),))
        parts = layout(prompt, offsets(loaded.tokenizer, prompt))
        for answer in POLITE:
            assert found(loaded, prompt, parts, answer) == (), answer
    for answer, word in USED:  # of the last document
        (first, *_) = found(loaded, prompt, parts, answer)
        assert word in document[first.first_char : first.last_char], answer


def test_an_answer_about_something_else_has_none(loaded: Any, prompt: Prompt, parts: Layout) -> None:
    assert found(loaded, prompt, parts, "Good morning!") == ()
    assert found(loaded, prompt, parts, "") == ()
    plain = render(loaded.tokenizer, (Message("user", LINES[3]),))
    bare = layout(plain, offsets(loaded.tokenizer, plain))
    assert found(loaded, plain, bare, LINES[3]) == ()
