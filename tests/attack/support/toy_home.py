"""A folder of its own with the toy model in `toy`, and Draftlight's home beside it."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.attack.support.variables import variables


@contextlib.contextmanager
def toy_home(**changes: object) -> Iterator[Path]:
    """`changes` are of the model's config."""
    with (
        tempfile.TemporaryDirectory(prefix="draftlight-attack-") as name,
        variables(DRAFTLIGHT_HOME=str(Path(name) / "home")),
    ):
        from tests.core.toy import write_toy_model

        write_toy_model(Path(name) / "toy", **changes)
        yield Path(name)
