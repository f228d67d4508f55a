"""The draft-model drafter: a family member is used, a stranger is refused, both are read with progress."""

from __future__ import annotations

import gc
import json
import random
import weakref
from pathlib import Path
from typing import Any

import pytest

from core.engine.engine import Engine
from core.errors import DraftModelError, ModelError
from core.events import Generate, PrefillProgress
from core.models.loader import LoadedModel, load
from core.settings import assign
from tests.core.decoding.test_loop import prompt_with_repetition
from tests.core.engine.test_engine import ids, run, settings
from tests.core.toy import write_toy_model

pytestmark = pytest.mark.usefixtures("unlikely_guesses")


def drafting(model: Path | str, **values: object) -> dict[str, object]:
    return {"drafting.drafter": "draft-model", "draft_model.model": str(model), **values}


def test_a_model_drafts_for_itself_almost_perfectly(toy_engine: Engine, toy_folder: Path) -> None:
    prompt = prompt_with_repetition(random.Random(0))
    expected, _ = run(toy_engine, prompt, settings(**{"drafting.drafter": "off"}))
    toy_engine.forget()
    chosen = settings(**drafting(toy_folder))
    got, finished = run(toy_engine, prompt, chosen)
    assert ids(got) == ids(expected)
    assert finished.stats.acceptance > 0.95
    assert finished.stats.mean_per_step > 5
    warm, _ = run(toy_engine, [*prompt, *ids(got), 9], chosen)
    toy_engine.forget()
    assert ids(warm) == ids(run(toy_engine, [*prompt, *ids(got), 9], chosen)[0])


def test_auto_asks_the_draft_model(toy_engine: Engine, toy_folder: Path) -> None:
    prompt = [(7 * i * i + 3 * i) % 256 + 4 for i in range(60)]
    expected, _ = run(toy_engine, prompt, settings(**{"drafting.drafter": "off"}))
    toy_engine.forget(tables=True)
    got, finished = run(toy_engine, prompt, settings(**{"draft_model.model": str(toy_folder)}))
    assert ids(got) == ids(expected)
    assert finished.effective.changes == ()
    proposer = toy_engine.proposer
    assert proposer is not None
    assert len(proposer.sequence.tokens) >= len(prompt) - 1


def test_auto_without_its_draft_model_says_why(toy_engine: Engine) -> None:
    _, finished = run(toy_engine, [5, 6, 7], settings(**{"draft_model.model": "/no/such/folder"}))
    (change,) = finished.effective.changes
    assert (change.setting, change.used) == ("draft_model.model", "none")
    assert "no model folder" in change.reason


def test_progress_covers_both_models(toy_engine: Engine, toy_folder: Path) -> None:
    prompt = prompt_with_repetition(random.Random(2), 200)
    chosen = settings(**drafting(toy_folder, **{"prefill.chunk_tokens": 32}))
    events = list(toy_engine.generate_ids(prompt, chosen))
    progress = [event for event in events if isinstance(event, PrefillProgress)]
    assert progress[-1].done_tokens == progress[-1].total_tokens == 2 * (len(prompt) - 1)
    done = [event.done_tokens for event in progress]
    assert done == sorted(done)


def test_cancelled_while_the_draft_model_reads(toy_engine: Engine, toy_folder: Path) -> None:
    prompt = prompt_with_repetition(random.Random(3), 200)
    chosen = settings(**drafting(toy_folder, **{"prefill.chunk_tokens": 32}))
    expected, _ = run(toy_engine, prompt, chosen)
    toy_engine.forget()
    looks = iter(range(1000))
    _, finished = run(toy_engine, prompt, chosen, lambda: next(looks) >= 10)
    assert finished.reason == "cancelled"
    assert ids(run(toy_engine, prompt, chosen)[0]) == ids(expected)


Loads = list[weakref.ref[LoadedModel]]


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> Loads:
    """The draft models that are loaded from now on."""
    found: Loads = []

    def noted(reference: str, **options: Any) -> LoadedModel:
        found.append(weakref.ref(draft := load(reference, **options)))
        return draft

    monkeypatch.setattr("core.engine.model_session.load", noted)
    return found


def alive(loads: Loads) -> int:
    gc.collect()
    return sum(each() is not None for each in loads)


def test_a_stranger_is_refused_with_both_names(toy_engine: Engine, tmp_path: Path, loads: Loads) -> None:
    stranger = tmp_path / "stranger"
    write_toy_model(stranger)
    own = (stranger / "tokenizer.json").read_text()
    tokenizer = json.loads((stranger / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"] = {t: 259 - i for t, i in tokenizer["model"]["vocab"].items()}
    tokenizer["added_tokens"] = [{**t, "id": 259 - t["id"]} for t in tokenizer["added_tokens"]]
    (stranger / "tokenizer.json").write_text(json.dumps(tokenizer))
    before, _ = run(toy_engine, [5, 6, 7], settings())
    for _ in range(2):
        with pytest.raises(DraftModelError, match=r"stranger .* and toy .* different tokenizers"):
            run(toy_engine, [5, 6, 7], settings(**drafting(stranger)))
    assert (len(loads), alive(loads)) == (1, 0)
    assert ids(run(toy_engine, [5, 6, 7], settings())[0]) == ids(before)
    (stranger / "tokenizer.json").write_text(own)
    run(toy_engine, [5, 6, 7], settings(**drafting(stranger)))


def test_a_windowed_draft_model_is_refused(toy_engine: Engine, tmp_path: Path, loads: Loads) -> None:
    write_toy_model(tmp_path, layer_types=["full_attention", "sliding_attention"], sliding_window=16)
    for _ in range(2):
        with pytest.raises(DraftModelError, match="cannot roll back"):
            run(toy_engine, [5, 6, 7], settings(**drafting(tmp_path)))
    assert (len(loads), alive(loads)) == (1, 0)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "values", [{"draft_model.model": ""}, {"drafting.drafter": "off"}, {"draft_model.model": "other"}]
)
def test_a_draft_model_that_the_chat_no_longer_uses_is_freed(
    toy_engine: Engine,
    toy_folder: Path,
    tmp_path: Path,
    loads: Loads,
    monkeypatch: pytest.MonkeyPatch,
    values: dict[str, object],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_toy_model(tmp_path / "other")
    chosen, chat = {"draft_model.model": str(toy_folder)}, Generate("", (), chat="a chat")
    for also, each in ((chat, chosen), (None, {}), (chat, {**chosen, **values})):
        assert alive(loads) == len(loads), "another request has settings of its own"
        list(toy_engine.generate_ids([5, 6, 7], settings(**each), also=also))
    assert loads[0]() is None
    assert alive(loads) == len(loads) - 1


def test_without_a_draft_model_the_error_says_what_to_set(toy_engine: Engine) -> None:
    with pytest.raises(DraftModelError, match=r"draft_model\.model"):
        run(toy_engine, [5, 6, 7], assign(settings(), "drafting.drafter", "draft-model"))
    with pytest.raises(ModelError, match="no model folder"):
        run(toy_engine, [5, 6, 7], settings(**drafting("/no/such/folder")))


def test_the_gate_says_what_it_decided(toy_engine: Engine) -> None:
    for drafter, told in (("ngram-simple", "drafting: drafting at every step was requested"), ("off", "")):
        _, finished = run(toy_engine, [5, 6, 7], settings(**{"drafting.drafter": drafter}))
        assert finished.effective.gate == told
