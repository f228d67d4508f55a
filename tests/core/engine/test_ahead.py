"""What is read before a question changes no token of its prompt or answer, with every cache."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import mlx.core as mx
import numpy as np
import pytest
from mlx_lm.models.cache import make_prompt_cache
from msgspec.structs import replace

from core.engine.ahead import why_not_ahead
from core.engine.engine import Engine
from core.events import (
    Attachment,
    Finished,
    Generate,
    Message,
    ModelInfo,
    PrefillProgress,
    ReadAheadProgress,
    ReadingMap,
    Token,
)
from core.kv.cached_sequence import CachedSequence, shared_prefix
from core.machine.profile import MachineProfile
from core.machine.readings import ReadingTrial
from core.prefill import reading as reading_module
from core.prefill.plan import preference_by_size
from core.prefill.read import read_prompt
from core.prompt import render
from core.settings import Settings, assign_all
from core.system import power
from tests.attack.campaigns.reading_ahead import Walk, models_in
from tests.core.architectures import ARCHITECTURES, FULL, tiny
from tests.core.engine.test_second_turn import KEPT, LONG, TEMPLATES, ask, engine_of
from tests.core.published_heads import write_drafted_model
from tests.thinned import thinned

CHOSEN: dict[str, object] = {"prefill.mode": "off", "prefill.chunk_tokens": 64, "prefill.save": False}
DOCUMENTS = (Attachment("log", LONG), Attachment("other", f"{LONG} 100 items."))
QUESTIONS = ("What is wrong?", "9 lines?", "\nAnd (then)", " 你好", "…", "")


@pytest.fixture(autouse=True)
def energy(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Whatever this machine's battery: the last entry is why energy should be saved."""
    why = [""]
    monkeypatch.setattr(power, "why_save", lambda: why[-1])
    monkeypatch.setattr(power, "_LOOK_EVERY_S", 0.0)
    return why


def chosen(**values: object) -> Settings:
    given = {"sampling.temperature": 0.0, "sampling.max_tokens": 12, "drafting.drafter": "off", **CHOSEN}
    return assign_all(Settings(), (given | values).items())


def ahead(engine: Engine, messages: list[Message], pieces: int | None = None, **values: object) -> int:
    """Reads ahead of `messages`, all or some pieces; returns the number of pieces."""
    engine.read_ahead(Generate("", tuple(messages), chosen(**values)))
    done = 0
    while (pieces is None or done < pieces) and engine._ahead.piece(engine._session, engine._guard):
        done += 1
    return done


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=KEPT))
@pytest.mark.parametrize("template", thinned(list(TEMPLATES), keep=["dropped"]))
def test_an_answer_is_that_of_a_cold_start_whenever_the_question_comes(
    architecture: str, template: str, tmp_path: Path
) -> None:
    engine = engine_of(tiny(architecture), architecture, TEMPLATES[template], tmp_path)
    engine.try_out()
    rng = random.Random(architecture)
    for question in rng.sample(QUESTIONS, 1):
        messages = [Message("user", question, DOCUMENTS)]
        _, ids, cold = ask(engine, messages, **CHOSEN)
        engine.forget()
        everything = ahead(engine, messages)
        assert everything > 2
        assert ask(engine, messages, **CHOSEN)[1] == ids
        engine.forget()
        typed = replace(messages[0], content=question[: rng.randint(0, len(question))])
        ahead(engine, [typed])
        _, after, finished = ask(engine, messages, **CHOSEN)
        assert after == ids
        assert finished.stats.reused_tokens > 0.9 * cold.stats.prompt_tokens
        # One document only, then a part of both.
        engine.forget()
        ahead(engine, [replace(messages[0], attachments=DOCUMENTS[:1])], rng.randint(1, everything))
        ahead(engine, messages, rng.randint(1, everything))
        assert ask(engine, messages, **CHOSEN)[1] == ids
        engine.forget()
    engine.unload()


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=["qwen3_5"]))
def test_a_removed_document_leaves_the_others_read(architecture: str, tmp_path: Path) -> None:
    engine = engine_of(tiny(architecture), architecture, TEMPLATES["dropped"], tmp_path)
    engine.try_out()
    messages = [Message("user", "What is wrong?", DOCUMENTS)]
    said: list[ReadAheadProgress] = []
    engine._ahead._say = said.append
    ahead(engine, [replace(messages[0], content="")])
    messages = [replace(messages[0], attachments=DOCUMENTS[:1])]
    del said[:]
    ahead(engine, [replace(messages[0], content="")])
    assert [each.done_tokens == each.total_tokens for each in said] == [True], "nothing is read again"
    _, ids, finished = ask(engine, messages, **CHOSEN)
    assert finished.stats.reused_tokens > 0.9 * finished.stats.prompt_tokens
    engine.forget()
    assert ids == ask(engine, messages, **CHOSEN)[1]
    engine.unload()


