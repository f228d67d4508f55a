"""The rows of the Models window, and the facts that rows and details show. Pure; no Qt."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit
from urllib.request import url2pathname

from msgspec import Struct
from msgspec.structs import replace

from app.features.models import strings
from app.features.models.state import ModelsState
from core.events import DownloadProgress, Fit, HubModel, ModelEntry, fit_of
from core.settings.prefill import KvCache

Command = Literal["load", "get", "search", "add", "resume", "pause", "cancel"]
# Green and amber are the token tints; vermilion marks failures.
FAMILY_COLORS = ("series_blue", "series_purple", "series_sky", "series_grey")
DEFAULT_CONTEXT_TOKENS = 32_768
FULL_PRECISION = KvCache()
_SUGGESTED_CONTEXT_TOKENS = 8192
_SUGGESTED = 3
# A draft model with more than this share of the model's parameters rarely pays.
_SLOW_SHARE = 0.35
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


class FitFacts(Struct, frozen=True):
    """Memory fit. `share` of the limit, above 1 if too large; `text` is the free memory or the excess."""

    fit: Fit
    text: str
    share: float


class ModelRow(Struct, frozen=True):
    """A model, a download, or the model that the search text names; without an id, the title of a group.

    `sees` are words for a model that sees images. `bar` is the memory fit or the share of the download that
    arrived. `commands` have buttons in the row, and
    the first is that of a double click. Rows with commands have no `status`.
    """

    id: str
    title: str
    detail: str = ""
    family: str = ""
    family_color: str = "series_grey"
    memory: str = ""
    bar: FitFacts | float | None = None
    drafts: str = ""
    purpose: str = ""
    status: str = ""
    problem: str = ""
    commands: tuple[Command, ...] = ()
    sees: str = ""

    @property
    def note(self) -> str:
        """Its problem if it has one, else its draft models or the speed of the download."""
        return self.problem or self.drafts

    @property
    def below(self) -> str:
        """The lines below the title."""
        return "\n".join(filter(None, (self.detail, self.purpose, self.sees)))

    @property
    def tip(self) -> str:
        return self.note

    @property
    def spoken(self) -> str:
        """The row as one line for screen readers."""
        model = (self.title, self.detail, self.purpose, self.sees, self.family)
        return ", ".join(filter(None, (*model, self.memory, self.note, self.status)))


class DraftFacts(Struct, frozen=True):
    """A possible draft model. `why` is the reason if it is not `usable`."""

    reference: str
    name: str
    why: str
    size: str
    usable: bool


class MemoryPart(Struct, frozen=True):
    """A part of the memory bar, with its palette colour."""

    label: str
    color: str
    size_bytes: int


def is_hub_name(text: str) -> bool:
    """Whether `text` has the form owner/name, which can be downloaded without a search."""
    return _HUB_NAME.fullmatch(text) is not None


def local_path(text: str) -> str:
    """Returns `text` as an absolute path if it is written as a path, else the empty string.

    Paths are never sent to the hub. `owner/name` is a hub name, so a relative path begins with a dot.
    """
    text = text.strip().strip("\"'")
    if text.startswith("file:"):
        return url2pathname(urlsplit(text).path)
    if text.startswith(("/", "~", "./", "../", "\\")) or text in (".", "..") or _DRIVE.match(text):
        return os.path.abspath(os.path.expanduser(text))
    return ""


def family_colors(models: Sequence[ModelEntry]) -> dict[str, str]:
    """Returns a colour for each tokenizer family, in list order."""
    families = list(dict.fromkeys(entry.family for entry in models if entry.family))
    return {family: FAMILY_COLORS[at % len(FAMILY_COLORS)] for at, family in enumerate(families)}


def rows(state: ModelsState, context_tokens: int, wanted: str = "") -> tuple[ModelRow, ...]:
    """Returns the installed models whose names contain `wanted`, all downloads, what the hub has for it, and
    suggestions, each below a title. Memory is that for this context, or the model's own if that is shorter.
    """
    names, colors = names_of(state.models), family_colors(state.models)
    installed = [
        _installed(
            entry,
            names[entry.reference],
            colors.get(entry.family, FAMILY_COLORS[-1]),
            state,
            context_tokens,
        )
        for entry in state.models
        if _is_named(entry, wanted)
    ]
    suggested = suggestions(state, context_tokens, wanted)
    here = {*(entry.path for entry in state.models), *(row.id for row in suggested)}
    groups = {
        strings.ON_MACHINE: installed,
        strings.DOWNLOADS: [*map(_download, state.downloads)],
        strings.SEARCH_GROUP: [row for row in _on_the_hub(state, wanted) if row.id not in here],
        strings.suggested_for(state.limit_bytes): suggested,
    }
    return tuple(
        row for title, members in groups.items() if members for row in (ModelRow("", title), *members)
    )


def _is_named(entry: ModelEntry, wanted: str) -> bool:
    word = wanted.strip().lower()
    named = word in entry.name.lower() or word in entry.reference.lower()
    return named or local_path(wanted) == entry.path


def _download(told: DownloadProgress) -> ModelRow:
    owner, _, name = told.model.rpartition("/")
    arrived = strings.arrived(told.done_bytes, told.total_bytes) if told.total_bytes else ""
    runs = told.state == "running"
    pace = strings.pace(told.bytes_per_s, told.seconds_left) if told.bytes_per_s else strings.STARTING
    return ModelRow(
        told.model,
        name,
        strings.joined((strings.size(told.total_bytes) if told.total_bytes else "", owner)),
        memory=arrived,
        bar=told.done_bytes / told.total_bytes if told.total_bytes else 0.0,
        drafts=pace if runs else strings.PAUSED,
        problem=" ".join(filter(None, (told.problem, told.hint))) if told.state == "failed" else "",
        commands=("pause" if runs else "resume", "cancel"),
    )


def _on_the_hub(state: ModelsState, wanted: str) -> list[ModelRow]:
    """Returns a folder, a hub name or a search for the text `wanted`, or the results of that search."""
    text = wanted.strip()
    if path := local_path(text):
        return [ModelRow(path, path, strings.ON_DISK, commands=("add",))]
    if text and text != state.asked:
        if not is_hub_name(text):
            return [ModelRow(text, strings.ask_for(text), strings.NOT_ASKED, commands=("search",))]
        found: tuple[HubModel, ...] = (HubModel(text),)
    else:
        found = state.found if text else ()
    return [
        ModelRow(
            each.model,
            each.model,
            strings.joined((strings.downloads(each.downloads), strings.GATED if each.gated else "")),
            sees=strings.SEES if each.sees else "",
            commands=("get",),
        )
        for each in found
        if each.model not in state.taken
    ]


def suggestions(state: ModelsState, context_tokens: int, wanted: str = "") -> tuple[ModelRow, ...]:
    """Returns the best suggested downloads that fit, the best first.

    Only names that contain `wanted`; models that are installed or downloading are left out.
    """
    tokens = min(context_tokens, _SUGGESTED_CONTEXT_TOKENS)
    fitting = [
        (entry, fit)
        for entry in state.suggested
        if entry.reference not in state.taken
        and (fit := fit_facts(entry, tokens, state.limit_bytes, kv=state.kv))
        and fit.fit != "too-large"
    ]
    colors = family_colors(state.models)
    known = {entry.family_name: colors[entry.family] for entry in state.models if entry.family}
    return tuple(
        replace(
            _row(
                entry,
                entry.name,
                known.get(entry.family_name, FAMILY_COLORS[-1]),
                fit,
                strings.download_time(entry.disk_bytes),
            ),
            purpose=entry.good_at[:1].upper() + entry.good_at[1:],
            commands=("get",),
        )
        for entry, fit in fitting[:_SUGGESTED]
        if _is_named(entry, wanted)
    )


def fit_facts(
    entry: ModelEntry, context_tokens: int, limit_bytes: int, beside: int = 0, kv: KvCache = FULL_PRECISION
) -> FitFacts | None:
    """Returns the memory fit next to `beside` bytes in use; None if the need is unknown."""
    if not entry.need.weights or not limit_bytes:
        return None
    tokens = min(context_tokens, entry.context_tokens)
    need = entry.need.with_cache(kv).total_at(tokens) + beside
    return FitFacts(fit_of(need, limit_bytes), strings.spare(limit_bytes - need), need / limit_bytes)


def drafts(entry: ModelEntry, state: ModelsState, context_tokens: int) -> tuple[DraftFacts, ...]:
    """Returns all other models, possible draft models of `entry` first, the smallest of them at the top."""
    names = names_of(state.models)
    found = [
        _draft(each, names[each.reference], entry, state, context_tokens)
        for each in state.models
        if each is not entry
    ]
    sizes = {each.reference: each.parameters for each in state.models}
    return tuple(sorted(found, key=lambda each: (not each.usable, sizes[each.reference])))


def draft_of(entry: ModelEntry, state: ModelsState, chosen: str) -> ModelEntry | None:
    """Returns the model named by `chosen` (reference or folder) if it can draft for `entry`."""
    return next(
        (
            each
            for each in state.models
            if chosen
            and chosen in (each.reference, each.path)
            and each.family == entry.family
            and each is not entry
        ),
        None,
    )


def memory_parts(
    entry: ModelEntry,
    context_tokens: int,
    draft: ModelEntry | None = None,
    kv: KvCache = FULL_PRECISION,
) -> tuple[MemoryPart, ...]:
    """Returns the parts of the memory need, with what the first image adds. A draft model's cache keeps full
    precision.
    """
    tokens = min(context_tokens, entry.context_tokens)
    need = entry.need.with_cache(kv)
    bits = "" if need == entry.need else kv.bits
    parts = [
        MemoryPart(strings.WEIGHTS, "series_blue", need.weights),
        MemoryPart(strings.cache_at(tokens, bits), "series_sky", need.cache_at(tokens)),
    ]
    if draft:
        size = draft.need.weights + draft.need.cache_at(tokens)
        parts.append(MemoryPart(strings.DRAFT_MODEL, "series_purple", size))
    working = need.total_at(tokens) - need.weights - need.cache_at(tokens)
    parts.append(MemoryPart(strings.WORKING, "series_grey", working))
    if need.eyes:
        color = "series_blue" if draft else "series_purple"  # not the draft model's
        parts.append(MemoryPart(strings.EYES, color, need.eyes))
    return tuple(parts)


_ORIGINS = {
    "starter": strings.STARTER,
    "hub-cache": strings.OTHER_APP,
    "other-app": strings.OTHER_APP,
}


def _row(entry: ModelEntry, name: str, color: str, fit: FitFacts | None, last: str) -> ModelRow:
    unknown = "" if entry.problem else strings.UNKNOWN_FIT
    return ModelRow(
        entry.reference,
        name,
        strings.joined((strings.bits(entry.bits, entry.dtype), strings.size(entry.disk_bytes), last)),
        entry.family_name,
        color,
        f"{strings.FIT_WORDS[fit.fit]}, {fit.text}" if fit else unknown,
        fit,
        sees=strings.SEES if entry.sees else "",
    )


def _installed(entry: ModelEntry, name: str, color: str, state: ModelsState, context_tokens: int) -> ModelRow:
    last = strings.context(entry.context_tokens) if entry.context_tokens else ""
    fit = fit_facts(entry, context_tokens, state.limit_bytes, kv=state.kv)
    loadable, status = False, ""
    if state.loading and state.loading in (entry.reference, entry.path):
        status = strings.loading(state.fraction)
    elif state.loaded is entry:
        status = strings.RELEASED if state.released else strings.LOADED
    elif entry.problem:
        status = strings.UNUSABLE
    else:
        loadable = True
    return replace(
        _row(entry, name, color, fit, _ORIGINS.get(entry.source, "") or last),
        drafts=_draft_words(entry, state),
        status=status,
        problem=entry.problem,
        commands=("load",) if loadable else (),
    )


def _draft_words(entry: ModelEntry, state: ModelsState) -> str:
    kin = [
        each
        for each in state.models
        if each is not entry and entry.family and each.family == entry.family and not each.problem
    ]
    smaller = sorted((each for each in kin if each.parameters < entry.parameters), key=lambda e: e.parameters)
    if smaller:
        return ", ".join(each.name for each in smaller[:2])
    larger = sorted((each for each in kin if each.parameters > entry.parameters), key=lambda e: -e.parameters)
    return strings.drafts_for([each.name for each in larger[:1]]) if larger else strings.NO_DRAFTS


def _draft(
    other: ModelEntry, name: str, entry: ModelEntry, state: ModelsState, context_tokens: int
) -> DraftFacts:
    usable, why = True, strings.SAME_TOKENIZER
    tokens = min(context_tokens, entry.context_tokens)
    beside = other.need.weights + other.need.cache_at(tokens)
    fit = fit_facts(entry, context_tokens, state.limit_bytes, beside, state.kv)
    if other.problem:
        usable, why = False, other.problem
    elif not other.family or not entry.family:
        usable, why = False, strings.NOT_KNOWN
    elif other.family != entry.family:
        usable, why = False, strings.DIFFERENT
    elif fit is not None and fit.fit == "too-large":
        usable, why = False, strings.TOO_LARGE_BESIDE
    elif other.parameters >= entry.parameters:
        why = strings.NOT_SMALLER
    elif other.parameters > _SLOW_SHARE * entry.parameters:
        why = strings.SLOW
    return DraftFacts(other.reference, name, why, strings.size(other.disk_bytes), usable)


def names_of(models: Sequence[ModelEntry]) -> dict[str, str]:
    """Returns the displayed name by reference; equal names get a distinguishing suffix.

    The first of these that distinguishes all: precision, size on disk, folder.
    """
    named: dict[str, list[ModelEntry]] = {}
    for entry in models:
        named.setdefault(entry.name.casefold(), []).append(entry)
    marks = {entry.reference: mark for alike in named.values() for entry, mark in zip(alike, _marks(alike))}
    ends = {reference: f" ({mark})" if mark else "" for reference, mark in marks.items()}
    return {entry.reference: entry.name + ends[entry.reference] for entry in models}


def _marks(alike: Sequence[ModelEntry]) -> list[str]:
    """Returns distinct suffixes; an empty one for a single model."""
    if len(alike) == 1:
        return [""]
    precisions = [strings.bits(entry.bits, entry.dtype) for entry in alike]
    sizes = [strings.size(entry.disk_bytes) for entry in alike]
    return next((marks for marks in (precisions, sizes) if _all_differ(marks)), _places(alike))


def _places(alike: Sequence[ModelEntry]) -> list[str]:
    """Returns the folder names, the hub names' owners, or as many parent folders as necessary."""
    parts = [entry.reference.replace("\\", "/").strip("/").split("/") for entry in alike]
    own = [each[-1] if os.path.isabs(entry.reference) else each[0] for entry, each in zip(alike, parts)]
    if _all_differ(own):
        return own
    for depth in range(1, max(map(len, parts))):
        places = ["/".join(each[:-1][-depth:] or each) for each in parts]
        if _all_differ(places):
            return places
    return [entry.reference for entry in alike]


def _all_differ(marks: Sequence[str]) -> bool:
    return all(marks) and len(set(marks)) == len(marks)
