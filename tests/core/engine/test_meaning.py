"""What is asked for in other words than the document's is read, and not without the encoder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from core.engine.engine import Engine
from core.events import Attachment, Finished, Generate, Message, ReadingMap
from core.settings import Settings, assign_all
from tests.core.prefill.scorers.test_embedding import ANSWER, document
from tests.core.toy import write_toy_model


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    write_toy_model(tmp_path / "toy", max_position_embeddings=4096)
    engine = Engine()
    engine.load(str(tmp_path / "toy"))
    engine.loaded.eos = frozenset()
    yield engine
    engine.unload()


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
