"""The Linux output's launcher, compiled and run over a tree of its own, where Python's headers are."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bundle.linux import TEMPLATE
from bundle.project import PYTHON

CONFIG = Path(f"/usr/bin/python{PYTHON}-config")
SOURCE = TEMPLATE / "{{ cookiecutter.format }}" / "bootstrap" / "main.c"
pytestmark = pytest.mark.skipif(
    not (CONFIG.exists() and shutil.which("gcc")), reason=f"needs gcc and python{PYTHON}-dev"
)
MAIN = """\
import json, sys, helper
print(json.dumps([sys.executable, sys.argv[1:], sys.flags.isolated, helper.word, sys.path]))
sys.exit(7)
"""


def flags(kind: str) -> list[str]:
    done = subprocess.run([CONFIG, kind, "--embed"], capture_output=True, text=True, check=True)
    return done.stdout.split()


@pytest.fixture
def usr(tmp_path: Path) -> Path:
    """`usr` of an app that says what it was started with, in a folder with a space in its name."""
    folder = tmp_path / "an image" / "usr"
    inside = folder / "lib" / "draftlight"
    for place in (folder / "bin", inside / "app" / "draftlight", inside / "app_packages" / "more"):
        place.mkdir(parents=True)
    (inside / "app" / "draftlight" / "__main__.py").write_text(MAIN)
    (inside / "app_packages" / "more.pth").write_text("more\n")
    (inside / "app_packages" / "more" / "helper.py").write_text("word = 'found through a .pth file'\n")
    source = tmp_path / "main.c"
    source.write_text(
        re.sub(
            r"\{\{ cookiecutter\.(\w+)(\|py_tag)? \}\}",
            lambda found: PYTHON if found[2] else "draftlight",
            SOURCE.read_text("utf-8"),
        )
    )
    out = folder / "bin" / "draftlight"
    warnings = ["-Wall", "-Wextra", "-Werror"]
    subprocess.run(
        ["gcc", *warnings, "-fPIE", "-o", out, source, *flags("--cflags"), *flags("--ldflags")], check=True
    )
    return folder


def test_it_runs_the_app_isolated_as_its_own_interpreter(usr: Path, tmp_path: Path) -> None:
    before = sorted(usr.rglob("*"))
    environment = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": "/nowhere", "PATH": "/usr/bin:/bin"}
    own = usr / "bin" / "draftlight"
    done = subprocess.run(
        [own, "--worker", "-c", "two words"], capture_output=True, text=True, env=environment, cwd="/"
    )
    assert done.returncode == 7, done.stderr
    executable, arguments, isolated, word, path = json.loads(done.stdout)
    assert executable == str(own)
    assert arguments == ["--worker", "-c", "two words"]
    assert isolated
    assert word == "found through a .pth file"
    assert str(tmp_path) not in path
    assert sorted(usr.rglob("*")) == before
