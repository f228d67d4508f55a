"""Who loads what: the window no MLX, the engine no Qt; and importing prints nothing."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from importlib.util import find_spec

import pytest


def modules(package: str) -> list[str]:
    module = __import__(package)
    return [package, *(info.name for info in pkgutil.walk_packages(module.__path__, f"{package}."))]


def loaded_after_importing(names: list[str]) -> set[str]:
    code = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        "print('\\0', *sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    printed, _, loaded = done.stdout.partition("\0")
    assert (printed, done.stderr) == ("", "")
    return set(loaded.split())


MACHINERY = {"mlx", "mlx.core", "mlx_lm", "numpy", "transformers"}
QT = {"PySide6", "qasync"}


@pytest.mark.sweep
def test_importing_the_window_loads_no_mlx() -> None:
    loaded = loaded_after_importing(modules("app"))
    assert "app.main" in loaded
    assert not MACHINERY & loaded


# What only chats with sources, documents, images or tools need. An import of these takes up to 0.1 s.
LATER = (
    "core.origins.", "core.documents.parts", "core.documents.writer", "core.documents.opendocument",
    "core.documents.number_formats", "core.tools.", "app.chat.tools.card", "app.chat.tools.arguments",
    "app.features.tools", "app.features.images.viewer", "keyring", "mcp", "PIL", "xml.etree",
)  # fmt: skip
AT_ONCE = {"core.origins.types", "core.origins.copied", "core.tools.messages"}


def test_a_start_loads_nothing_that_waits_for_a_document_or_a_tool() -> None:
    loaded = loaded_after_importing(["app.shell.window"])
    assert loaded >= AT_ONCE
    assert {name for name in loaded if name.startswith(LATER)} == AT_ONCE


@pytest.mark.sweep
def test_importing_the_engine_loads_no_qt() -> None:
    loaded = loaded_after_importing(modules("core"))
    assert "core.engine.engine" in loaded
    assert not (QT | {"app"}) & loaded


@pytest.mark.parametrize(
    "name", ["core.events", "core.errors", "core.settings", "core.worker.client", "core.cli.command_line"]
)
def test_the_words_load_no_machinery(name: str) -> None:
    assert not MACHINERY & loaded_after_importing([name])


def test_modules_that_must_not_be_loaded_exist() -> None:
    """The tests above could not fail for the name of a module that was moved."""
    names = {name.rstrip(".") for name in LATER} | AT_ONCE | MACHINERY | QT
    assert sorted(name for name in names if find_spec(name) is None) == []
