"""The handbook: a real document to try a question on, our own words about how Draftlight works."""

from __future__ import annotations

from pathlib import Path

from app.chat.first_page import strings
from core.events import Attachment

_FILE = Path(__file__).resolve().parents[3] / "resources" / "first-page" / "handbook.md"


def handbook() -> Attachment:
    """About 6,000 tokens."""
    return Attachment(strings.HANDBOOK, _FILE.read_text("utf-8"))
