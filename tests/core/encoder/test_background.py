"""Documents embedded while idle: order, progress, stopping, erasing, failures."""

from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from core.encoder.encoder import Encoder
from core.encoder.store import BackgroundEmbedding, Embedder, VectorStore, text_key
from core.errors import EncoderUnavailableError, reason_of
from core.events import DocumentEmbedded, FindSimilar
from core.machine.profile import finished
from core.prefill.passages import cut
from tests.core.encoder.texts import SENTENCES, shipped_encoder

SHORT = " ".join(SENTENCES)
LONG = " ".join(SENTENCES * 12)
ARTICLE = (
    "The bakery opens at six. Bread is baked twice a day, and cakes on Saturdays. Orders for weddings are"
    " taken two weeks ahead, and flour comes from the mill up the valley.",
    "The ferry crosses the sound every hour. While a gale warning lasts it stays in the harbour, and the"
    " crossing is made up for as soon as the wind drops. Passengers wait in the hall on the pier.",
    "The library lends books for four weeks. Whoever returns them late pays a small fee, and children pay"
    " none. On Mondays stories are read aloud in the garden.",
)


class Idle:
    """A background embedding whose clock advances a second with each piece, and what it said."""

    def __init__(self, folder: Path) -> None:
        self.store = VectorStore(folder)
        self.embedder = Embedder(self.store, shipped_encoder)
        self.said: list[DocumentEmbedded] = []
        self.now_s = 0.0
        self.work = BackgroundEmbedding(self.embedder, cut, self.said.append, lambda: self.now_s)

    def run(self, pieces: int = 10_000) -> None:
        """Up to so many pieces, until there is nothing to do."""
        for _ in range(pieces):
            if not self.work.piece():
                return
            self.now_s += 1.0

    def kept(self, text: str) -> bool:
        """Whether vectors of `text` are on the disk."""
        return self.store.read(text, cut(text)) is not None


@pytest.fixture
def idle(tmp_path: Path) -> Idle:
    return Idle(tmp_path / "vectors")


def test_documents_are_embedded_one_after_the_other_and_kept_as_prompts_hold_them(idle: Idle) -> None:
    idle.work.add("a", f"\n {LONG}\n")
    idle.work.add("b", SHORT)
    idle.run()
    assert idle.kept(LONG)
    assert idle.kept(SHORT)
    states = [(each.request, each.state) for each in idle.said]
    assert states[-1] == ("b", "done")
    assert states.index(("a", "done")) == len(states) - 1 - sum(name == "b" for name, _ in states)
    fractions = [each.fraction for each in idle.said if each.request == "a"]
    assert fractions == sorted(fractions)
    assert len(set(fractions)) > 2
    assert fractions[-1] == 1.0


def test_a_quick_document_is_said_to_be_done_and_nothing_else(idle: Idle) -> None:
    idle.work.add("a", SHORT)
    while idle.work.piece():
        idle.now_s += 0.01
    assert idle.said == [DocumentEmbedded("a", "done", 1.0)]
    idle.work.add("again", SHORT)
    idle.run()
    assert idle.said[1:] == [DocumentEmbedded("again", "done", 1.0)]


def test_a_stopped_document_leaves_nothing_and_the_next_is_done(idle: Idle) -> None:
    idle.work.add("a", LONG)
    idle.work.add("b", SHORT)
    idle.run(2)
    assert 0 < idle.embedder.fraction(LONG, cut(LONG)) < 1
    idle.work.stop("a")
    idle.work.stop("unknown")
    assert idle.embedder.fraction(LONG, cut(LONG)) == 0
    idle.run()
    assert not idle.kept(LONG)
    assert idle.kept(SHORT)
    assert DocumentEmbedded("a", "stopped") in idle.said


def test_a_text_that_waits_twice_loses_nothing_when_one_is_stopped(idle: Idle) -> None:
    idle.work.add("a", LONG)
    idle.work.add("b", LONG)
    idle.run(2)
    idle.work.stop("a")
    assert idle.embedder.fraction(LONG, cut(LONG)) > 0
    idle.run()
    assert idle.said[-1] == DocumentEmbedded("b", "done", 1.0)


