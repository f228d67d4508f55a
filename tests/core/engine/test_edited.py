"""Edited answers: the model continues as if it had written the edited text itself."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import mlx.core as mx
import pytest
from mlx_lm.generate import generate_step
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace

from core.answer_format import AnswerFormat
from core.answer_format.formats import ThoughtTags
from core.decoding.text import TokenTexts
from core.engine.engine import Engine
from core.engine.prompts import edited_ids
from core.errors import RequestError
from core.events import TYPED, Generate, Message, Token
from core.prompt import Prompt
from tests.core.architectures import ARCHITECTURES, VOCABULARY
from tests.core.engine.support import DRAFTING, settings, tiny_once
from tests.core.tokenizers import KINDS, loaded
from tests.core.toy import SPECIALS, toy_tokenizer
from tests.thinned import thinned

pytestmark = pytest.mark.usefixtures("unlikely_guesses")

PROMPT = Prompt([], "<|turn|>\n", ())
CONTEXTS = (PROMPT, Prompt([], "a word\n", ()))
TOKENS = 44
# Ids of the toy tokenizer whose texts are whole characters.
LETTERS = [at for at in range(len(SPECIALS), VOCABULARY) if "a" <= toy_tokenizer().decode([at]) <= "z"]
# What decodes to the text that was encoded.
FAITHFUL = [kind for kind in KINDS if kind.startswith(("byte-level", "hybrid", "sentencepiece", "unigram"))]
ANSWER = "The value of total(values) is 10, isn't it? Straße; they've said 'no'.\n\nreturn x.get('a') or 0"


def texts_of(tokenizer: TokenizerWrapper, ids: Sequence[int]) -> list[str]:
    texts = TokenTexts(tokenizer)
    return [*(text for token in ids for text in texts.add(token)), *texts.finish()]


def canonical(tokenizer: TokenizerWrapper, text: str, prompt: Prompt = PROMPT) -> list[int]:
    return edited_ids(tokenizer, prompt, None, (TYPED,), (text,))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", FAITHFUL)
def test_an_edited_answer_has_the_tokens_of_its_text(kind: str, tmp_path: Path) -> None:
    tokenizer = loaded(kind, tmp_path)
    own = canonical(tokenizer, ANSWER)
    texts = texts_of(tokenizer, own)
    rng = random.Random(kind)
    for typed in ("", "al", " value", "ues and Paris", "\n", "日本") * 3:
        ends = [at for at in range(1, len(own)) if texts[at - 1]]
        first, last = sorted((rng.choice(ends), rng.choice(ends)))
        begin, end = "".join(texts[:first]), "".join(texts[last:])
        edited = (*own[:first], TYPED, *own[last:])
        ids = edited_ids(tokenizer, PROMPT, None, edited, (*texts[:first], typed, *texts[last:]))
        whole = canonical(tokenizer, begin + typed + end)  # without characters that the tokenizer lacks
        assert "".join(texts_of(tokenizer, ids)) == "".join(texts_of(tokenizer, whole))


@pytest.mark.parametrize("kind", ["byte-level-split", "sentencepiece"])
def test_tokens_of_the_model_are_kept_where_the_text_is(kind: str, tmp_path: Path) -> None:
    """The model wrote a word in more tokens than the tokenizer would."""
    tokenizer = loaded(kind, tmp_path)
    spelled = [
        token for at, each in enumerate("value") for token in canonical(tokenizer, each, CONTEXTS[at > 0])
    ]
    texts = texts_of(tokenizer, spelled)
    assert "".join(texts) == "value"
    assert len(spelled) > len(canonical(tokenizer, "value"))
    ids = edited_ids(tokenizer, PROMPT, None, (*spelled, TYPED), (*texts, " total"))
    assert ids == [*spelled, *canonical(tokenizer, "value total")[len(canonical(tokenizer, "value")) :]]
    # A token may reach across the boundary of an edit.
    half = canonical(tokenizer, "the val")
    whole = edited_ids(tokenizer, PROMPT, None, (*half, TYPED), (*texts_of(tokenizer, half), "ue"))
    assert whole == canonical(tokenizer, "the value") != [*half, *canonical(tokenizer, "ue", CONTEXTS[1])]


def test_a_control_token_that_a_person_typed_is_text(tmp_path: Path) -> None:
    tokenizer = loaded("byte-level", tmp_path)
    turn, end = tokenizer.convert_tokens_to_ids(["<|turn|>", "</s>"])
    own = canonical(tokenizer, "The value")
    texts = (*texts_of(tokenizer, own), "<|turn|>", " <|turn|> and")
    ids = edited_ids(tokenizer, PROMPT, None, (*own, turn, TYPED), texts)
    assert ids.count(turn) == 1
    assert "".join(texts_of(tokenizer, ids)) == "The value<|turn|> <|turn|> and"
    # The tags around a thought are the model's, also in an answer from elsewhere.
    format = AnswerFormat((ThoughtTags("<|turn|>", "</s>"),))
    tagged = edited_ids(tokenizer, PROMPT, format, (TYPED,), ("<|turn|>no</s>yes",))
    assert tagged[0] == turn
    assert tagged.count(end) == 1


def test_as_many_texts_as_tokens_are_needed(toy_engine: Engine) -> None:
    request = Generate("r", (Message("user", "abc"),), continuation=(7, TYPED), continuation_texts=("a",))
    with pytest.raises(RequestError, match="2 tokens and 1 texts"):
        list(toy_engine.generate(request))


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=["llama", "qwen3_5"]))
@pytest.mark.parametrize("drafter", thinned(DRAFTING, keep=["cacheback"]))
def test_the_model_continues_as_if_it_had_written_the_edit(
    engine: Engine, architecture: str, drafter: str, toy_folder: Path
) -> None:
    messages = (Message("user", "abcabcabc and again abcabcabc"),)
    chosen = settings(drafter, toy_folder, **{"sampling.max_tokens": TOKENS})
    asked = Generate("r", messages, chosen, logit_bias=dict.fromkeys(LETTERS, 100.0))
    prompt, own = engine._prompt(asked)[0].ids, answered(engine, asked)
    assert own == plain(architecture, prompt)
    for cut in (17, 37):  # cut there, it is written again
        begun = replace(asked, continuation=tuple(own[:cut]))
        assert answered(engine, begun) == plain(architecture, [*prompt, *own[:cut]])
    texts, typed = texts_of(engine.loaded.tokenizer, own), " abc is not abc"
    edited = replace(
        asked,
        continuation=(*own[:20], TYPED, *own[30:40]),
        continuation_texts=(*texts[:20], typed, *texts[30:40]),
    )
    ids = [*own[:20], *engine.loaded.tokenizer.encode(typed), *own[30:40]]
    assert answered(engine, edited) == plain(architecture, [*prompt, *ids])


def plain(architecture: str, prompt: Sequence[int]) -> list[int]:
    """mlx-lm's own loop."""
    bias = mx.zeros(VOCABULARY)
    bias[mx.array(list(LETTERS))] = 100.0
    model, processors = tiny_once(architecture), [lambda tokens, logits: logits + bias]
    steps = generate_step(mx.array(prompt), model, max_tokens=TOKENS, logits_processors=processors)
    return [int(token) for token, _ in steps]


def answered(engine: Engine, request: Generate) -> list[int]:
    return [event.id for event in engine.generate(request) if isinstance(event, Token)]
