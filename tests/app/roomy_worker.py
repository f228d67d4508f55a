"""The real worker on a machine of 24 GB, whatever this one has: suggestions depend on the memory."""

from __future__ import annotations

import sys

from core.models import runtime

_prepare = runtime.prepare


def prepare() -> object:
    """Also sets the memory; MLX must be imported after the BLAS."""
    blas = _prepare()
    from core.models import memory

    memory.limit_bytes = lambda: 24 << 30
    return blas


if __name__ == "__main__":
    runtime.prepare = prepare  # type: ignore[assignment]
    from core.worker.main import main

    sys.exit(main())