@pytest.mark.sweep
@pytest.mark.parametrize("whole", [True, False])
def test_whatever_comes_between_answers_stay_those_of_a_cold_start(whole: bool, tmp_path: Path) -> None:
    """Some walks of the campaign `reading-ahead`."""
    models, cold = models_in(tmp_path)
    readings: set[str] = set()
    for seed in (2, 11):
        walk = Walk(random.Random(seed), models, cold, tmp_path / f"contexts-{seed}", whole=whole)
        assert walk.run() == "", seed
        readings |= set(walk.readings)
    assert readings == ({"dense"} if whole else {"dense", "sparse", "columns"})


def test_a_question_stops_it_and_reads_the_rest_sparsely(tmp_path: Path) -> None:
    engine = engine_of(tiny("llama"), "llama", TEMPLATES["dropped"], tmp_path)
    values: dict[str, object] = CHOSEN | {
        "prefill.mode": "auto",
        "prefill.threshold_tokens": 256,
        "prefill.patience_s": 0,
        "prefill.scorer": "lexical",
        "prefill.passages": "fixed",
        "prefill.read_ahead": "on",
    }
    messages = [Message("user", "What says line 7?", DOCUMENTS)]
    said: list[Any] = []
    engine._ahead._say = said.append
    ahead(engine, messages, 9, **values)
    done = said[-1].done_tokens
    assert isinstance(said[-1], ReadAheadProgress)
    assert 0 < done < said[-1].total_tokens
    _, _, finished = ask(engine, messages, **values)
    assert finished.stats.reused_tokens == done
    assert finished.effective.reading_reason.startswith(f"{done:,} tokens were read before the question; ")
    assert finished.stats.skipped_tokens > 0
    assert not engine._ahead.piece(engine._session, engine._guard) or said[-1].chat == ""


def test_a_question_about_what_was_read_skips_most_of_the_rest(tmp_path: Path) -> None:
    engine = engine_of(tiny("llama"), "llama", TEMPLATES["dropped"], tmp_path)
    documents = (Attachment("note", "The zebra of Quirzin eats violets. " * 9), *DOCUMENTS)
    for content, reads in (("What eats the zebra of Quirzin?", "sparse"), ("Zyx qqq?", "dense")):
        engine.forget()
        ahead(engine, [Message("user", "", documents[:1])], **COLUMNS)
        _, _, finished = ask(engine, [Message("user", content, documents)], **COLUMNS)
        assert finished.stats.reused_tokens > len(documents[0].text)
        assert finished.effective.reading == reads


