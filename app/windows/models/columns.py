"""Columns: where the parts of a row stand, the same for the header and for every kind of row."""

from __future__ import annotations

from itertools import pairwise

from PySide6.QtCore import QRectF

ROW_PX = 52
HEADER_PX = 28
INSET_PX = 8
PADDING_PX = 12
_NAME_PX, _FAMILY_PX, _FIT_PX, _ACTION_PX = 246, 92, 176, 96


def columns(width_px: float) -> tuple[QRectF, QRectF, QRectF, QRectF, QRectF]:
    """Model, tokenizer, memory fit, draft model and action in a row of that width, at full height."""
    left = float(INSET_PX + PADDING_PX)
    right = max(left, width_px - left)
    family = left + _NAME_PX
    fit = family + _FAMILY_PX
    drafts = fit + _FIT_PX
    action = max(drafts, right - _ACTION_PX)
    edges = (left, family, fit, drafts, action, max(action, right))
    boxes = [QRectF(start, 0, end - start, ROW_PX) for start, end in pairwise(edges)]
    return boxes[0], boxes[1], boxes[2], boxes[3], boxes[4]
