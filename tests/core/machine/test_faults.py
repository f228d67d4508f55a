"""Faults of the GPU: what each text means, and what an answer does about it."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import mlx.core as mx
import pytest
from mlx_lm.models import llama

from core.decoding.sampling import NO_CHOICE, RowInputs, Sampler
from core.engine.engine import Engine
from core.errors import BrokenLogitsError, DraftlightError, GpuFaultError, OutOfMemoryError
from core.events import Event, Finished, Token
from core.machine.profile import MachineProfile
from core.models import memory
from core.settings import Settings, assign_all
from core.settings.request import Sampling
from core.system.metal import fault_of
from tests.core.toy import write_toy_model

FAILED = "[METAL] Command buffer execution failed: "
MEMORY = f"{FAILED}Nicht genügend Speicher (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)"
WATCHDOG = f"{FAILED}(0000000e:kIOGPUCommandBufferCallbackErrorImpactingInteractivity)"
TEXTS = [
    (MEMORY, "memory"),
    (f"libc++abi: terminating due to uncaught exception: {MEMORY}", "memory"),
    (f"{FAILED}記憶體不足 (00000008:)", "memory"),
    ("kIOGPUCommandBufferCallbackErrorOutOfMemory", "memory"),
    ("[metal::malloc] Resource limit (499000) exceeded.", "memory"),
    ("[malloc] Unable to allocate 8 bytes.", "memory"),
    (WATCHDOG, "interrupted"),
    (f"{FAILED}Caused GPU Timeout Error (00000002:kIOGPUCommandBufferCallbackErrorTimeout)", "interrupted"),
    (f"{FAILED}Discarded (00000005:kIOGPUCommandBufferCallbackErrorInnocentVictim)", "gpu"),
    (f"{FAILED}(unknown)", "gpu"),
    ("python(71,0x1) malloc: *** error for object 0x1: pointer being freed was not allocated", ""),
    ("Segmentation fault", ""),
]


@pytest.mark.parametrize(("text", "fault"), TEXTS)
def test_the_constant_or_the_code_decides_in_every_language(text: str, fault: str) -> None:
    assert fault_of(text) == fault
    assert memory.fault(RuntimeError(text)) == fault
    assert memory.fault(ValueError(text)) == ""


class FailingModel:
    """The toy's model; its forward pass number `at`, counted from 1, raises `error` once, or always."""

    def __init__(self, model: Any, error: str, at: int, *, once: bool) -> None:
        self.model, self.error, self.at, self.once, self.widths = model, error, at, once, list[int]()

    def __call__(self, ids: mx.array, *arguments: Any, **options: Any) -> Any:
        self.widths.append(ids.shape[1])
        if len(self.widths) == self.at or (len(self.widths) > self.at and not self.once):
            raise RuntimeError(self.error)
        return self.model(ids, *arguments, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)


def answer(engine: Engine) -> list[Event]:
    values = {"sampling.max_tokens": 8, "drafting.drafter": "off", "prefill.mode": "off"}
    prompt = [4 + at * 7 % 250 for at in range(120)]
    return list(engine.generate_ids(prompt, assign_all(Settings(), list(values.items()))))


KINDS = [(MEMORY, OutOfMemoryError), (WATCHDOG, GpuFaultError), ("[matmul] shapes", RuntimeError)]


@pytest.mark.parametrize(("text", "kind"), KINDS)
def test_a_fault_while_reading_is_tried_once_more_with_smaller_chunks(
    toy_engine: Engine, text: str, kind: type[Exception]
) -> None:
    expected = answer(toy_engine)
    toy_engine.forget()
    plain: Any = toy_engine.loaded.model
    failing = FailingModel(plain, text, at=1, once=True)
    toy_engine.loaded.model = failing  # type: ignore[assignment]
    if kind is RuntimeError:
        with pytest.raises(RuntimeError, match="shapes"):
            answer(toy_engine)
        return
    got = answer(toy_engine)
    assert [e.id for e in got if isinstance(e, Token)] == [e.id for e in expected if isinstance(e, Token)]
    assert failing.widths[0] > 64 >= max(failing.widths[1:])
    (change,) = [c for e in got if isinstance(e, Finished) for c in e.effective.changes]
    assert (change.setting, change.asked, change.used) == ("prefill.chunk_tokens", "512", "64")
    toy_engine.loaded.model = FailingModel(plain, text, at=1, once=False)  # type: ignore[assignment]
    toy_engine.forget()
    with pytest.raises(kind):
        answer(toy_engine)


@pytest.mark.parametrize("call", [1, 4])
def test_memory_that_runs_out_is_no_fault_of_the_loaded_model(
    call: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the check of its logits, and in the trial of quantised caches."""
    write_toy_model(tmp_path, hidden_size=128)
    own, calls = llama.Model.__call__, itertools.count(1)

    def failing(self: llama.Model, *given: Any, **named: Any) -> Any:
        if next(calls) == call:
            raise RuntimeError("[malloc] Unable to allocate 64 bytes.")
        return own(self, *given, **named)

    engine = Engine()
    monkeypatch.setattr(llama.Model, "__call__", failing)
    with pytest.raises(OutOfMemoryError, match="to load this model"):
        engine.load(str(tmp_path))
    assert engine.load(str(tmp_path)).kv_why_not == ""
    engine.unload()


def test_a_fault_after_a_token_ends_the_answer_and_keeps_no_cache(toy_engine: Engine) -> None:
    toy_engine.loaded.model = FailingModel(toy_engine.loaded.model, WATCHDOG, at=6, once=True)  # type: ignore[assignment]
    with pytest.raises(GpuFaultError, match="display"):
        answer(toy_engine)
    assert toy_engine.sequence.tokens == []


def test_a_late_fault_is_charged_to_the_work_that_caused_it(
    toy_engine: Engine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """On Metal it is raised by the next synchronization."""
    kept: list[str] = []

    def synchronize() -> None:
        if kept:
            raise RuntimeError(kept.pop())

    monkeypatch.setattr(memory, "on_gpu", lambda: True)
    monkeypatch.setattr(mx, "synchronize", synchronize)
    kept.append(MEMORY)  # of work before the answer
    assert isinstance(answer(toy_engine)[-1], Finished)
    events = toy_engine.generate_ids([4, 5, 6], assign_all(Settings(), [("sampling.max_tokens", 2)]))
    next(event for event in events if isinstance(event, Token))
    kept.append(WATCHDOG)
    with pytest.raises(DraftlightError) as raised:
        list(events)
    assert isinstance(raised.value, GpuFaultError)
    assert toy_engine.sequence.tokens == []
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path))
    profile = MachineProfile(toy_engine.loaded, lambda: 0.0)
    kept.append(MEMORY)
    with pytest.raises(RuntimeError, match="OutOfMemory"):
        profile.some()
    assert profile.due_s() == 60.0, "the measurement is repeated"


@pytest.mark.parametrize("value", [0.0, 3.5, -mx.inf, mx.nan])
@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_equal_logits_are_no_choice(value: float, temperature: float) -> None:
    """Failed buffers can read as zeros."""
    rows = mx.stack([mx.arange(8).astype(mx.float32), mx.full(8, value)])
    sampler = Sampler(Sampling(temperature=temperature), {3: 1.0})
    first, second = sampler.choose(rows, RowInputs((0, 1))).pull()
    assert first != NO_CHOICE
    assert second == NO_CHOICE
    assert "equal logits" in BrokenLogitsError().message
