"""The whole path with the real starter model: chat, drafts accepted, output unchanged, second turn."""

from __future__ import annotations

import mlx.nn as nn
import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from mlx_lm.utils import load_tokenizer

from core.engine.engine import Engine
from core.events import Attachment, Finished, Generate, Message, ModelInfo, Token
from core.folders.starter import ensure_starter
from core.kv.cached_sequence import shared_prefix
from core.models.loader import LoadedModel
from core.prompt import render
from core.settings import Settings, assign
from tests.core.engine.support import written

DOCUMENT = """Harbour rules, section 4. A vessel that enters after dusk shows two white lights.
A vessel that leaves in fog sounds one long blast every two minutes. The harbour master may close
the north channel. When the north channel is closed, vessels use the south channel and keep to 4 knots."""


def settings(drafter: str, temperature: float = 0.0, tokens: int = 30) -> Settings:
    result = assign(Settings(), "drafting.drafter", drafter)
    result = assign(result, "sampling.temperature", temperature)
    return assign(result, "sampling.max_tokens", tokens)


def answer(engine: Engine, messages: tuple[Message, ...], chosen: Settings) -> tuple[list[Token], Finished]:
    return written(engine.generate(Generate("r", messages, chosen)))


@pytest.mark.sweep
def test_a_document_is_asked_about(starter_engine: Engine) -> None:
    question = Message("user", "Repeat the harbour rules word for word.", (Attachment("rules", DOCUMENT),))
    starter_engine.forget()
    plain, plain_end = answer(starter_engine, (question,), settings("off"))
    starter_engine.forget()
    drafted, end = answer(starter_engine, (question,), settings("ngram-simple"))
    assert [t.id for t in drafted] == [t.id for t in plain]
    assert {t.origin for t in plain} == {"normal"}
    assert {t.origin for t in drafted} == {"accepted", "bonus", "normal"}
    assert end.stats.mean_per_step > 1.3
    assert end.stats.steps < plain_end.stats.steps
    text = "".join(t.text for t in drafted)
    assert "vessel" in text

    follow = (question, Message("assistant", text), Message("user", "Which channel is used then?"))
    chosen = settings("ngram-simple", tokens=12)
    warm, warm_end = answer(starter_engine, follow, chosen)
    assert warm_end.stats.reused_tokens > 100
    starter_engine.forget()
    cold, cold_end = answer(starter_engine, follow, chosen)
    assert cold_end.stats.reused_tokens == 0
    assert [t.id for t in warm] == [t.id for t in cold]


@pytest.fixture(scope="module")
def tokenizer() -> TokenizerWrapper:
    return load_tokenizer(ensure_starter())


def test_chats_about_a_document_begin_with_the_same_tokens(tokenizer: TokenizerWrapper) -> None:
    """Also where letters of the document and the question could have become one token."""
    questions = ("Which channel is used in fog?", "When are white lights shown?")
    asked = [Message("user", each, (Attachment("rules", DOCUMENT),)) for each in questions]
    first, second = (render(tokenizer, [each]).ids for each in asked)
    # The question, the template around it, and a token on the seam.
    assert len(second) - shared_prefix(first, second) <= 24


def test_its_tokenizer_learned_common_words_first(tokenizer: TokenizerWrapper) -> None:
    info = ModelInfo("", "", "", "", "", "", "", 0, 0, 0, len(tokenizer.get_vocab()), 0, True)
    rank = LoadedModel(nn.Module(), tokenizer, info).word_rank
    assert rank("the") < 0.01
    assert rank("document") < 0.1
    assert rank("document") < rank("python") < rank("stderr") <= 1.0
    assert rank("miniters") == 1.0
    assert rank("Ã¼ber") <= 1.0
    assert rank("") <= 1.0
