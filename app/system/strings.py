"""What the system is told, and may show, about what Draftlight is doing."""

from __future__ import annotations

ANSWERING = "Draftlight is answering"
