"""Jupyter notebooks (.ipynb) to Markdown: text cells as they are, code and text output as fenced code. Pure.

Pictures and other rich output are left out; their plain text is kept where the notebook has one.
"""

from __future__ import annotations

import json
import re
from typing import Any

from core.documents.limits import Gathered

_ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FENCES = re.compile(r"^ {0,3}(`{3,})", re.MULTILINE)


def notebook_text(source: str, gathered: Gathered) -> str | None:
    """The cells in order; None if `source` is not a notebook of version 4. Raises `TooLongError`."""
    try:
        book = json.loads(source)
    except (ValueError, RecursionError):
        return None
    cells = book.get("cells") if isinstance(book, dict) else None
    if not isinstance(cells, list) or not all(isinstance(cell, dict) for cell in cells):
        return None
    language = _language(book.get("metadata"))
    for cell in cells:
        text = _text(cell.get("source")).strip("\n")
        is_code = cell.get("cell_type") == "code"
        if text.strip():
            gathered.add(f"{_fenced(text, language) if is_code else text}\n\n")
        outputs = cell.get("outputs") if is_code else None
        for output in outputs if isinstance(outputs, list) else ():
            if shown := _output(output).strip("\n"):
                gathered.add(f"{_fenced(shown, '')}\n\n")
    return gathered.text().strip("\n")


def _language(metadata: Any) -> str:
    about = metadata.get("language_info") if isinstance(metadata, dict) else None
    name = about.get("name") if isinstance(about, dict) else None
    return name if isinstance(name, str) and name.isalnum() else "python"


def _output(output: Any) -> str:
    """An output's text: what was printed, a result's plain text, or an error's last line."""
    if not isinstance(output, dict):
        return ""
    data = output.get("data")
    if isinstance(data, dict):
        return _ESCAPES.sub("", _text(data.get("text/plain")))
    if output.get("output_type") == "error":
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    return _ESCAPES.sub("", _text(output.get("text")))


def _text(value: Any) -> str:
    """A text, which a notebook may have as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _fenced(text: str, language: str) -> str:
    longest = max((len(found[1]) for found in _FENCES.finditer(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text}\n{fence}"
