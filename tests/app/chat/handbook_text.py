"""The handbook that comes along is made of the docs: `python -m tests.app.chat.handbook_text`."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
FILE = ROOT / "resources" / "first-page" / "handbook.md"
_CHAPTERS = ("drafting", "sparse-prefill", "tables", "numerics", "glossary")


def handbook_text() -> str:
    """The chapters one after the other; links that lead nowhere from here are words."""
    texts = [(ROOT / "docs" / f"{name}.md").read_text("utf-8").strip() for name in _CHAPTERS]
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", "\n\n".join(texts)) + "\n"


if __name__ == "__main__":
    FILE.write_text(handbook_text(), "utf-8")