COLUMNS: dict[str, object] = CHOSEN | {
    "prefill.mode": "auto",
    "prefill.threshold_tokens": 256,
    "prefill.patience_s": 0,
    "prefill.scorer": "lexical",
    "prefill.passages": "fixed",
    "prefill.read_ahead": "on",
}
PLAIN = [name for name, each in ARCHITECTURES.items() if set(each.caches) == {FULL}]


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(PLAIN, keep=["llama"]))
def test_a_small_model_that_has_read_all_attends_to_the_passages_that_match(
    architecture: str, tmp_path: Path
) -> None:
    """The answer is that of columns of the dense cache, with drafts and trees, too; later turns read all."""
    model: Any = tiny(architecture)
    engine = engine_of(model, architecture, TEMPLATES["dropped"], tmp_path)
    engine.try_out()
    messages = [Message("user", "What says line 7?", DOCUMENTS)]
    told: list[Any] = []
    answers: list[tuple[str, list[int], Finished]] = []
    for drafter in ("off", "cacheback", "auto"):
        engine.forget()
        ahead(engine, messages, **COLUMNS)
        values = COLUMNS | {"drafting.drafter": drafter, "gate.mode": "always"}
        told = list(engine.generate(Generate("r", tuple(messages), chosen(**values))))
        ids = [event.id for event in told if isinstance(event, Token)]
        answers.append(("".join(event.text for event in told if isinstance(event, Token)), ids, told[-1]))
    text, ids, finished = answers[0]
    assert [each[1] for each in answers] == [ids] * 3
    reading = next(event for event in told if isinstance(event, ReadingMap))
    stats, prompt = finished.stats, render(engine.loaded.tokenizer, messages).ids
    assert (finished.effective.reading, stats.skipped_tokens) == ("columns", 0)
    assert stats.kept_tokens == reading.read_tokens < 0.6 * stats.prompt_tokens
    assert stats.reused_tokens + stats.read_tokens == stats.prompt_tokens
    assert stats.context_used_tokens == stats.prompt_tokens + len(ids)
    assert any(passage.kept and passage.source >= 0 for passage in reading.passages)

    at = shared_prefix(prompt, render(engine.loaded.tokenizer, [replace(messages[0], content="?")]).ids)
    dense = CachedSequence(lambda: make_prompt_cache(model))
    for _ in read_prompt(model, dense, [*prompt[:at], 0], chunk_tokens=64):
        pass
    read = [np.arange(each.start, each.end) for each in reading.passages if each.kept]
    kept = np.concatenate(read)
    some = dense.selected(kept[kept < at].astype(np.int32))
    tokens, wanted = prompt[at:], list[int]()
    while len(wanted) < len(ids):
        logits = model(mx.array(tokens)[None], cache=some.cache)[0, -1]
        some.append(tokens)
        tokens = [int(mx.argmax(logits))]
        wanted += tokens
    assert ids == wanted

    said = f"{text} {'So it is. ' * 90}"
    messages += [Message("assistant", said), Message("user", "And what says line 9?")]
    cold = engine_of(model, architecture, TEMPLATES["dropped"], tmp_path)
    for values in (COLUMNS, CHOSEN, COLUMNS):
        ahead(engine, messages, **COLUMNS)
        if values is COLUMNS:
            asked = Generate("r", tuple(messages), chosen(**values))
            reading = next(each for each in engine.generate(asked) if isinstance(each, ReadingMap))
            after = max(each.end for each in reading.passages if each.source >= 0)
            assert all(each.kept for each in reading.passages if each.start >= after), "what was said is kept"
        _, now, then = ask(engine, messages, **values)
        assert then.effective.reading == ("columns" if values is COLUMNS else "dense")
        cold.forget()
        ahead(cold, messages, **COLUMNS)
        assert now == ask(cold, messages, **values)[1]


@pytest.mark.parametrize("architecture", thinned(PLAIN, keep=["llama"]))
def test_what_is_read_of_the_rest_attends_to_chosen_passages_of_what_was_read(
    architecture: str, tmp_path: Path
) -> None:
    model: Any = tiny(architecture)
    engine = engine_of(model, architecture, TEMPLATES["dropped"], tmp_path)
    engine.try_out()
    messages = [Message("user", "What says line 7?", DOCUMENTS)]
    prompt = render(engine.loaded.tokenizer, messages).ids
    unread = ask(engine, messages, **COLUMNS)[2].stats
    for drafter in ("off", "cacheback", "auto"):
        engine.forget()
        ahead(engine, messages, 16, **COLUMNS)
        values = COLUMNS | {"drafting.drafter": drafter, "gate.mode": "always"}
        told = list(engine.generate(Generate("r", tuple(messages), chosen(**values))))
        ids = [event.id for event in told if isinstance(event, Token)]
        finished, reading = told[-1], next(event for event in told if isinstance(event, ReadingMap))
        stats, half = finished.stats, finished.stats.reused_tokens
        assert 512 <= half < 0.8 * len(prompt)
        assert (finished.effective.reading, stats.kept_tokens) == ("sparse", reading.read_tokens)
        assert stats.read_tokens < unread.read_tokens
        assert stats.reused_tokens + stats.read_tokens + stats.skipped_tokens == len(prompt)
        assert stats.context_used_tokens == len(prompt) - stats.skipped_tokens + len(ids)
        kept = np.concatenate([np.arange(each.start, each.end) for each in reading.passages if each.kept])
        assert len(kept) == reading.read_tokens
        assert 0 < (kept < half).sum() < half

        dense = CachedSequence(lambda: make_prompt_cache(model))
        for _ in read_prompt(model, dense, [*prompt[:half], 0], chunk_tokens=64):
            pass
        some = dense.selected(kept[kept < half].astype(np.int32))
        tokens, wanted = [prompt[at] for at in kept[kept >= half]], list[int]()
        while len(wanted) < len(ids):
            logits = model(mx.array(tokens)[None], cache=some.cache)[0, -1]
            tokens = [int(mx.argmax(logits))]
            wanted += tokens
        assert ids == wanted
        assert engine.sequence.tokens == prompt[:half]
        assert not engine.sequence.skipped, "the rest can be read ahead of a later question"


