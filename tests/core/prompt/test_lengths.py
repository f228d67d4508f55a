"""Token counts of long texts, prompts that are certainly too long, and answers that continue."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.answer_format import AnswerFormat
from core.engine.engine import Engine
from core.errors import PromptTooLongError, RequestError
from core.events import TYPED, Attachment, Generate, Message, ModelInfo
from core.prompt import check_continuation, check_fits, count_tokens, plain_length, with_answer_opened
from core.prompt.rendering import Prompt

LONG = 200_000  # characters that are counted without an estimate
INFO = ModelInfo("Toy", "toy", "f", "Toy", "toy", "float32", "", 0, 0, 512, 100, 2, True)


class Counter:
    """Counts a token for each `characters`, and what it was given."""

    def __init__(self, characters: int = 4) -> None:
        self.characters, self.given = characters, 0

    def __call__(self, text: str) -> int:
        self.given += len(text)
        return -(-len(text) // self.characters)

    def encode(self, text: str, add_special_tokens: bool) -> range:
        assert not add_special_tokens
        return range(self(text))


# ---- counts


@settings(max_examples=40)
@given(st.integers(0, 4 * LONG), st.integers(1, 50_000), st.sampled_from([0, 3 * LONG]), st.integers(1, 9))
def test_a_count_is_exact_or_an_estimate_of_as_much_as_the_limit_needs(
    characters: int, limit_tokens: int, whole: int, per_token: int
) -> None:
    length = Counter(per_token)
    tokens, exact = count_tokens(length, "a" * characters, limit_tokens, whole)
    assert exact == (characters <= max(LONG, whole))
    if exact:
        assert (tokens, length.given) == (-(-characters // per_token), characters)
    else:
        assert tokens == pytest.approx(characters / per_token, rel=0.02)
        # A piece more than the limit needs.
        assert length.given <= min(characters, 2 * limit_tokens * per_token * 1.02 + 2 * 16_384)


def asked(*lengths: int, attached: int = 0) -> list[Message]:
    attachments = (Attachment("a.txt", "a" * attached),) if attached else ()
    return [Message("user", "a" * length, attachments if not at else ()) for at, length in enumerate(lengths)]


@pytest.mark.parametrize("chosen", [False, True])
@pytest.mark.parametrize("attached", [0, 150_000])
def test_what_is_certainly_too_long_is_refused_before_it_is_rendered(attached: int, chosen: bool) -> None:
    tokenizer: Any = Counter()
    messages = asked(200_000, 210_000 - attached, attached=attached)
    check_fits(tokenizer, messages, 102_500, chosen)  # 102,500 tokens
    with pytest.raises(PromptTooLongError) as raised:
        check_fits(tokenizer, messages, 50_000, chosen)
    assert raised.value.tokens == pytest.approx(102_500, rel=0.02)
    assert raised.value.limit_tokens == 50_000
    assert ("limit allows" in raised.value.message) is chosen


def test_shorter_prompts_are_left_to_the_tokenizer() -> None:
    tokenizer: Any = Counter()
    check_fits(tokenizer, asked(LONG), 10, False)
    check_fits(tokenizer, asked(8 * 30_000, 0), 30_000, False)
    assert tokenizer.given == 0
    with pytest.raises(PromptTooLongError) as raised:  # each message takes tokens
        check_fits(tokenizer, asked(*[0] * 11), 10, False)
    assert raised.value.tokens == 11
    check_fits(tokenizer, asked(*[0] * 10), 10, False)


# ---- continuations


@pytest.mark.parametrize(
    ("ids", "texts", "words"),
    [
        ((), (), ""),
        ((0, 99), (), ""),
        ((5, 100), (), "the token 100; Toy has 100"),
        ((5, -1), (), "the token -1"),
        ((5, TYPED), ("a", "b"), ""),
        ((5, TYPED - 1), ("a", "b"), "the token -2"),
        ((5, 6), ("a",), "2 tokens and 1 texts"),
        ((), ("a",), "0 tokens and 1 texts"),
    ],
)
def test_an_answer_to_continue_has_the_models_tokens(
    ids: tuple[int, ...], texts: tuple[str, ...], words: str
) -> None:
    request = Generate("r", (), continuation=ids, continuation_texts=texts)
    if not words:
        check_continuation(request, INFO)
        return
    with pytest.raises(RequestError, match=words):
        check_continuation(request, INFO)


@pytest.mark.parametrize(
    ("begins", "end", "prompt", "opening"),
    [
        ("text", "", "<|assistant|>", ""),
        ("thought", "</think>", "<|assistant|><think>", "</think>"),
        ("thought", "</think>", "<|assistant|><think>\n", "</think>\n\n"),
    ],
)
def test_an_answer_by_a_grammar_begins_after_the_thought(
    toy_engine: Engine, begins: Any, end: str, prompt: str, opening: str
) -> None:
    tokenizer = toy_engine.loaded.tokenizer
    given, format = Prompt([1, 2], prompt, ()), AnswerFormat(begins=begins, thought_end=end)
    opened, after = with_answer_opened(tokenizer, given, format)
    assert opened.text == prompt + opening
    assert opened.ids[:2] == [1, 2]
    assert tokenizer.decode(opened.ids[2:]) == opening
    assert (after.begins, after.thought_end) == ("text", "")
    assert (opened is given) == (not opening)


def test_texts_count_without_special_tokens() -> None:
    tokenizer: Any = SimpleNamespace(encode=Counter(1).encode)
    assert plain_length(tokenizer)("abcde") == 5
