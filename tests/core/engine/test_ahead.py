"""What is read before a question changes no token of its prompt or answer, with every cache."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from core.engine.ahead import why_not_ahead
from core.engine.engine import Engine
from core.events import Attachment, Generate, Message, ModelInfo, ReadAheadProgress
from core.settings import Settings, assign_all
from core.system import power
from tests.core.architectures import ARCHITECTURES, tiny
from tests.core.engine.test_second_turn import KEPT, LONG, TEMPLATES, ask, engine_of
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


@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=KEPT))
@pytest.mark.parametrize("template", thinned(list(TEMPLATES), keep=["dropped"]))
def test_an_answer_is_that_of_a_cold_start_whenever_the_question_comes(
    architecture: str, template: str, tmp_path: Path
) -> None:
    engine = engine_of(tiny(architecture), architecture, TEMPLATES[template], tmp_path)
    engine.try_out()
    rng = random.Random(architecture)
    for question in rng.sample(QUESTIONS, 3):
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


@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=["qwen3_5"]))
def test_whatever_comes_between_answers_stay_those_of_a_cold_start(architecture: str, tmp_path: Path) -> None:
    engine = engine_of(tiny(architecture), architecture, TEMPLATES["dropped"], tmp_path)
    cold = engine_of(tiny(architecture), architecture, TEMPLATES["dropped"], tmp_path)
    for each in (engine, cold):
        each.try_out()
    rng = random.Random(architecture)
    chat: list[Message] = []
    for _ in range(12):
        chat = chat if len(chat) < 4 else []  # the context holds no more
        documents = tuple(rng.sample(DOCUMENTS, rng.randint(0, 2)))
        question = Message("user", rng.choice(QUESTIONS) or "?", documents)
        match rng.choice(("type", "type", "remove", "stop", "ask", "ask", "new")):
            case "type":
                ahead(engine, [*chat, question], rng.randint(1, 12))
            case "remove":
                engine.read_ahead(None)
            case "stop":
                asked = Generate("r", (*chat, question), chosen())
                stop_after = rng.randint(0, 4)
                for _ in zip(range(stop_after), engine.generate(asked)):
                    pass
            case "ask":
                answer, ids, _ = ask(engine, [*chat, question], **CHOSEN)
                cold.forget()
                assert ids == ask(cold, [*chat, question], **CHOSEN)[1]
                chat += [question, Message("assistant", answer or "-")]
            case "new":
                chat = []
    engine.unload()


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


@pytest.mark.parametrize(
    ("values", "parameters", "reads"),
    [
        ({}, 10**9, True),
        ({}, 10**8, False),
        ({"prefill.mode": "off"}, 10**8, True),
        ({"prefill.mode": "on"}, 10**9, False),
        ({"prefill.read_ahead": "on"}, 10**8, True),
        ({"prefill.read_ahead": "off"}, 10**9, False),
    ],
)
def test_when_it_reads(values: dict[str, object], parameters: int, reads: bool) -> None:
    info = ModelInfo("", "", "", "", "", "", "", parameters, 0, 0, 0, 0, True)
    request = Generate("", (), assign_all(Settings(), values.items()))
    assert (why_not_ahead(request, info) == "") == reads


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
