"""Rehearsal: while nothing is asked a model answers Draftlight's prompts, and is guessed by its answers."""

from __future__ import annotations

from typing import Literal

from core.events.wire import Wire

RehearsalState = Literal["off", "waiting", "running", "done", "failed"]
WaitsFor = Literal["", "quiet", "answer"]


class Rehearse(Wire, frozen=True):
    """Rehearse with the loaded model while idle, or stop it. Holds until another model is loaded."""

    request: str
    wanted: bool


class Typing(Wire, frozen=True):
    """Somebody writes a question: rehearsal stands still until none of these came for some seconds."""


class Rehearsing(Wire, frozen=True):
    """How the loaded model's rehearsal stands: whenever that changes, and about once a second while it runs.

    `answered` of `prompts` are done, with `tokens` in all, earlier runs included; all are 0 before
    the first piece of work. `contexts` are in the table that was last made of them, 0 if none was
    made since the model was loaded. A `waiting` one waits until nobody types (`quiet`), until the
    running answer has ended (`answer`), or for its next idle moment. `trouble` says in sentences
    why it `failed`.
    """

    model: str
    state: RehearsalState
    waits_for: WaitsFor = ""
    answered: int = 0
    prompts: int = 0
    tokens: int = 0
    contexts: int = 0
    trouble: str = ""


RehearsalCommand = Rehearse | Typing
RehearsalEvent = Rehearsing
