"""Prepares the process for MLX. Call it before anything imports mlx, at every entry point."""

from __future__ import annotations

import os

from core.errors import RequestError
from core.models.runtime.blas import load_openblas, uses_slow_blas
from core.models.runtime.import_index import use_index


class NotPreparedError(RequestError):
    """MLX was imported before `prepare()` was called."""

    code = "not-prepared"


def hush_hub() -> None:
    """Let the hub's client send what is asked and nothing about this machine. Before its first import."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")


def prepare() -> str:
    """Load a fast BLAS, quiet the tokenizer library and hasten its import; returns the BLAS's name.

    Raises `MissingLibraryError` naming the package to install.
    """
    # The tokenizer library warns about forks it will never see, and talks to no hub unasked.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    hush_hub()
    use_index()
    return load_openblas()


def check_prepared() -> None:
    """Raises `NotPreparedError` where MLX computes without the fast BLAS, so that answers take minutes."""
    if uses_slow_blas():
        raise NotPreparedError(
            "MLX was imported before its fast BLAS was loaded, which cannot be done afterwards.",
            "Call core.models.runtime.runtime.prepare() before core.engine.engine or mlx is imported, or use"
            " core.python.open_engine().",
        )
