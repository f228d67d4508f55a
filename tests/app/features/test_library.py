"""The library's rows in words and figures."""

from __future__ import annotations

from datetime import UTC, datetime

from app.features.library import rows_of
from app.session.documents import DocumentHit, KeptDocument

NOW = datetime(2026, 3, 4, 12, tzinfo=UTC)
LAST = datetime(2025, 11, 3, 12, tzinfo=UTC)
TIDES = KeptDocument("t", "Tides.md", "x", 12_900, LAST, NOW, {"smollm": 3_201})
FOG = KeptDocument("f", "Fog.md", "y", 1, LAST, LAST)


def _estimate(document: KeptDocument) -> int:
    return 8_765


def test_tokens_are_exact_where_this_tokenizer_counted() -> None:
    ours, fog = rows_of((TIDES, FOG), "smollm", NOW, _estimate)
    assert (ours.tokens, ours.passage, ours.added) == ("3,201", "12,900 characters", "3 Nov 2025")
    assert (fog.tokens, fog.passage) == ("~8,800", "1 character")
    assert rows_of((TIDES,), "qwen", NOW, _estimate)[0].tokens == "~3,200"
    assert ours.spoken.startswith("Tides.md, 3,201 tokens, added 3 Nov 2025, last used ")


def test_a_search_shows_its_hits_in_their_order_with_what_matched() -> None:
    hits = {
        "f": DocumentHit("f"),
        "t": DocumentHit("t", "the high tide", ((9, 13),)),
        "gone": DocumentHit("gone"),
    }
    rows = rows_of((TIDES, FOG), "smollm", NOW, _estimate, hits)
    assert [(row.id, row.passage, row.marks) for row in rows] == [
        ("f", "1 character", ()),
        ("t", "the high tide", ((9, 13),)),
    ]
