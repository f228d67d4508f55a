"""The documented way into the engine from Python, and what happens on another one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def python(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )


def test_the_documented_example_runs(toy_folder: Path) -> None:
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 1
    done = python(blocks[0].replace('"starter"', repr(str(toy_folder))))
    assert done.returncode == 0, done.stderr
    assert re.search(r"\d+ tokens, \d+ of them drafted", done.stdout)


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform != "linux", reason="MLX has a fast BLAS of its own elsewhere")
@pytest.mark.parametrize("first", ["", "import mlx.core, core.models.runtime as r; r.prepare()\n"])
def test_an_engine_without_its_fast_blas_is_refused(first: str) -> None:
    done = python(f"{first}from core.engine.engine import Engine\nEngine()")
    assert done.returncode == 1
    assert "NotPreparedError: MLX was imported before its fast BLAS was loaded" in done.stderr
    assert "open_engine()" in done.stderr


def test_importing_it_loads_no_mlx() -> None:
    assert python("import core.python, sys; sys.exit('mlx.core' in sys.modules)").returncode == 0
