"""The texts of setting fields."""

from __future__ import annotations

SHUFFLE = "Shuffle: draw another seed"
