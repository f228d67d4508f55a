"""A folder of its own with the toy model in `toy`, or one that sees, and Draftlight's home beside it."""

from __future__ import annotations

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.attack.support.variables import variables


@contextlib.contextmanager
def toy_home(**changes: object) -> Iterator[Path]:
    """`changes` are of the model's config."""
    with _home() as folder:
        from tests.core.toy import write_toy_model

        write_toy_model(folder / "toy", **changes)
        yield folder


@contextlib.contextmanager
def seeing_home(context_tokens: int) -> Iterator[Path]:
    """With a model that sees, whose context has this length."""
    with _home() as folder:
        from tests.core.seeing import write_seeing_model

        write_seeing_model(folder / "toy")
        file = folder / "toy" / "config.json"
        config = json.loads(file.read_text())
        config["text_config"]["max_position_embeddings"] = context_tokens
        file.write_text(json.dumps(config))
        yield folder


@contextlib.contextmanager
def _home() -> Iterator[Path]:
    """Files that are only temporary are in the folder, too, so that those of others are not counted."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory(prefix="draftlight-attack-") as name:
        temporary = Path(name) / "temporary"
        temporary.mkdir()
        with variables(DRAFTLIGHT_HOME=str(Path(name) / "home"), TMPDIR=str(temporary)):
            tempfile.tempdir = str(temporary)
            try:
                yield Path(name)
            finally:
                tempfile.tempdir = before
