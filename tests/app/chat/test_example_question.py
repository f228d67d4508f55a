"""The question that the first page asks of its document is answered from a part of it, soon."""

from __future__ import annotations

from app.chat import strings
from app.chat.first_page import handbook
from core.engine.engine import Engine
from core.events import Message
from core.models.prompt import offsets, render
from core.prefill.layout import layout
from core.prefill.scorers.lexical import CLEAR, asked_by, clearness, words_of
from core.settings.prefill import Prefill


def test_its_place_stands_out_by_far(starter_engine: Engine) -> None:
    """With room for what the documents will say: where nothing stands out all of it is read, for minutes."""
    tokenizer = starter_engine.loaded.tokenizer
    asked = (Message("user", strings.EXAMPLE_DOCUMENT_TEXT, (handbook(),)),)
    prompt = render(tokenizer, asked, "", (), True)
    words = words_of(tokenizer.convert_ids_to_tokens(prompt.ids))
    parts = layout(prompt, offsets(tokenizer, prompt))
    passages = parts.passages(0, len(prompt.ids), Prefill())
    assert clearness(words, asked_by(words, parts.question), passages) > 2 * CLEAR
