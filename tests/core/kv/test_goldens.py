"""A saved chat has the header, the tensors and the token ids of the golden file, on every kind of cache."""

from __future__ import annotations

import json
import struct
from typing import Any

import numpy as np
import pytest

from tests.core import golden
from tests.core.kv.test_saved import ONE_OF_EACH, model_of


def masked(header: dict[str, Any]) -> dict[str, Any]:
    """Without versions and machine."""
    known = json.loads(header["__metadata__"]["draftlight"])
    for name in ("mlx", "mlx_lm", "device"):
        known["stamp"].pop(name)
    return {**header, "__metadata__": known}


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_saved_chat_is_that_of_the_golden_file(name: str) -> None:
    model = model_of(name)
    content = model.saved(model.sequence(sparse=name == "llama"))
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8 : 8 + length])
    known = masked(header)
    # Offsets begin after the header, whose length depends on versions and machine.
    lines = [f"{key}: {json.dumps(value)}" for key, value in known.items()]
    start, end = header["tokens"]["data_offsets"]
    ids = np.frombuffer(content[8 + length + start : 8 + length + end], np.uint32)
    golden.compare("files", {f"chat of {name}": [*lines, f"ids: {ids.tolist()}"]})
