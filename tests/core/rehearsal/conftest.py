"""A toy model, loaded as any other."""

from __future__ import annotations

from pathlib import Path

import pytest

from core.models.loader import LoadedModel, load
from tests.core.toy import write_toy_model


@pytest.fixture(scope="session")
def toy(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder: Path = tmp_path_factory.mktemp("toy") / "toy"
    write_toy_model(folder)
    return load(str(folder))
