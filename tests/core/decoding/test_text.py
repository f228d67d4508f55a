"""Text of tokens: each character belongs to the token that completes it; stop texts end an answer exactly."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer
from tokenizers import Tokenizer, decoders, models
from transformers import PreTrainedTokenizerFast

from core.decoding.text import StopTexts, TokenTexts
from core.events import Token
from core.events.wire import well_formed
from core.folders.starter import ensure_starter
from tests.core.tokenizers import KINDS, loaded
from tests.thinned import thinned


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


def test_an_emoji_belongs_to_the_token_that_completes_it(toy: TokenizerWrapper) -> None:
    ids, found = texts(toy, "a🎉b")
    assert len(ids) == 6  # one token a byte
    assert found == ["a", "", "", "", "🎉", "b"]


def test_an_answer_that_ends_inside_a_character_keeps_every_token(toy: TokenizerWrapper) -> None:
    ids = toy.encode("ok🎉", add_special_tokens=False)[:-1]
    stream = TokenTexts(toy)
    found = [piece for token in ids for piece in stream.add(token)]
    found += stream.finish()
    assert len(found) == len(ids)
    assert "".join(found).startswith("ok")


# ---- every kind of tokenizer


def samples(seed: int, count: int) -> list[str]:
    """Mixtures of code, emoji, flags, scripts, combining marks, lone surrogates and random bytes."""
    draw = random.Random(seed)
    parts: list[Callable[[], str]] = [
        lambda: "    " * draw.randint(0, 3) + draw.choice(["if x:\n", "return x\n", "x['a'] = 1\n"]),
        lambda: draw.choice(["🎉", "👩‍👩‍👧‍👦", "🇫🇷", "🇫🇷🇩🇪", "👍🏽", "❤️"]) * draw.randint(1, 4),
        lambda: draw.choice(["日本語のテキスト", "繁體字", "한국어", "नमस्ते", "привет", "བོད་ཡིག"]),
        lambda: draw.choice(["שלום", "مرحبا بالعالم", "e\u0301\u0302\u0323", "Z\u0351\u036b\u0343", "naïve"]),
        lambda: draw.choice(
            [" ", "  ", "\n\n", "\t", " . ", " ' ", " n't", " 's ", " , ", "... !", "\u00a0"]
        ),
        lambda: draw.choice(["plain words", "I'm glad you're", "a", "<0x", "Ġ▁##x", "</w>", "<s>", "\ufffd"]),
        lambda: draw.randbytes(draw.randint(1, 30)).decode("utf-8", "replace"),
        lambda: draw.randbytes(draw.randint(1, 30)).decode("latin-1"),
        lambda: draw.choice(["a\ud83cb", "\udf89", "\ud83c\udf89"]),
    ]
    return ["".join(draw.choice(parts)() for _ in range(draw.randint(1, 12))) for _ in range(count)]


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, TokenizerWrapper]:
    return {kind: loaded(kind, tmp_path_factory.mktemp(kind)) for kind in KINDS}


def streamed(tokenizer: TokenizerWrapper, ids: list[int], before: list[int] | None = None) -> list[str]:
    stream = TokenTexts(tokenizer, before or ())
    found = [piece for token in ids for piece in stream.add(token)]
    found += stream.finish()
    assert len(found) == len(ids)
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("count", thinned([15, 200], keep=[15]))
@pytest.mark.parametrize("kind", KINDS)
def test_the_texts_are_what_decoding_the_whole_gives(
    tokenizers: dict[str, TokenizerWrapper], kind: str, count: int
) -> None:
    tokenizer = tokenizers[kind]
    for text in samples(count, count):
        ids = tokenizer.encode(well_formed(text), add_special_tokens=False)
        assert "".join(streamed(tokenizer, ids)) == tokenizer.decode(ids), text


@pytest.mark.parametrize("count", thinned([15, 300], keep=[15]))
@pytest.mark.parametrize("kind", KINDS)
def test_any_ids_give_what_decoding_the_whole_gives(
    tokenizers: dict[str, TokenizerWrapper], kind: str, count: int
) -> None:
    tokenizer = tokenizers[kind]
    draw = random.Random(kind)
    spread = [len(tokenizer), 300, 40]
    for _ in range(count):
        most = min(draw.choice(spread), len(tokenizer))
        ids = [draw.randrange(most) for _ in range(draw.randint(1, 60))]
        assert "".join(streamed(tokenizer, ids)) == tokenizer.decode(ids), ids


@pytest.mark.parametrize("count", thinned([6, 100], keep=[6]))
@pytest.mark.parametrize("kind", KINDS)
def test_what_follows_a_text_continues_it(
    tokenizers: dict[str, TokenizerWrapper], kind: str, count: int
) -> None:
    tokenizer = tokenizers[kind]
    for text in samples(count, count):
        # Nobody can tell a replacement character from half a character.
        text = well_formed(text).replace("\ufffd", "")
        ids = tokenizer.encode(text, add_special_tokens=False)
        whole = tokenizer.decode(ids)
        for cut in {1, len(ids) // 2, len(ids) - 1} - {0}:
            if not cut < len(ids):
                continue
            begun = tokenizer.decode(ids[:cut])
            if begun.endswith("\ufffd" * 4) or not whole.startswith(begun.rstrip("\ufffd")):
                continue  # the decoder replaces what it had, and this was shown
            then = streamed(tokenizer, ids[cut:], ids[:cut])
            assert begun.rstrip("\ufffd") + "".join(then) == whole, (text, cut)


@pytest.mark.parametrize("kind", KINDS)
def test_an_alternative_has_the_text_that_it_would_add(
    tokenizers: dict[str, TokenizerWrapper], kind: str
) -> None:
    tokenizer = tokenizers[kind]
    ids = tokenizer.encode("for value in values", add_special_tokens=False)
    stream = TokenTexts(tokenizer)
    for at, token in enumerate(ids):
        before = tokenizer.decode(ids[:at]) if at else ""
        assert before + stream.alternative(token) == tokenizer.decode(ids[: at + 1])
        list(stream.add(token))


def test_byte_fallback_shows_a_flag_once(tokenizers: dict[str, TokenizerWrapper]) -> None:
    for kind, tokenizer in tokenizers.items():
        if "sentencepiece" in kind or kind == "unigram-fallback":
            ids = tokenizer.encode("a🇫🇷b", add_special_tokens=False)
            assert "".join(streamed(tokenizer, ids)).strip() == "a🇫🇷b", kind


def test_a_byte_level_vocabulary_gets_its_decoder(tokenizers: dict[str, TokenizerWrapper]) -> None:
    for kind in ("hybrid-sentencepiece", "hybrid-metaspace", "hybrid-nothing"):
        ids = tokenizers[kind].encode("I'm glad you're é", add_special_tokens=False)
        assert "".join(streamed(tokenizers[kind], ids)) == "I'm glad you're é"


@pytest.mark.parametrize("falls_back", [False, True])
def test_a_token_that_looks_like_a_byte_is_one_only_with_byte_fallback(falls_back: bool) -> None:
    tokenizer: Any = Tokenizer(models.BPE({"<0xC3>": 0, "<0xA9>": 1, "a": 2}, [], byte_fallback=falls_back))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback()] if falls_back else [decoders.Fuse()])
    stream = TokenTexts(PreTrainedTokenizerFast(tokenizer_object=tokenizer))  # type: ignore[arg-type]
    found = [list(stream.add(token)) for token in (0, 1, 2)]
    assert [piece for pieces in found for piece in pieces] == (
        ["", "é", "a"] if falls_back else ["<0xC3>", "<0xA9>", "a"]
    )
    assert bool(found[0]) is not falls_back


def test_a_token_takes_the_same_time_late_in_an_answer(starter: TokenizerWrapper) -> None:
    decoded: list[int] = []

    class Counting:
        def __getattr__(self, name: str) -> Any:
            return getattr(starter, name)

        def decode(self, ids: list[int]) -> str:
            decoded.append(len(ids))
            return str(starter.decode(ids))

    ids = starter.encode("def f(x):\n    return '日本語 🎉' + x\n" * 60, add_special_tokens=False)
    stream = TokenTexts(Counting())  # type: ignore[arg-type]
    for token in ids:
        list(stream.add(token))
    assert len(decoded) < 1.5 * len(ids)
    assert max(decoded) < 64


def tokens_of(text: str, cuts: list[int]) -> list[Token]:
    """`text` in tokens that end at `cuts`; equal cuts are tokens without text."""
    ends = [*sorted(min(cut, len(text)) for cut in cuts), len(text)]
    starts = [0, *ends[:-1]]
    return [
        Token("r", number, text[start:end], "normal", number + 1, number)
        for number, (start, end) in enumerate(zip(starts, ends))
    ]


def run(stops: list[str], tokens: list[Token]) -> tuple[list[Token], StopTexts]:
    texts, told = StopTexts(stops), []
    for token in tokens:
        told.extend(texts.add(token))
    if not texts.stopped_by:
        told.extend(texts.finish())
    return told, texts


@given(
    st.text("ab\n", max_size=40),
    st.lists(st.text("ab\n", min_size=1, max_size=4), max_size=3),
    st.lists(st.integers(0, 40), max_size=20),
)
def test_tells_what_stands_before_the_first_stop_text(text: str, stops: list[str], cuts: list[int]) -> None:
    tokens = tokens_of(text, cuts)
    told, texts = run(stops, tokens)
    said = "".join(token.text for token in told)
    found = [at for stop in stops if (at := text.find(stop)) >= 0]
    if not found:
        assert (told, texts.stopped_by, texts.complete_tokens) == (tokens, "", len(tokens))
        return
    # Of overlapping ones that one wins which is complete first; nothing behind its beginning is told.
    assert text.startswith(said + texts.stopped_by)
    assert not any(stop in said for stop in stops)
    assert [token.id for token in told] == list(range(len(told)))
    assert all(token == tokens[token.id] for token in told[: texts.complete_tokens])
    assert len(told) - texts.complete_tokens in (0, 1)
    assert (
        "".join(token.text for token in tokens[: texts.complete_tokens])
        == said[: len(said) - _part(told, texts)]
    )


def _part(told: list[Token], texts: StopTexts) -> int:
    return len(told[-1].text) if len(told) > texts.complete_tokens else 0


def test_tells_at_once_what_cannot_be_the_beginning_of_a_stop_text() -> None:
    texts = StopTexts(["\nUser:"])
    first, second, third = tokens_of("Hello\nUs", [5, 6])
    assert list(texts.add(first)) == [first]
    assert list(texts.add(second)) == []
    assert list(texts.add(third)) == []
    other = Token("r", 3, "eful", "normal", 4, 3)
    assert [token.text for token in texts.add(other)] == ["\n", "Us", "eful"]


def test_a_token_is_told_in_part() -> None:
    told, texts = run(["END"], tokens_of("ab.END cd", [2]))
    assert [token.text for token in told] == ["ab", "."]
    assert (texts.stopped_by, texts.complete_tokens) == ("END", 1)


def test_of_two_that_begin_together_the_longer_is_named() -> None:
    _, texts = run(["a", "ab"], tokens_of("xab", []))
    assert texts.stopped_by == "ab"


def test_a_token_that_only_began_a_character_is_held_with_it() -> None:
    texts = StopTexts(["éx"])
    begun, done = Token("r", 0, "", "normal", 1, 0), Token("r", 1, "é", "normal", 2, 1)
    told = [*texts.add(Token("r", 9, "a", "normal", 1, 0)), *texts.add(begun), *texts.add(done)]
    assert [token.text for token in told] == ["a", ""]  # nothing says yet what it began
    told = list(texts.add(Token("r", 2, "x", "normal", 3, 2)))
    assert (told, texts.stopped_by) == ([], "éx")
