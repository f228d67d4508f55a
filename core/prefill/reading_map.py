"""The reading map as data: what was chosen, and where in which document it stands. Pure."""

from __future__ import annotations

import numpy as np

from core.events import Passage
from core.prefill.layout import Layout
from core.prefill.select import Selection


def passages(selection: Selection, layout: Layout) -> tuple[Passage, ...]:
    """The selection's passages; each in the document that most of its tokens belong to."""
    return tuple(
        _passage(int(start), int(end), bool(kept), float(score), layout)
        for start, end, kept, score in zip(selection.starts, selection.ends, selection.kept, selection.scores)
    )


def _passage(start: int, end: int, kept: bool, score: float, layout: Layout) -> Passage:
    sources = layout.source[start:end]
    documents = sources[sources >= 0]
    if not len(documents):
        return Passage(start, end, kept, round(score, 4))
    source = int(np.bincount(documents).argmax())
    inside = start + np.flatnonzero(sources == source)
    first, last = int(layout.first_char[inside].min()), int(layout.last_char[inside].max())
    return Passage(start, end, kept, round(score, 4), source, first, last)
