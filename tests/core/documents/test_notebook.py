"""Jupyter notebooks: cells and text output in order, no encoded pictures."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from core.documents.reading import document_text, quick_document

CELLS = [
    {"cell_type": "markdown", "source": ["# Harbour\n", "Lamps."]},
    {
        "cell_type": "code",
        "source": "print(2)\n'''\n```\n'''",
        "outputs": [
            {"output_type": "stream", "text": ["\x1b[31m2\x1b[0m\n"]},
            {"output_type": "display_data", "data": {"image/png": "iVBORw0KGgo", "text/plain": ["<Figure>"]}},
            {"output_type": "error", "ename": "ValueError", "evalue": "no", "traceback": ["long"]},
        ],
    },
    {"cell_type": "code", "source": [], "outputs": []},
]


def test_cells_and_their_text_output_are_kept_in_order(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    about = {"language_info": {"name": "python"}}
    path.write_text(json.dumps({"cells": CELLS, "metadata": about, "nbformat": 4}))
    assert quick_document(path) is None
    assert document_text(path) == (
        "# Harbour\nLamps.\n\n````python\nprint(2)\n'''\n```\n'''\n````\n\n```\n2\n```\n\n"
        "[picture]\n\n```\n<Figure>\n```\n\n```\nValueError: no\n```"
    )


def test_the_cells_of_version_3_are_in_worksheets(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "heading", "level": 2, "source": "Harbour"},
        {
            "cell_type": "code",
            "input": "1 + 1",
            "outputs": [
                {"output_type": "pyout", "text": ["2"]},
                {"output_type": "pyerr", "ename": "ValueError", "evalue": "no"},
            ],
        },
    ]
    path = tmp_path / "a.ipynb"
    path.write_text(json.dumps({"worksheets": [{"cells": cells}, {"cells": []}], "nbformat": 3}))
    assert document_text(path) == (
        "## Harbour\n\n```python\n1 + 1\n```\n\n```\n2\n```\n\n```\nValueError: no\n```"
    )


@pytest.mark.parametrize(
    "source",
    ["{", "[" * 100_000, "[1]", '{"cells": 1}', '{"worksheets": [{}]}', '{"cells": [1]}', "plain words"],
)
def test_what_is_no_notebook_stays_as_it_is(tmp_path: Path, source: str) -> None:
    path = tmp_path / "a.ipynb"
    path.write_text(source)
    assert document_text(path) == source


def test_parts_of_another_type_are_skipped(tmp_path: Path) -> None:
    path = tmp_path / "a.ipynb"
    cells = [{"cell_type": "code", "source": {"x": 1}, "outputs": [1, {"text": [2, "two"]}]}]
    path.write_text(json.dumps({"cells": cells, "metadata": 3}))
    assert document_text(path) == "```\ntwo\n```"
