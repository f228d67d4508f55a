"""Importing the visual parts makes no application and loads nothing of the engine."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import importlib, pkgutil, sys
for package in ("app.theme", "app.controls", "app.gauges", "app.panels"):
    root = importlib.import_module(package)
    for module in pkgutil.iter_modules(root.__path__, package + "."):
        importlib.import_module(module.name)
from PySide6.QtCore import QCoreApplication
assert QCoreApplication.instance() is None
for name in ("mlx", "mlx_lm", "numpy", "core.engine.engine"):
    assert name not in sys.modules, name
print("quiet")
"""


def test_importing_does_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120)
    assert done.stderr == ""
    assert done.stdout.strip() == "quiet"
