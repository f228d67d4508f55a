"""Columns: where the parts of a row stand, the same for the header and for every kind of row.

Where there is no room for all of them, the least needed go first: which models draft, then the
tokenizer's family. The detail says both.
"""

from __future__ import annotations

from msgspec import Struct
from PySide6.QtCore import QRectF

ROW_PX = 52
HEADER_PX = 28
INSET_PX = 8
PADDING_PX = 12
_NAME_PX, _FAMILY_PX, _FIT_PX, _ACTION_PX = 246, 92, 176, 96
_LEAST_NAME_PX, _LEAST_DRAFTS_PX = 200, 150
# The name, how it fits, what can be done: less is no list.
LEAST_WIDTH_PX = 2 * (INSET_PX + PADDING_PX) + _LEAST_NAME_PX + _FIT_PX + _ACTION_PX


class Columns(Struct, frozen=True):
    """Boxes at full height in design pixels; None: no room. The action's begins where all others end."""

    name: QRectF
    family: QRectF | None
    fit: QRectF
    drafts: QRectF | None
    action: QRectF


def columns(width_px: float) -> Columns:
    """Model, tokenizer, memory fit, draft model and action in a row of that width."""
    left = float(INSET_PX + PADDING_PX)
    room = max(0.0, width_px - 2 * left)
    others = float(_FIT_PX + _ACTION_PX)
    family_px = drafts_px = 0.0
    if room >= _LEAST_NAME_PX + others + _FAMILY_PX:
        family_px = float(_FAMILY_PX)
    if room >= _LEAST_NAME_PX + others + family_px + _LEAST_DRAFTS_PX:
        drafts_px = max(float(_LEAST_DRAFTS_PX), room - _NAME_PX - others - family_px)
    name_px = max(0.0, room - others - family_px - drafts_px)
    boxes: list[QRectF] = []
    for width in (name_px, family_px, float(_FIT_PX), drafts_px, float(_ACTION_PX)):
        boxes.append(QRectF(left, 0, width, ROW_PX))
        left += width
    name, family, fit, drafts, action = boxes
    return Columns(name, family if family_px else None, fit, drafts if drafts_px else None, action)
