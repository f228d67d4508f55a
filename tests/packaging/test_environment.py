"""`make setup`: which machines it refuses, and that an interrupted or moved environment is repaired."""

from __future__ import annotations

import importlib.util
import io
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType

import pytest

from bundle.project import MINIMUM_MACOS, PACKAGING, ROOT

SCRIPT = PACKAGING / "environment.py"
BACKEND = """
import zipfile
def build_editable(folder, config_settings=None, metadata_directory=None):
    name = "small-1.0-py3-none-any.whl"
    with zipfile.ZipFile(folder + "/" + name, "w") as wheel:
        info = "small-1.0.dist-info/"
        wheel.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: small\\nVersion: 1.0\\n")
        wheel.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
        wheel.writestr(info + "entry_points.txt", "[console_scripts]\\nsmall = site:main\\n")
        wheel.writestr(info + "RECORD", "")
    return name
"""


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("environment", SCRIPT)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ENVIRONMENT = script()


@pytest.mark.parametrize(
    ("system", "machine", "release"),
    [
        ("Linux", "x86_64", "2.36"),
        ("Linux", "x86_64", "2.35"),
        ("Linux", "x86_64", "3.0"),
        ("Darwin", "arm64", "15.0.1"),
        ("Darwin", "arm64", "26.1"),
        ("Darwin", "arm64", "10.16"),
    ],
)
def test_supported_machines(system: str, machine: str, release: str) -> None:
    assert ENVIRONMENT.unsupported(system, machine, release) == ""


@pytest.mark.parametrize(
    ("system", "machine", "release", "named"),
    [
        ("Linux", "aarch64", "2.36", "aarch64"),
        ("Linux", "i686", "2.36", "i686"),
        ("Linux", "riscv64", "2.40", "riscv64"),
        ("Linux", "x86_64", "2.31", "glibc 2.31"),
        ("Linux", "x86_64", "", "no glibc"),
        ("Darwin", "x86_64", "15.1", "x86_64"),
        ("Darwin", "arm64", "14.7.1", "macOS 14.7.1"),
        ("FreeBSD", "amd64", "", "FreeBSD"),
        ("", "", "", "unknown"),
    ],
)
def test_other_machines_are_refused_in_one_line(system: str, machine: str, release: str, named: str) -> None:
    said = ENVIRONMENT.unsupported(system, machine, release)
    assert named in said
    assert "Apple silicon" in said
    assert "x86-64 Linux" in said
    assert "\n" not in said


@pytest.mark.skipif(not shutil.which("setarch"), reason="needs setarch")
def test_make_refuses_another_processor_before_it_installs_anything(tmp_path: Path) -> None:
    command = ["setarch", "i686", "make", "-C", str(ROOT), "setup", f"VENV={tmp_path / 'venv'}"]
    done = subprocess.run([*command, f"PYTHON={sys.executable}"], capture_output=True, text=True)
    assert done.returncode != 0
    assert "This is Linux on i686." in done.stderr
    assert len(done.stderr.splitlines()) <= 3
    assert not (tmp_path / "venv").exists()


@pytest.mark.parametrize(("version", "supported"), [((3, 10), False), ((3, 14), False), ((3, 12), True)])
def test_pythons(version: tuple[int, int], supported: bool) -> None:
    said = ENVIRONMENT.wrong_python(version)
    assert (said == "") is supported
    assert supported or f"is Python {version[0]}.{version[1]}" in said


def test_the_limits_are_those_of_the_project_and_of_its_wheels() -> None:
    allowed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    first, end = (int(minor) for minor in re.findall(r"3\.(\d+)", allowed))
    assert ((3, first), (3, end - 1)) == (ENVIRONMENT.OLDEST_PYTHON, ENVIRONMENT.NEWEST_PYTHON)
    assert f"{ENVIRONMENT.OLDEST_MACOS[0]}.{ENVIRONMENT.OLDEST_MACOS[1]}" == MINIMUM_MACOS
    readme = (ROOT / "README.md").read_text("utf-8")
    for limit in ("macOS 15", "glibc 2.35", "Python 3.11, 3.12 or 3.13"):
        assert limit in readme


@pytest.mark.skipif(sys.platform != "linux", reason="reads the tags of the Linux wheels")
def test_no_installed_wheel_needs_a_newer_glibc() -> None:
    for path in Path(sys.prefix).glob("lib/python*/site-packages/*.dist-info/WHEEL"):
        tags = re.findall(r"manylinux_(\d+)_(\d+)", path.read_text("utf-8"))
        oldest = min(((int(major), int(minor)) for major, minor in tags), default=(0, 0))
        assert oldest <= ENVIRONMENT.OLDEST_GLIBC, path


