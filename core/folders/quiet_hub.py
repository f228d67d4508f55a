"""Switches off what the hub's client reports of itself."""

from __future__ import annotations

import os


def hush_hub() -> None:
    """Disables the hub client's telemetry. Call it before the client's first import."""
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")
