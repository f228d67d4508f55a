"""What every API's requests share: Draftlight's own fields, and settings by what a field says.

A known field with a value that is not supported is refused by name if it would change the answer. Everything
else that the answer does not honour is a `Change`, which the client reads in `draftlight.changes`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from core.errors import SettingError
from core.events import Change, Generate, ModelInfo
from core.serve.errors import ApiError, field_error
from core.settings import Settings, assign
from core.settings.declaration import find

# A model by its name; a path would tell whoever asks what lies on this machine.
_MODEL_NAME = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_MOST_SEED = 2**31
_MOST_VALUE = 200
_NO_THOUGHT = ("none", "minimal")


class OwnObject(Struct, forbid_unknown_fields=True):
    """`"draftlight": {…}`. `tokens`: each chunk tells where its tokens came from. `forced`: what a grammar
    forces is drafted; without it the same answer takes longer, for whoever measures.
    """

    tokens: bool = False
    forced: bool = True


class OwnFields(Struct, kw_only=True, dict=True):
    """Fields that no other server has, or that servers like this one share."""

    drafter: str | None = None
    specprefill: bool | None = None
    specprefill_keep_pct: float | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    draftlight: OwnObject = field(default_factory=OwnObject)

    @property
    def changes(self) -> list[Change]:
        """What of the request the answer does not honour."""
        changes: list[Change] = self.__dict__.setdefault("changes", [])
        return changes

    def own_settings(self) -> Iterable[tuple[str, str, Any]]:
        """(the field, the setting's key, its value) of all that was said."""
        for key, value in self.settings.items():
            _check_open(key, value)
            yield f"settings.{key}", key, value
        if self.drafter is not None:
            yield "drafter", "drafting.drafter", self.drafter
        if self.specprefill is not None:
            yield "specprefill", "prefill.mode", "on" if self.specprefill else "off"
        if self.specprefill_keep_pct is not None:
            yield "specprefill_keep_pct", "prefill.keep_pct", self.specprefill_keep_pct


def settings_with(base: Settings, values: Iterable[tuple[str, str, Any]]) -> Settings:
    """`base` with what the fields say. Raises `ApiError` 400 that names the field and what it takes."""
    settings = base
    for name, key, value in values:
        try:
            settings = assign(settings, key, value)
        except SettingError as error:
            raise field_error(name, f"“{name}”: {error}") from None
    if settings.tables.learn and not base.tables.learn:
        raise refused("settings.tables.learn", "whoever runs the server decides whether it learns")
    return settings


def seed_of(seed: int | None) -> int:
    """One that the sampler takes; without one, every answer is drawn anew."""
    return random.randrange(_MOST_SEED) if seed is None else seed % _MOST_SEED


def change(name: str, requested: Any, used: str, reason: str) -> Change:
    """A field of the request that the answer does not honour."""
    text = requested if isinstance(requested, str) else msgspec.json.encode(requested).decode()
    return Change(name, text if len(text) <= _MOST_VALUE else f"{text[:_MOST_VALUE]}…", used, reason)


def effort_changes(name: str, effort: str | None, model: ModelInfo) -> list[Change]:
    """The change that a level of effort is, if the model does not think or has only an on-off switch."""
    if effort is None or not thinks_at(effort):
        return []
    if model.thinks or model.format.thinks:
        return [change(name, effort, "thinking on", "this model thinks or does not; it has no levels")]
    return [change(name, effort, "thinking off", "this model does not think before it answers")]


def thinks_at(effort: str) -> bool:
    """Whether a level of effort switches thinking on."""
    return effort not in _NO_THOUGHT


def refused(name: str, why: str) -> ApiError:
    """A field is known, but what it asks for is not done here."""
    return field_error(name, f"“{name}” is not supported here: {why}.", "unsupported_parameter")


def _check_open(key: str, value: Any) -> None:
    """Raises `ApiError` for what is not a client's business: files of this machine."""
    try:
        names = find(key).names
    except SettingError as error:
        raise field_error(f"settings.{key}", str(error)) from None
    if names == "file" or (names == "model" and value and not _MODEL_NAME.fullmatch(str(value))):
        raise refused(f"settings.{key}", "a request names no file or folder of this machine")


def with_own_system_message(generate: Generate) -> Generate:
    """A system message of the client's stands; only where there is none, that of the settings is told."""
    if not any(message.role == "system" for message in generate.messages):
        return generate
    return replace(generate, settings=assign(generate.settings, "chat.system_prompt", ""))
