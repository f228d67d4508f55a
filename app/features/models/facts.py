"""The facts of a model that rows and details show, as texts and shares. Pure; no Qt."""

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
from core.events import Fit, ModelEntry, fit_of
from core.settings.prefill import KvCache

Standing = Literal["loaded", "loading", "loadable", "unusable", "on-the-hub"]
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


class RowFacts(Struct, frozen=True):
    """One row. `fit` is None if memory is unknown or the model cannot be used."""

    reference: str
    name: str
    detail: str
    family: str
    family_color: str
    fit: FitFacts | None
    drafts: str
    standing: Standing
    state: str = ""
    problem: str = ""

    @property
    def spoken(self) -> str:
        """The row as one line for screen readers."""
        fit = f"{strings.FIT_WORDS[self.fit.fit]}, {self.fit.text}" if self.fit else ""
        parts = (self.name, self.detail, self.family, fit, self.drafts, self.state, self.problem)
        return ", ".join(part for part in parts if part)


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


def rows(state: ModelsState, context_tokens: int, wanted: str = "") -> tuple[RowFacts, ...]:
    """Returns the models whose names contain `wanted`, for this context or the model's own if shorter."""
    colors = family_colors(state.models)
    names = names_of(state.models)
    word = wanted.strip().lower()
    return tuple(
        _row(
            entry,
            names[entry.reference],
            state,
            context_tokens,
            colors.get(entry.family, FAMILY_COLORS[-1]),
        )
        for entry in state.models
        if word in entry.name.lower() or word in entry.reference.lower()
    )


def suggestions(state: ModelsState, context_tokens: int, wanted: str = "") -> tuple[RowFacts, ...]:
    """Returns the best suggested downloads that fit, the best first.

    Only names that contain `wanted`; models that are installed or downloading are left out.
    """
    word = wanted.strip().lower()
    taken = {entry.reference for entry in state.models} | {each.model for each in state.downloads}
    tokens = min(context_tokens, _SUGGESTED_CONTEXT_TOKENS)
    fitting = [
        entry
        for entry in state.suggested
        if entry.reference not in taken
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
                state,
                _SUGGESTED_CONTEXT_TOKENS,
                known.get(entry.family_name, FAMILY_COLORS[-1]),
            ),
            detail=strings.joined(
                (precision(entry), strings.size(entry.disk_bytes), strings.download_time(entry.disk_bytes))
            ),
            standing="on-the-hub",
            drafts=strings.good_at(entry.good_at),
        )
        for entry in fitting[:_SUGGESTED]
        if word in entry.name.lower() or word in entry.reference.lower()
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
    coming = [
        DraftFacts(
            each.model,
            each.model.rpartition("/")[2],
            strings.COMING.get(each.state, strings.STILL_COMING),
            strings.size(each.total_bytes),
            False,
        )
        for each in state.downloads
    ]
    return tuple(sorted(found, key=lambda each: (not each.usable, sizes[each.reference]))) + tuple(coming)


def draft_of(entry: ModelEntry, state: ModelsState, chosen: str) -> ModelEntry | None:
    """Returns the model named by `chosen` (reference, name or folder) if it can draft for `entry`."""
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
    """Returns the parts of the memory need. A draft model's cache keeps full precision."""
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
    return (*parts, MemoryPart(strings.WORKING, "series_grey", working))


def precision(entry: ModelEntry) -> str:
    """Returns the storage format of the weights."""
    return strings.bits(entry.bits, entry.dtype)


_ORIGINS = {
    "starter": strings.STARTER,
    "hub-cache": strings.OTHER_APP,
    "other-app": strings.OTHER_APP,
}


def _row(entry: ModelEntry, name: str, state: ModelsState, context_tokens: int, color: str) -> RowFacts:
    origin = _ORIGINS.get(entry.source, "")
    last = origin or (strings.context(entry.context_tokens) if entry.context_tokens else "")
    standing = _standing(entry, state)
    words = {
        "loaded": strings.RELEASED if state.released else strings.LOADED,
        "loading": strings.loading(state.fraction),
        "unusable": strings.UNUSABLE,
    }.get(standing, "")
    return RowFacts(
        entry.reference,
        name,
        strings.joined((precision(entry), strings.size(entry.disk_bytes), last)),
        entry.family_name,
        color,
        fit_facts(entry, context_tokens, state.limit_bytes, kv=state.kv),
        _draft_words(entry, state),
        standing,
        words,
        entry.problem,
    )


def _standing(entry: ModelEntry, state: ModelsState) -> Standing:
    if state.loading and state.loading in (entry.reference, entry.path):
        return "loading"
    if state.loaded is entry:
        return "loaded"
    return "unusable" if entry.problem else "loadable"


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
    elif other.parameters > entry.parameters:
        why = strings.LARGER
    elif other.parameters == entry.parameters:
        why = strings.AS_LARGE
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
    return {entry.reference: strings.told_apart(entry.name, marks[entry.reference]) for entry in models}


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
