"""Every text of this folder that a person reads."""

from __future__ import annotations

SHUFFLE = "Shuffle: draw another seed"
