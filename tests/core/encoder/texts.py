"""What tests of the encoder share: the encoder that ships, passages."""

from __future__ import annotations

from functools import cache

import numpy as np

from core.encoder.encoder import Encoder, open_encoder

SENTENCES = (
    "The cat sleeps on the warm windowsill.",
    "Sales in the third quarter grew by eight percent.",
    "The ferry does not leave while the gale warning lasts.",
    "Mix the flour with the butter before adding eggs.",
    "A patient with fever should drink plenty of water.",
    "The compiler reports an error for the missing semicolon.",
)


@cache
def shipped_encoder() -> Encoder:
    """The encoder that ships, opened once per process."""
    return open_encoder()


def passages_of(parts: tuple[str, ...]) -> tuple[str, np.ndarray]:
    """`parts` joined by spaces, and their character ranges, int32 [n, 2]."""
    ends = np.cumsum([len(part) + 1 for part in parts]) - 1
    begins = ends - [len(part) for part in parts]
    return " ".join(parts), np.stack([begins, ends], axis=1).astype(np.int32)
