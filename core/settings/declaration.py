"""Settings as data: read from the annotated structs, assigned by key.

A key is `group.field` (`ngram_simple.k`); hyphens are accepted for underscores. The inspector, the command
line, the server and the docs are generated from `declared()`. The functions work with any struct of groups,
such as `Settings` and `WindowSettings`.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from core.errors import SettingError
from core.settings.drafting import check_cacheback, check_slots
from core.settings.request import Settings
from core.settings.window import Allowed, forbidden
from core.system.children import absolute_path, absolute_reference
from core.system.prepared import prepared

SettingKind = Literal["integer", "number", "choice", "switch", "text", "names"]
_Root = TypeVar("_Root", bound=Struct)
_KINDS: dict[type, SettingKind] = {bool: "switch", int: "integer", float: "number", str: "text"}


class Setting(Struct, frozen=True):
    """One declared field; see `core.settings.fields` for the metadata.

    `minimum` and `maximum` are inclusive unless `minimum_open`; None means unbounded. A value of the kind
    `names` is a tuple of texts. `default` is None for a required field.
    """

    key: str
    kind: SettingKind
    title: str
    help: str
    default: Any
    unit: str = ""
    minimum: float | None = None
    maximum: float | None = None
    minimum_open: bool = False
    step: float | None = None
    factor: int = 0
    random: bool = False
    lines: int = 5
    names: Literal["", "file", "model"] = ""
    empty: str = ""
    choices: tuple[str, ...] = ()
    labels: dict[str, str] = {}
    notes: dict[str, str] = {}

    @property
    def group(self) -> str:
        return self.key.partition(".")[0]

    @property
    def name(self) -> str:
        return self.key.partition(".")[2]

    @property
    def allowed(self) -> str:
        """The allowed values as a phrase, for error messages and `--help`."""
        unit = self.unit if self.unit in ("", "%") else f" {self.unit}"
        if self.kind == "choice":
            return "one of " + ", ".join(self.choices)
        if self.kind == "switch":
            return "true or false"
        if self.kind == "names":
            return f"at most {int(self.maximum or 0)} names, with commas between them"
        if self.kind == "text":
            if self.minimum:
                return f"a text of {int(self.minimum)} to {int(self.maximum or 0):,} characters"
            return f"a text of at most {int(self.maximum or 0):,} characters" if self.maximum else "a text"
        noun = "a whole number" if self.kind == "integer" else "a number"
        # `:g` would write a large integer as 2.14748e+09.
        form = ".0f" if self.kind == "integer" else "g"
        low = f"above {self.minimum:{form}}" if self.minimum_open else f"from {self.minimum:{form}}"
        return f"{noun} {low} to {self.maximum:{form}}{unit}"


@cache
def declared(root: type[Struct] = Settings) -> tuple[Setting, ...]:
    """All settings of `root`, in the order of their declaration, without lists of records (`listed`)."""
    return tuple(
        _describe(
            f"{group.encode_name}.{item.encode_name}", item.type, None if item.required else item.default
        )
        for group in fields(root)
        if isinstance(group.type, type)
        for item in fields(group.type)
        if not _is_listed(item.type)
    )


def find(key: str, root: type[Struct] = Settings) -> Setting:
    """The setting with `key`. Raises `SettingError` with the nearest known keys, or the groups."""
    known = _by_key(root)
    wanted = _normalised(key)
    if wanted in known:
        return known[wanted]
    if near := difflib.get_close_matches(wanted, known, n=3, cutoff=0.5):
        raise SettingError(f"There is no setting “{key}”.", f"Did you mean {', '.join(near)}?")
    groups = dict.fromkeys(each.partition(".")[0] for each in known)
    raise SettingError(
        f"There is no setting “{key}”.",
        f"Settings are named group.field; the groups are {', '.join(groups)}.",
    )


def _normalised(key: str) -> str:
    return key.strip().replace("-", "_")


@cache
def _by_key(root: type[Struct]) -> dict[str, Setting]:
    return {setting.key: setting for setting in declared(root)}


@cache
def _types(group: type[Struct]) -> dict[str, Any]:
    """The annotations of `group`; cached, because Python evaluates them on each call."""
    return typing.get_type_hints(group, include_extras=True)


def read(settings: Struct, key: str) -> Any:
    """The value of `key` in `settings`."""
    setting = find(key, type(settings))
    return getattr(getattr(settings, setting.group), setting.name)


def assign(settings: _Root, key: str, value: Any) -> _Root:
    """A copy of `settings` with `key` set. Raises `SettingError` if `value` is not allowed."""
    return assign_all(settings, [(key, value)])


def assign_all(
    settings: _Root, values: Iterable[tuple[str, Any]], *, relative_to: Path | None = None
) -> _Root:
    """A copy with all `values` set; rules that span fields are checked once, at the end.

    Paths are made absolute from `relative_to`, because a worker runs in another folder. Raises
    `SettingError` for an unknown key or a value that is not allowed.
    """
    for key, value in values:
        setting = find(key, type(settings))
        if relative_to is not None:
            value = _absolute(setting, value, relative_to)
        settings = _with(settings, setting, value)
    if isinstance(settings, Settings):
        check(settings)
    return settings


def permitted(settings: Settings, allowed: Allowed) -> Settings:
    """`settings` without what the app forbids."""
    return assign_all(settings, [(key, False) for key in forbidden(allowed)])


def assign_allowed(
    settings: _Root, values: Sequence[tuple[str, Any]]
) -> tuple[_Root, dict[int, SettingError]]:
    """A copy with the allowed `values` set, in whatever order they come, and why not the others, by place."""
    errors = {place: SettingError("") for place in range(len(values))}
    for _ in values:  # one may be allowed only with a later one
        for place in tuple(errors):
            try:
                settings = assign(settings, *values[place])
                del errors[place]
            except SettingError as error:
                errors[place] = error
    return settings, errors


def parse_all(settings: Settings, texts: Iterable[tuple[str, str]]) -> Settings:
    """Like `assign_all`, from texts of a command line (`k=7`, `on=true`) in the current folder."""
    values = [(key, _value(find(key), text)) for key, text in texts]
    return assign_all(settings, values, relative_to=Path())


def check(settings: Settings) -> None:
    """Rules that span fields. Raises `SettingError`."""
    simple = settings.ngram_simple
    if simple.n_min > simple.n_max:
        raise SettingError(
            f"The shortest match ({simple.n_min}) is longer than the longest match ({simple.n_max}).",
            "Set ngram_simple.n_min to at most ngram_simple.n_max.",
        )
    check_slots(settings.ngram_mod.slots)
    check_cacheback(settings.cacheback)


def _with(settings: _Root, setting: Setting, value: Any) -> _Root:
    group: Struct = getattr(settings, setting.group)
    try:
        if setting.kind == "number" and type(value) is int:
            value = float(value)
        checked = msgspec.convert(value, prepared(_types(type(group))[setting.name]))
    except (msgspec.ValidationError, OverflowError):  # JSON integers have no upper bound
        raise SettingError(
            f"“{_short(value)}” is not allowed for {setting.key} ({setting.title}).",
            f"Allowed: {setting.allowed}.",
        ) from None
    return replace(settings, **{setting.group: replace(group, **{setting.name: checked})})


def _short(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # Python does not write integers of more than 4,300 digits
        text = "an integer of thousands of digits"
    return text if len(text) <= 80 else f"{text[:80]}…"


def _absolute(setting: Setting, value: Any, folder: Path) -> Any:
    if not isinstance(value, str):
        return value
    match setting.names:
        case "file":
            return absolute_path(value, folder)
        case "model":
            return absolute_reference(value, folder)
        case _:
            return value


def _value(setting: Setting, text: str) -> Any:
    if setting.kind not in ("integer", "number", "switch"):
        return text
    try:
        return msgspec.json.decode(text.strip().lower().encode())
    except msgspec.DecodeError:
        return text


def _kind(base: Any) -> SettingKind:
    if get_origin(base) is Literal:
        return "choice"
    return "names" if get_origin(base) is tuple else _KINDS[base if base is not NoneType else str]


def _parts(annotation: Any) -> tuple[Any, tuple[msgspec.Meta, ...]]:
    """The type and the metadata of an annotation."""
    if get_origin(annotation) is not typing.Annotated:
        return annotation, ()
    base, *metas = get_args(annotation)
    return base, tuple(metas)


def _is_listed(annotation: Any) -> bool:
    return any((meta.extra or {}).get("listed") for meta in _parts(annotation)[1])


def _describe(key: str, annotation: Any, default: Any) -> Setting:
    base, metas = _parts(annotation)
    texts = next((meta for meta in metas if meta.title is not None and meta.description is not None), None)
    if texts is None:
        raise TypeError(f"{key} is declared without a title or a description")
    bounds = next((meta for meta in metas if meta is not texts), msgspec.Meta())
    low = bounds.ge if bounds.ge is not None else bounds.gt if bounds.gt is not None else bounds.min_length
    return Setting(
        key=key,
        kind=_kind(base),
        title=texts.title or "",
        help=texts.description or "",
        default=default,
        minimum=low,
        maximum=bounds.le if bounds.le is not None else bounds.max_length,
        minimum_open=bounds.gt is not None,
        choices=get_args(base) if get_origin(base) is Literal else (),
        **(bounds.extra or {}),
    )
