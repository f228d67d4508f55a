"""Results folder: what every bench leaves in `--out`: `results.json` for programs, `report.md` for people."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct


def write_results(folder: Path, results: Struct, report: str) -> None:
    """Write both, in place of earlier ones."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "results.json").write_bytes(msgspec.json.format(msgspec.json.encode(results)))
    (folder / "report.md").write_text(report, encoding="utf-8")
