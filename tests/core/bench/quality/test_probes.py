"""Probes: what is asked for stands in the document, and what should follow is what follows there."""

from __future__ import annotations

import pytest

from core.bench.documents import KINDS
from core.bench.quality.probes import document_probe, passage_probe, task_probe
from core.errors import RequestError
from core.models.loader import LoadedModel, load
from tests.core.toy import write_toy_model


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp("models") / "toy"
    write_toy_model(folder)
    return load(str(folder))


@pytest.mark.parametrize("kind", KINDS)
def test_a_passage_is_asked_for_by_its_first_words(loaded: LoadedModel, kind: str) -> None:
    probe = passage_probe(loaded, kind, 3, 3000, 200)
    assert len(probe.prompt.ids) <= 3000
    document = next(r for r in probe.prompt.regions if r.kind == "document")
    text = probe.prompt.text[document.start : document.end]
    words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
    assert text.count(words) == 1
    begun = text[text.index(words) :]
    assert probe.prompt.text.rstrip().endswith(words)
    follows = loaded.tokenizer.decode(probe.gold)
    assert len(probe.gold) == 200
    assert begun.removeprefix(words).lstrip().startswith(follows.strip())


def test_words_that_stand_twice_are_not_asked_for(
    loaded: LoadedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tides, ferry = "The tide table is printed on paper.\n" * 80, "a b c d e f g h\n" * 40
    once = f"Only here does it say where the ferry sleeps in winter.\n{ferry}"
    monkeypatch.setitem(KINDS, "minutes", lambda rng: iter([tides, once]))
    for seed in range(1, 6):
        probe = passage_probe(loaded, "minutes", seed, 3500, 40)
        words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
        assert probe.prompt.text[: probe.prompt.asking.start if probe.prompt.asking else 0].count(words) == 1


def test_passages_are_asked_from_all_over_a_document(loaded: LoadedModel) -> None:
    places = []
    for seed in range(1, 9):
        probe = passage_probe(loaded, "minutes", seed, 3000, 64)
        words = probe.prompt.asked.partition("“")[2].rpartition("”")[0]
        places.append(probe.prompt.text.index(words) / len(probe.prompt.text))
    assert min(places) < 0.3
    assert max(places) > 0.7


def test_the_same_seed_asks_for_the_same(loaded: LoadedModel) -> None:
    first, again, other = (passage_probe(loaded, "story", seed, 2000, 64) for seed in (1, 1, 2))
    assert first == again
    assert first.prompt.ids != other.prompt.ids


def test_a_passage_longer_than_the_document_is_named(loaded: LoadedModel) -> None:
    with pytest.raises(RequestError, match="records of 500 tokens has no passage of 400"):
        passage_probe(loaded, "records", 1, 500, 400)


def test_a_document_is_cut_before_what_follows(loaded: LoadedModel) -> None:
    probe, longer = (document_probe(loaded, "records", 1, tokens, 50) for tokens in (400, 450))
    assert len(probe.prompt.ids) == 400
    assert probe.prompt.ids + probe.gold == longer.prompt.ids
    assert not probe.prompt.asked


def test_a_task_ends_with_the_beginning_of_its_answer(loaded: LoadedModel) -> None:
    probe = task_probe(loaded, "needle-50", 1, 1500)
    assert probe.case is not None
    assert probe.prompt.text.endswith(probe.case.lead)
    assert loaded.tokenizer.decode(probe.gold) == probe.case.gold
