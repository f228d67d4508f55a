"""The bounds that a reader sets itself, on systems that set none for it."""

from __future__ import annotations

import threading

from core.documents.child import held_bytes, watch


def test_memory_beyond_the_bound_is_noticed() -> None:
    noticed = threading.Event()
    watcher = watch(held_bytes() + 50_000_000, noticed.set)
    assert not noticed.wait(0.2)
    much = b"x" * 120_000_000
    assert noticed.wait(5)
    assert much
    watcher.join(5)