@pytest.mark.parametrize("fault", [ValueError("no"), GeneratorExit()])
def test_a_reading_of_the_rest_that_fails_leaves_what_was_read(
    fault: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(tiny("llama"), "llama", TEMPLATES["dropped"], tmp_path)
    messages = [Message("user", "What says line 7?", DOCUMENTS)]
    _, dense, _ = ask(engine, messages, **CHOSEN)
    engine.forget()
    ahead(engine, messages, 16, **COLUMNS)
    read = list(engine.sequence.tokens)
    original = reading_module.read_kept

    def fails(*given: Any, **named: Any) -> Any:
        steps = original(*given, **named)
        for _ in range(3):
            yield next(steps)
        raise fault

    with monkeypatch.context() as patch:
        patch.setattr(reading_module, "read_kept", fails)
        events = engine.generate(Generate("r", tuple(messages), chosen(**COLUMNS)))
        if isinstance(fault, GeneratorExit):
            next(
                event
                for event in events
                if isinstance(event, PrefillProgress) and event.done_tokens > len(read)
            )
            events.close()
            assert engine.sequence.tokens == read
        else:
            told = list(events)
            assert [event.id for event in told if isinstance(event, Token)] == dense
            assert told[-1].effective.reading == "dense"
            assert told[-1].effective.changes
    assert not engine.sequence.skipped
    assert ask(engine, messages, **CHOSEN)[1] == dense


@pytest.mark.sweep
def test_when_all_is_attended_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(tiny("llama"), "llama", TEMPLATES["dropped"], tmp_path)
    question = Message("user", "What says line 7?", DOCUMENTS)

    def reading(question: Message, *read: Message, **values: object) -> str:
        engine.forget()
        for each in read:
            ahead(engine, [each], **COLUMNS)
        return ask(engine, [question], **COLUMNS | values)[2].effective.reading

    assert reading(question, question) == "columns"
    assert reading(question) == "sparse"
    assert reading(question, replace(question, attachments=DOCUMENTS[:1])) == "sparse"
    assert reading(replace(question, content="Sum all lines up."), question) == "dense"
    assert reading(replace(question, content="Zyx qqq?"), question) == "dense"
    assert reading(question, question, **{"prefill.mode": "off"}) == "dense"
    assert reading(question, question, **{"prefill.threshold_tokens": 4096}) == "dense"
    assert reading(question, question, **{"prefill.keep_pct": 100}) == "dense"

    better, worse = (-1.0, -1.1, -1.2), (-3.0, -3.2, -3.3)
    for trial, way, reads in (
        (ReadingTrial("", whole=better, columns=worse, passages=worse), "dense", True),
        (ReadingTrial("", whole=worse, columns=better, passages=worse), "columns", True),
        (ReadingTrial("", whole=worse, columns=worse, passages=better), "columns", False),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(MachineProfile, "preference", trial.preference(engine.loaded.info))
            assert reading(question, question) == way
            engine.forget()
            assert (ahead(engine, [question], **COLUMNS | {"prefill.read_ahead": "auto"}) > 0) == reads

    engine.forget()
    ahead(engine, [question], **COLUMNS)
    whole = ask(engine, [question], **CHOSEN)[1]
    monkeypatch.setattr(CachedSequence, "selected", lambda sequence, positions: 1 // 0)
    _, ids, finished = ask(engine, [question], **COLUMNS)
    assert (ids, finished.effective.reading) == (whole, "dense")
    assert "division" in finished.effective.reading_reason


@pytest.mark.parametrize(
    ("values", "parameters", "reads"),
    [
        ({}, 10**9, True),
        ({}, 10**8, False),
        ({"prefill.mode": "off"}, 10**8, True),
        ({"prefill.keep_pct": 100}, 10**8, True),
        ({"prefill.mode": "on"}, 10**9, False),
        ({"prefill.read_ahead": "on"}, 10**8, True),
        ({"prefill.read_ahead": "off"}, 10**9, False),
    ],
)
def test_when_it_reads(values: dict[str, object], parameters: int, reads: bool) -> None:
    info = ModelInfo("", "", "", "", "", "", "", parameters, 0, 0, 0, 0, True)
    request = Generate("", (), assign_all(Settings(), values.items()))
    assert (why_not_ahead(request, info, preference_by_size(parameters)) == "") == reads


def test_it_waits_while_the_system_saves_energy(energy: list[str], tmp_path: Path) -> None:
    engine = engine_of(tiny("llama"), "llama", TEMPLATES["dropped"], tmp_path)
    messages = [Message("user", "What says line 7?", DOCUMENTS)]
    assert ahead(engine, messages, 8) == 8
    energy.append("the battery is at 19%")
    assert not engine._ahead.piece(engine._session, engine._guard)
    energy.append("")
    assert engine._ahead.piece(engine._session, engine._guard)  # goes on where it paused
    energy.append("Low Power Mode is on")
    assert ahead(engine, messages) == 0
    assert ahead(engine, messages, **{"prefill.read_ahead": "on"}) > 0
    engine.unload()


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["eagle3-specforge", "dflash", "gemma4"])
def test_the_head_reads_ahead_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    write_drafted_model(tmp_path / "Tiny", name)
    engine = Engine()
    engine.load(str(tmp_path / "Tiny"))
    engine.try_out()
    messages = [Message("user", "What is wrong?", (Attachment("log", LONG[:900]),))]
    _, ids, _ = ask(engine, messages, **CHOSEN)
    for pieces in (None, 9):
        engine.forget()
        ahead(engine, messages, pieces, **{"drafting.drafter": "auto"})
        read = len(engine.sequence.tokens)
        assert read > 60, pieces
        engine.read_ahead(None)
        own = engine.sequence.head
        if name == "gemma4":
            assert own is None
            assert engine.sequence.state is not None
        else:
            assert own is not None
            assert (len(own.tokens), own.skipped) == (read, 1)
        assert ask(engine, messages, **CHOSEN, **{"drafting.drafter": "mtp"})[1] == ids
        assert engine.sequence.head is None or engine.sequence.head.skipped == 1


@pytest.mark.sweep
@pytest.mark.parametrize(("pieces", "reads"), [(None, "columns"), (12, "sparse")])
def test_a_head_that_read_ahead_drafts_for_columns(
    pieces: int | None, reads: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    write_drafted_model(tmp_path / "Tiny", "eagle3-specforge")
    engine = Engine()
    engine.load(str(tmp_path / "Tiny"))
    engine.try_out()
    made: list[CachedSequence] = []
    selected = CachedSequence.selected
    monkeypatch.setattr(
        CachedSequence, "selected", lambda self, kept: made.append(selected(self, kept)) or made[-1]
    )
    messages = [Message("user", "What says line 7?", (Attachment("log", LONG[:700]),))]
    found = []
    for drafter in ("off", "mtp", "auto"):
        engine.forget()
        values = COLUMNS | {"drafting.drafter": drafter}
        ahead(engine, messages, pieces, **values)
        _, ids, finished = ask(engine, messages, **values)
        assert (finished.effective.reading, len(made)) == (reads, len(found) + 1)
        found.append(ids)
    assert found == [found[0]] * 3
    assert made[0].head is None
    assert all(
        each.head is not None and len(each.head.tokens) >= len(engine.sequence.tokens) for each in made[1:]
    )