def test_a_question_continues_what_is_half_done(idle: Idle) -> None:
    idle.work.add("a", LONG)
    idle.run(2)
    before = idle.embedder.fraction(LONG, cut(LONG))
    asked = idle.embedder.vectors(LONG, cut(LONG))
    next(asked)
    assert idle.embedder.fraction(LONG, cut(LONG)) > before > 0
    finished(asked)
    idle.run(1)  # it finds what the question has kept
    assert idle.said[-1] == DocumentEmbedded("a", "done", 1.0)


@pytest.mark.sweep
def test_unloading_the_encoder_begins_the_document_again(idle: Idle) -> None:
    idle.work.add("a", LONG)
    idle.run(2)
    idle.embedder.unload()
    idle.run()
    assert idle.kept(LONG)


def test_erasing_removes_vectors_and_stops_work_on_them(idle: Idle) -> None:
    idle.work.add("a", SHORT)
    idle.run()
    idle.work.add("b", LONG)
    idle.run(2)
    idle.work.erase((text_key(SHORT), text_key(LONG), "../*"))
    assert not idle.work.piece()
    assert not idle.kept(SHORT)
    assert idle.said[-1] == DocumentEmbedded("b", "stopped")
    idle.work.add("c", SHORT)
    idle.run()
    idle.work.add("d", LONG)
    idle.work.erase_all()
    assert not idle.work.piece()
    assert not idle.kept(SHORT)


def test_without_an_encoder_documents_and_searches_fail_in_sentences(tmp_path: Path) -> None:
    said: list[DocumentEmbedded] = []

    opener = Mock(side_effect=EncoderUnavailableError("The sentence encoder is damaged.", "Install it."))
    work = BackgroundEmbedding(Embedder(VectorStore(tmp_path), opener), cut, said.append)
    work.add("a", SHORT)
    assert work.piece()
    assert not work.piece()
    why = "The sentence encoder is damaged. Install it."
    assert said == [DocumentEmbedded("a", "failed", problem=why)]
    assert work.find(FindSimilar("q", "boats", ("0" * 64,))).problem == why


@pytest.mark.parametrize(
    ("owner", "method", "error"),
    [
        (Encoder, "states", RuntimeError("[malloc] Unable to allocate 40 bytes.")),
        (Encoder, "states", MemoryError()),
        (Encoder, "states", ValueError("Other shapes.")),
        (VectorStore, "write", OSError(28, "No space left on device")),
    ],
)
def test_a_failure_ends_the_document_and_not_the_others(
    idle: Idle, monkeypatch: pytest.MonkeyPatch, owner: type, method: str, error: Exception
) -> None:
    works = getattr(owner, method)

    def fail(*_: object) -> None:
        monkeypatch.setattr(owner, method, works)
        raise error

    monkeypatch.setattr(owner, method, fail)
    idle.work.add("a", LONG)
    idle.work.add("b", SHORT)
    idle.run()
    failed, done = (each for each in idle.said if each.state != "running")
    assert (failed.state, done.state) == ("failed", "done")
    assert reason_of(error) in failed.problem


def test_a_search_finds_meaning_in_embedded_texts_and_names_the_others(idle: Idle) -> None:
    known, foreign = "\n\n".join(ARTICLE), "引航员在把船引入港口之前等待涨潮。" * 10
    idle.work.add("a", known)
    idle.work.add("b", foreign)
    idle.run()
    digests = (text_key(known), text_key(foreign), "0" * 64)
    found = idle.work.find(FindSimilar("q", "Why is a boat delayed in stormy weather?", digests))
    assert found.missing == ("0" * 64,)
    assert {passage.digest for passage in found.passages} == {digests[0]}
    best = found.passages[0]
    assert "gale warning" in known[best.first_char : best.last_char]
    similarities = [each.similarity for each in found.passages]
    assert similarities == sorted(similarities, reverse=True)
    assert not idle.work.find(FindSimilar("q", "quantum chromodynamics", digests)).passages
