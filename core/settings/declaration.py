"""A setting as data: read from the annotated structs, written back by key.

A key is `group.field` (`ngram_simple.k`); the group may be written with hyphens.
`declared()` is what the inspector, the command line and the docs are made from. The same holds for
the app's own settings (`WindowSettings`): the functions here serve any such struct of groups.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec
from msgspec import Struct
from msgspec.structs import fields, replace

from core.errors import SettingError
from core.settings.drafting import check_cacheback, check_slots
from core.settings.root import Settings
from core.settings.window import Allowed, forbidden
from core.system.children import absolute_path, absolute_reference

SettingKind = Literal["integer", "number", "choice", "switch", "text", "names"]
_Root = TypeVar("_Root", bound=Struct)
_KINDS: dict[type, SettingKind] = {bool: "switch", int: "integer", float: "number", str: "text"}


class Setting(Struct, frozen=True):
    """One declared field. `minimum`/`maximum` are inclusive unless `*_open`; None means unbounded.

    `factor` is set where values are the minimum times its powers. `random`: any value is as good as
    another. `lines` is how many a text needs, `names` what it is the path of (a model may have a
    name instead), and `empty` what it means that there is none, in a few words. A value of the kind
    `names` is a tuple of texts. `default` is None for what must be given.
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
        """What may be given, in words, for error messages and `--help`."""
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
        # `:g` would make 2.14748e+09 of a whole number.
        form = ".0f" if self.kind == "integer" else "g"
        low = f"above {self.minimum:{form}}" if self.minimum_open else f"from {self.minimum:{form}}"
        return f"{noun} {low} to {self.maximum:{form}}{unit}"


@cache
def declared(root: type[Struct] = Settings) -> tuple[Setting, ...]:
    """All settings of `root`, in the order of their declaration.

    What is `listed` is many records rather than one value, and is set elsewhere.
    """
    return tuple(
        _describe(
            f"{group.encode_name}.{item.encode_name}", item.type, None if item.required else item.default
        )
        for group in fields(root)
        for item in fields(group.type)
        if not _is_listed(item.type)
    )


def find(key: str, root: type[Struct] = Settings) -> Setting:
    """The setting called `key`. Raises `SettingError` that names the nearest known ones."""
    group, _, name = key.strip().partition(".")
    known = _by_key(root)
    wanted = f"{group.replace('-', '_')}.{name.replace('-', '_')}"
    if wanted in known:
        return known[wanted]
    near = difflib.get_close_matches(wanted, known, n=3, cutoff=0.5) or list(known)
    raise SettingError(f"There is no setting “{key}”.", f"Did you mean {', '.join(near)}?")


@cache
def _by_key(root: type[Struct]) -> dict[str, Setting]:
    return {setting.key: setting for setting in declared(root)}


@cache
def _types(group: type[Struct]) -> dict[str, Any]:
    """What each field takes. Python evaluates the annotations anew each time it is asked."""
    return typing.get_type_hints(group, include_extras=True)


def read(settings: Struct, key: str) -> Any:
    """The value that `settings` holds for `key`."""
    setting = find(key, type(settings))
    return getattr(getattr(settings, setting.group), setting.name)


def assign(settings: _Root, key: str, value: Any) -> _Root:
    """A copy of `settings` with `key` set. Raises `SettingError` if `value` is not allowed."""
    return assign_all(settings, [(key, value)])


def assign_all(
    settings: _Root, values: Iterable[tuple[str, Any]], *, relative_to: Path | None = None
) -> _Root:
    """A copy with all of them set; rules that span fields are checked once, at the end.

    Paths are made absolute if it is said what they are `relative_to`: a worker runs in another folder.
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
    """`settings` as far as the app allows it: what it keeps off is off."""
    return assign_all(settings, [(key, False) for key in forbidden(allowed)])


def parse(settings: Settings, key: str, text: str) -> Settings:
    """Like `assign`, from text as typed on a command line (`k=7`, `on=true`) in the current folder."""
    return parse_all(settings, [(key, text)])


def parse_all(settings: Settings, texts: Iterable[tuple[str, str]]) -> Settings:
    """Like `assign_all`, from texts."""
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
        checked = msgspec.convert(value, _types(type(group))[setting.name])
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


def _is_listed(annotation: Any) -> bool:
    if get_origin(annotation) is not typing.Annotated:
        return False
    return bool((get_args(annotation)[1].extra or {}).get("listed"))


def _describe(key: str, annotation: Any, default: Any) -> Setting:
    base, meta = annotation, msgspec.Meta()
    if get_origin(annotation) is typing.Annotated:
        base, meta = get_args(annotation)
    if meta.title is None or meta.description is None:
        raise TypeError(f"{key} is declared without a title or a description")
    extra = meta.extra or {}
    choices = get_args(base) if get_origin(base) is Literal else ()
    low = meta.ge if meta.ge is not None else meta.gt if meta.gt is not None else meta.min_length
    high = meta.le if meta.le is not None else meta.max_length
    return Setting(
        key=key,
        kind=_kind(base),
        title=meta.title,
        help=meta.description,
        default=default,
        unit=extra.get("unit", ""),
        minimum=low,
        maximum=high,
        minimum_open=meta.gt is not None,
        step=extra.get("step"),
        factor=extra.get("factor", 0),
        random=extra.get("random", False),
        lines=extra.get("lines", 5),
        names=extra.get("names", ""),
        empty=extra.get("empty", ""),
        choices=choices,
        labels=extra.get("labels", {}),
        notes=extra.get("notes", {}),
    )