def test_a_stamp_holds_for_one_lock_and_one_folder(tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    assert ENVIRONMENT.read_stamp(one) == ""
    (one / ".installed").write_text(ENVIRONMENT.stamp_of(one))
    assert ENVIRONMENT.main(["--check", str(one)]) == 0
    one.rename(other)
    assert ENVIRONMENT.main(["--check", str(other)]) == 1
    (other / ".installed").write_text("")  # as earlier versions wrote it
    assert ENVIRONMENT.main(["--check", str(other)]) == 1


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with an empty lock, which the script sets up in a few seconds."""
    root = tmp_path / "a project with spaces, größer"
    (root / "packaging").mkdir(parents=True)
    shutil.copy(SCRIPT, root / "packaging")
    (root / "requirements.lock").write_text("")
    (root / "backend.py").write_text(BACKEND)
    (root / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    )
    return root


def set_up(root: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(root / "packaging" / "environment.py"), str(root / ".venv")]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def finish(run: subprocess.Popen[str]) -> str:
    said, _ = run.communicate(timeout=300)
    assert run.returncode == 0, said
    return said


def installed(root: Path) -> bool:
    """Whether pip works and the project's script starts from where it is."""
    python = root / ".venv" / "bin" / "python"
    works = subprocess.run([python, "-m", "pip", "show", "-q", "small"], capture_output=True).returncode == 0
    check = [python, root / "packaging" / "environment.py", "--check", root / ".venv"]
    shebang = (root / ".venv" / "bin" / "small").read_text("utf-8")
    return works and str(root) in shebang and subprocess.run(check).returncode == 0


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_a_killed_set_up_is_repaired_and_a_moved_one_made_again(project: Path) -> None:
    first = set_up(project)
    python = project / ".venv" / "bin" / "python"
    deadline = time.monotonic() + 60
    while not python.exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    first.send_signal(signal.SIGKILL)  # the interpreter is there, pip is not
    first.communicate()
    (project / ".venv" / "left").write_text("half")
    finish(set_up(project))
    assert installed(project)
    assert not (project / ".venv" / "left").exists()
    moved = project.with_name("moved")
    project.rename(moved)
    finish(set_up(moved))
    assert installed(moved)


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_two_at_once_wait_for_each_other_and_a_changed_lock_updates(project: Path) -> None:
    runs = [set_up(project), set_up(project)]
    said = [finish(run) for run in runs]
    assert sum("1 of 3: creating" in text for text in said) == 1
    assert sum("2 of 3: installing" in text for text in said) == 1
    assert sum("Waiting for another" in text for text in said) == 1
    assert installed(project)
    (project / ".venv" / "kept").write_text("not created again")
    (project / "requirements.lock").write_text("# changed\n")
    finish(set_up(project))
    assert installed(project)
    assert (project / ".venv" / "kept").exists()


@pytest.mark.sweep
@pytest.mark.timeout(900)
def test_an_environment_whose_interpreter_is_gone_is_made_again(project: Path) -> None:
    """As after an upgrade of the system's Python."""
    finish(set_up(project))
    broken = project / ".venv" / "bin" / "python"
    broken.unlink()
    broken.symlink_to("/nowhere/python3")
    finish(set_up(project))
    assert installed(project)


# What pip 25 prints, with warnings that nobody can act on.
PIP_SAYS = """\
WARNING: The directory '/root/.cache/pip' or its parent directory is not owned by the current user.
Ignoring appnope: markers 'sys_platform == "darwin"' don't match your environment
Collecting mlx==0.32.4 (from -r requirements.lock (line 1))
WARNING: Retrying (Retry(total=4)) after connection broken by 'ReadTimeoutError'
  Downloading mlx-0.32.4.whl (120.0 MB)
Requirement already satisfied: numpy==2.3.0 in ./lib (from -r requirements.lock (line 2)) (2.3.0)
Installing collected packages: mlx
WARNING: Running pip as the 'root' user can result in broken permissions
Successfully installed mlx-0.32.4
"""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("status", [0, 1])
@pytest.mark.parametrize("where", ["terminal", "pipe", "ci"])
def test_pip_shows_progress_in_a_terminal_and_its_warnings_only_if_it_fails(
    where: str, status: int, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    if where == "ci":
        monkeypatch.setenv("CI", "true")
    output = io.StringIO() if where == "pipe" else Terminal()
    command = [sys.executable, "-c", f"print({PIP_SAYS!r}, end=''); raise SystemExit({status})"]
    with pytest.raises(subprocess.CalledProcessError) if status else nullcontext():
        ENVIRONMENT.run_pip(command, 3, output)
    assert capfd.readouterr() == ("", PIP_SAYS if status else "")
    if where != "terminal":
        assert output.getvalue() == ""
        return
    shown = [line.strip() for line in output.getvalue().split("\r\x1b[K")]
    assert shown == [
        *("", "1 of 3: appnope", "2 of 3: mlx==0.32.4", "the package index does not answer; trying again"),
        *("3 of 3: numpy==2.3.0", "copying them into the environment", ""),
    ]


@pytest.mark.sweep
def test_each_step_is_named(project: Path) -> None:
    """Also where it takes minutes."""
    lines = finish(set_up(project)).splitlines()
    assert [line.partition(":")[0] for line in lines] == ["1 of 3", "2 of 3", "3 of 3"]
    assert installed(project)


def test_a_path_that_is_not_ascii_works_in_the_c_locale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkout = tmp_path / "Fünf Worte"
    environment = checkout / ".venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (packages,) = environment.glob("lib/*/site-packages")
    (packages / "_editable_impl_draftlight.pth").write_text(str(checkout), encoding="utf-8")
    (checkout / "marker.py").write_text("print('found')", encoding="utf-8")
    monkeypatch.setattr(ENVIRONMENT, "ROOT", str(checkout))
    ENVIRONMENT.make_path_relative(str(environment))
    done = subprocess.run(
        [str(environment / "bin" / "python"), "-c", "import marker"],
        env={"LC_ALL": "C"}, capture_output=True, text=True,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("found\n", "")
