"""Texts of tokens: whatever the bytes, each character belongs to the token that completes it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer

from core.decoding.detokenise import TokenTexts
from core.models.starter import ensure_starter


@pytest.fixture(scope="module")
def starter() -> TokenizerWrapper:
    return load_tokenizer(ensure_starter())


@pytest.fixture(scope="module")
def toy(toy_folder: Path) -> TokenizerWrapper:
    return load_tokenizer(toy_folder)


def texts(tokenizer: TokenizerWrapper, text: str) -> tuple[list[int], list[str]]:
    ids = tokenizer.encode(text, add_special_tokens=False)
    stream = TokenTexts(tokenizer)
    found = [piece for token in ids for piece in stream.add(token)]
    return ids, [*found, *stream.finish()]


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "x 🎉 y",
        "👩‍👩‍👧‍👦 family",
        "日本語のテキスト",
        "naïve café",
        "a\n\n  b\tc",
        "1 234",
        "def f():\n    return 1\n",
    ],
)
def test_texts_concatenate_to_the_answer(starter: TokenizerWrapper, toy: TokenizerWrapper, text: str) -> None:
    for tokenizer in (starter, toy):
        ids, found = texts(tokenizer, text)
        assert len(found) == len(ids)
        assert "".join(found) == text


def test_an_emoji_belongs_to_the_token_that_completes_it(toy: TokenizerWrapper) -> None:
    ids, found = texts(toy, "a🎉b")
    assert len(ids) == 6  # one token a byte
    assert found == ["a", "", "", "", "🎉", "b"]


def test_cjk_characters_are_not_merged(toy: TokenizerWrapper) -> None:
    _, found = texts(toy, "日本")
    assert found == ["", "", "日", "", "", "本"]


def test_a_lone_space_belongs_to_its_own_token(toy: TokenizerWrapper) -> None:
    _, found = texts(toy, "a b")
    assert found == ["a", " ", "b"]


def test_an_answer_that_ends_inside_a_character_keeps_every_token(toy: TokenizerWrapper) -> None:
    ids = toy.encode("ok🎉", add_special_tokens=False)[:-1]
    stream = TokenTexts(toy)
    found = [piece for token in ids for piece in stream.add(token)]
    found += stream.finish()
    assert len(found) == len(ids)
    assert "".join(found).startswith("ok")


# mlx-lm's byte-level detokenizer shows the NUL byte as “Ā”; it never occurs in an answer.
@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40))
def test_any_text(toy: TokenizerWrapper, text: str) -> None:
    ids, found = texts(toy, text)
    assert len(found) == len(ids)
    # mlx-lm's detokenizer drops one space at the very start of an answer.
    assert "".join(found) in (text, text.removeprefix(" "))


@pytest.mark.parametrize(
    "text", ["plain words  and more", "x 🎉 y", "日本語のテキスト", "a\n\n  b\tc", " b c d"]
)
def test_an_answer_in_two_parts_reads_as_in_one(
    starter: TokenizerWrapper, toy: TokenizerWrapper, text: str
) -> None:
    for tokenizer in (starter, toy):
        ids, whole = texts(tokenizer, text)
        for cut in range(1, len(ids)):
            first, then = TokenTexts(tokenizer), TokenTexts(tokenizer, ids[:cut])
            found = [piece for token in ids[:cut] for piece in first.add(token)]
            found += first.finish()
            # Half a character at the end is told by the part that completes it.
            found = [piece.rstrip("\ufffd") for piece in found]
            found += [piece for token in ids[cut:] for piece in then.add(token)]
            found += then.finish()
            assert len(found) == len(ids)
            assert "".join(found) == "".join(whole), (cut, found)
