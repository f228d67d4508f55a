"""A prompt is tokenised, laid out and analysed once, whatever uses the result."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import core.prefill.reading as reading_module
from core.engine.engine import Engine
from core.events import Attachment, Finished, Generate, Message, ReadingMap, Token
from core.models import tokenizer as control_tokens
from core.prefill import layout as layout_module
from core.settings import Settings, assign_all
from tests.core.prefill.scorers.test_embedding import ANSWER, document
from tests.core.toy import write_toy_model

PLAIN = "The pilots wait for the tide, and then they leave. "
TEXT = PLAIN * 12 + "The walrus sleeps in a green barn. " + PLAIN * 12 + "Quokkas eat figs. " + PLAIN * 20


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    write_toy_model(tmp_path / "toy", max_position_embeddings=4096)
    engine = Engine()
    engine.load(str(tmp_path / "toy"))
    engine.loaded.eos = frozenset()
    yield engine
    engine.unload()


def test_a_second_question_is_analysed_once(engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    """By reuse, planning, scoring, reading on and sources, which need tokens, texts and terms."""
    chosen = assign_all(
        Settings(),
        [("prefill.mode", "on"), ("prefill.scorer", "lexical"), ("sampling.max_tokens", 12)],
    )
    messages: list[Message] = [Message("user", "Where does the walrus sleep?", (Attachment("a.txt", TEXT),))]
    request = Generate("r", tuple(messages), chosen)
    words = "".join(event.text for event in engine.generate(request) if isinstance(event, Token))
    encoded: list[int] = []
    laid_out: list[int] = []
    analysed: list[int] = []
    own_encode, own_text, own_words = (
        control_tokens._Controls.encode,
        layout_module._text,
        reading_module.words_of,
    )

    def encode(self: Any, inner: Any, text: str, *rest: Any) -> Any:
        encoded.append(len(text))
        return own_encode(self, inner, text, *rest)

    def text_of(prompt: Any, parts: Any, ends: Any) -> Any:
        laid_out.append(sum(part.end - part.start for part in parts))
        return own_text(prompt, parts, ends)

    def words_of(pieces: Any) -> Any:
        analysed.append(len(pieces))
        return own_words(pieces)

    monkeypatch.setattr(control_tokens._Controls, "encode", encode)
    monkeypatch.setattr(layout_module, "_text", text_of)
    monkeypatch.setattr(reading_module, "words_of", words_of)
    messages += [Message("assistant", words), Message("user", "And what do quokkas eat?")]
    *_, finished = engine.generate(replace(request, messages=tuple(messages)))
    assert isinstance(finished, Finished)
    assert finished.stats.read_on_tokens > 0
    assert [length for length in encoded if length > len(TEXT) / 2] == [max(encoded)]
    assert [length for length in laid_out if length > len(TEXT) / 2] == [len(TEXT.strip())]
    assert len(analysed) == 1


@pytest.mark.parametrize(
    ("scorer", "used", "kept"), [("auto", "fusion", True), ("lexical", "lexical", False)]
)
def test_what_is_asked_for_in_other_words_is_read(engine: Engine, scorer: str, used: str, kept: bool) -> None:
    text = document(12)
    chosen = assign_all(
        Settings(),
        [
            *(("prefill.mode", "on"), ("prefill.scorer", scorer), ("prefill.keep_pct", 30)),
            ("sampling.max_tokens", 1),
        ],
    )
    request = Generate(
        "r", (Message("user", "May I let my puppy off by the sea?", (Attachment("a.txt", text),)),), chosen
    )
    events = list(engine.generate(request))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert (finished.effective.reading, finished.effective.scorer) == ("sparse", used)
    assert not [each for each in finished.effective.changes if each.setting.startswith("prefill")]
    (found,) = [event for event in events if isinstance(event, ReadingMap)]
    first = text.index(ANSWER)
    (passage,) = [p for p in found.passages if p.source == 0 and p.first_char <= first < p.last_char]
    assert passage.kept == kept
    assert passage.last_char >= first + len(ANSWER.rstrip())
