"""Reading on: what a context skipped and a later question makes relevant.

At each turn the new question scores all passages between the first and the last that were skipped. Those that
a fresh sparse reading would take for it and that were never read are newly relevant, the best first and not
more than a bound. How they come into the context is `core.prefill.reading`'s: inserted where they stand, or
quoted before the question. Scored by words (`core.prefill.scorers.lexical`), whatever scored at first: the
other scorers read, and what they would read is what is to be saved. Worker's main thread.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from core.kv.columns import Columns
from core.models.loader import LoadedModel
from core.prefill.layout import Layout
from core.prefill.plan import unclear
from core.prefill.read import Positions
from core.prefill.scorers.lexical import clearness, lexical_scores, rarest_shared_word
from core.prefill.select import Selection
from core.settings.prefill import Prefill

# Of the passages that a fresh reading would take: so many are read on in one turn.
_BOUND = 0.5
# Between quoted passages, in any language.
_LEFT_OUT = "\n[…]\n"
_AROUND_QUOTE_TOKENS = 8


class SkippedText(Struct, frozen=True):
    """All from the first skipped token to the last, as passages.

    `selection.kept` are those that were read, in part at least, or will be now, which `now` (bool) says;
    `chosen` (ascending) are the positions that will be; `ranked` all skipped ones, a passage an array, the
    best first.
    """

    selection: Selection
    now: np.ndarray[Any, Any]
    chosen: Positions
    ranked: list[Positions]


def skipped_text(
    loaded: LoadedModel,
    ids: Sequence[int],
    columns: Columns,
    layout: Layout,
    settings: Prefill,
    room_tokens: int,
) -> SkippedText | None:
    """What of the skipped text the question of `layout` makes relevant; None if nothing was skipped.

    `columns` say what of `ids` is held. No more is chosen than `room_tokens` take when it is quoted.
    """
    gaps = columns.gaps()
    if not len(gaps):
        return None
    start, end, passage = int(gaps[0]), int(gaps[-1]) + 1, settings.passage_tokens
    scores, stands_out = _scored(loaded, ids, start, end, layout, passage)
    skipped = np.zeros(end - start, dtype=np.bool_)
    skipped[gaps - start] = True
    firsts = np.arange(0, end - start, passage)
    lasts = np.minimum(firsts + passage, end - start)
    means = np.add.reduceat(scores, firsts) / (lasts - firsts)
    left = np.add.reduceat(skipped.astype(np.int32), firsts)
    best = np.argsort(-means, kind="stable")
    wanted = math.ceil(settings.keep_pct / 100 * len(skipped) / passage)
    most = min(math.ceil(_BOUND * wanted), max(0, room_tokens) // (passage + _AROUND_QUOTE_TOKENS))
    relevant = [at for at in best[:wanted] if left[at]][: most if stands_out else 0]
    now = np.zeros(len(firsts), dtype=np.bool_)
    now[relevant] = True

    def skipped_of(at: int) -> Positions:
        return np.asarray(start + firsts[at] + np.flatnonzero(skipped[firsts[at] : lasts[at]]), np.int32)

    chosen = [skipped_of(int(at)) for at in np.flatnonzero(now)]
    shown = (means / (means.max() or 1.0)).clip(0.0, 1.0).astype(np.float32)
    return SkippedText(
        Selection(firsts + start, lasts + start, (left < lasts - firsts) | now, shown),
        now,
        np.concatenate([np.empty(0, np.int32), *chosen]),
        [skipped_of(at) for at in best if left[at]],
    )


def excerpt(ids: Sequence[int], positions: Positions, loaded: LoadedModel) -> list[int]:
    """Token ids of a text that quotes the passages at `positions` of `ids`, with marked gaps.

    Control tokens without an embedding row are left out.
    """
    tokenizer = loaded.tokenizer
    runs = np.split(positions, np.flatnonzero(np.diff(positions) > 1) + 1)
    texts = (tokenizer.decode([ids[at] for at in run]).strip() for run in runs)
    quoted = f"{_LEFT_OUT}{_LEFT_OUT.join(texts)}{_LEFT_OUT}\n".lstrip("\n")
    found = tokenizer.encode(quoted, add_special_tokens=False)
    return [int(token) for token in found if token < loaded.info.vocabulary]


def _scored(
    loaded: LoadedModel, ids: Sequence[int], start: int, end: int, layout: Layout, passage: int
) -> tuple[np.ndarray[Any, Any], bool]:
    """float32 scores of the text from `start` to `end`, and whether anything in it stands out."""
    asking = end + np.flatnonzero(layout.question[end:])
    at = np.append(np.arange(start, end), asking)
    asks = np.append(np.zeros(end - start, dtype=np.bool_), np.ones(len(asking), dtype=np.bool_))
    pieces = loaded.tokenizer.convert_ids_to_tokens([ids[i] for i in at.tolist()])
    rarest = rarest_shared_word(pieces, asks, passage, loaded.word_rank)
    stands_out = not unclear(clearness(pieces, asks, passage), rarest)
    return lexical_scores(pieces, asks, passage)[: end - start], stands_out
