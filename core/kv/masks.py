"""masked: cache entries whose masks are given, for the length of one forward."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any


@contextmanager
def masked(masks: Sequence[tuple[Any, Callable[..., Any]]]) -> Iterator[None]:
    """While open, each entry's `make_mask` is the one beside it; afterwards what it was.

    An entry may come more than once. The entries are the objects they were, also after an
    exception. Worker's main thread.
    """
    entries = {id(entry): entry for entry, _ in masks}
    own = {key: vars(entry).get("make_mask") for key, entry in entries.items()}
    try:
        for entry, make_mask in masks:
            entry.make_mask = make_mask
        yield
    finally:
        for key, entry in entries.items():
            if own[key] is not None:
                entry.make_mask = own[key]
            else:
                vars(entry).pop("make_mask", None)
