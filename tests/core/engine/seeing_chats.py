"""Chats about images, and the answers of cold plain starts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from core.engine.engine import Engine
from core.events import Finished, Generate, Image, Message, Token
from core.models.parts import rotations
from core.settings import Settings, assign_all


def settings_of(drafter: str = "off", **values: Any) -> Settings:
    chosen: dict[str, Any] = {
        "drafting.drafter": drafter,
        "gate.mode": "always",
        "sampling.temperature": 0.0,
        "sampling.max_tokens": 40,
        "ngram_simple.n_min": 1,
        "ngram_mod.n": 4,
        "ngram_mod.slots": 4096,
        **values,
    }
    return assign_all(Settings(), chosen.items())


def asked(text: str, *images: Image, **more: Any) -> Message:
    return Message("user", text, images=images, **more)


def answered(
    engine: Engine, messages: Sequence[Message], settings: Settings, **more: Any
) -> tuple[list[int], Finished]:
    *events, finished = engine.generate(Generate("", tuple(messages), settings, **more))
    assert isinstance(finished, Finished)
    turned = [type(rotation.rope).__module__ for rotation in rotations(engine.loaded.model)]
    assert turned
    assert not any(name.startswith("core") for name in turned)
    return [event.id for event in events if isinstance(event, Token)], finished


def cold(engine: Engine, messages: Sequence[Message], settings: Settings, **more: Any) -> list[int]:
    """The answer of a cold plain start."""
    engine.forget(tables=True)
    plain = assign_all(settings, [("drafting.drafter", "off")])
    return answered(engine, messages, plain, isolated=True, **more)[0]
