"""Children run our files alone, wherever the app was started, and mean the same paths."""

from __future__ import annotations

import asyncio
import os
import runpy
import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest
from huggingface_hub import constants

from app.features.lab import Plan
from core.events import Finished, Hello, LoadModel, ModelList, ModelLoaded
from core.events import ListModels as List
from core.events.codec import WorkerExited
from core.folders.starter import STARTER
from core.settings import Settings
from core.system.children import CHILD_FOLDER, absolute_reference, child_command, child_environment
from tests.core.worker.test_worker import ask, worker

# Runs the child as it is run, and says at its end which modules it had.
_TELLING = (
    "import atexit, runpy, sys\n"
    "target, sys.argv = sys.argv[1], sys.argv[2:]\n"
    "names = lambda: '\\n'.join(sorted({name.split('.')[0] for name in sys.modules}))\n"
    "atexit.register(lambda: open(target, 'w').write(names()))\n"
    "runpy.run_path(sys.argv[0], run_name='__main__')\n"
)


async def _answered(folder: Path, command: list[str] | None = None) -> None:
    async with worker(command=command) as talk:
        await talk.until(Hello)
        await talk.client.send(List("l"))
        await talk.until(ModelList)
        await talk.client.send(LoadModel(str(folder)))
        await talk.until(ModelLoaded)
        await talk.client.send(ask("r", **{"drafting.drafter": "auto"}))
        assert (await talk.until(Finished)).stats.tokens == 40
        await talk.client.stop(60)
        assert (await talk.until(WorkerExited)).returncode == 0


@pytest.fixture(scope="module")
def trap(toy_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a module for each top-level name that a worker imports; each leaves a mark."""
    told = tmp_path_factory.mktemp("told") / "names"
    python, *rest = child_command("--worker")
    script = rest.index(next(word for word in rest if word.endswith(".py")))
    command = [python, *rest[:script], "-c", _TELLING, str(told), *rest[script:]]
    asyncio.run(asyncio.wait_for(_answered(toy_folder, command), 120))
    names = [name for name in told.read_text().splitlines() if name.isidentifier()]
    assert {"core", "random", "json", "mlx", "mlx_lm", "numpy", "msgspec", "encodings"} <= set(names)
    assert len(names) > 150
    folder = tmp_path_factory.mktemp("trap")
    mark = f"open({str(folder / 'RUN')!r}, 'a').write(__name__ + '\\n')\n"
    for name in {*names, "app", "sitecustomize", "usercustomize", "huggingface_hub", "tqdm", "runpy"}:
        (folder / f"{name}.py").write_text(mark)
        (folder / name).mkdir()
        (folder / name / "__init__.py").write_text(mark)
    return folder


def _run_in(trap: Path) -> list[str]:
    """Which of its modules ran since this was asked last."""
    mark = trap / "RUN"
    ran = sorted(set(mark.read_text().splitlines())) if mark.exists() else []
    mark.unlink(missing_ok=True)
    return ran


@pytest.mark.sweep
def test_the_trap_catches_a_child_that_is_started_carelessly(trap: Path) -> None:
    subprocess.run([sys.executable, "-m", "core.cli", "--worker"], cwd=trap, stdin=subprocess.DEVNULL)
    assert _run_in(trap)


@pytest.mark.parametrize("searched", ["", os.pathsep, f"{os.pathsep}/no/such/folder"])
def test_a_worker_runs_nothing_of_the_current_folder(
    trap: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch, searched: str
) -> None:
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PYTHONPATH", searched)
    asyncio.run(asyncio.wait_for(_answered(toy_folder), 120))
    assert _run_in(trap) == []


@pytest.mark.sweep
def test_no_other_command_of_a_child_does(trap: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PYTHONPATH", os.pathsep)
    plan = Plan("nothing-here", "three-class", ("auto",), 1, 8, Settings())
    download = child_command("--download", "../no name")
    listening, held = os.pipe()  # both end when their parent is gone
    for command in (plan.command(trap / "out"), download):
        done = subprocess.run(
            command,
            env=child_environment(),
            cwd=CHILD_FOLDER,
            stdin=listening,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert done.returncode == 1, done.stderr
        assert "Traceback" not in done.stderr
    os.close(held)
    os.close(listening)
    assert _run_in(trap) == []


def test_neither_does_the_command_line(trap: Path) -> None:
    script = Path(sys.executable).with_name("draftlight")
    done = subprocess.run([str(script), "models", "list"], cwd=trap, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert _run_in(trap) == []


def test_a_child_is_of_the_same_files_as_its_parent(tmp_path: Path) -> None:
    """A checkout that is not the installed one starts children of its own."""
    code = (
        "import subprocess; from core.system.children import module_command, child_environment\n"
        "(print(subprocess.run(module_command('core.told'), env=child_environment(), cwd='/',"
        " capture_output=True, text=True).stdout))"
    )
    (tmp_path / "core" / "system").mkdir(parents=True)
    for name in ("__init__.py", "system/__init__.py", "system/children.py", "system/start_child.py"):
        (tmp_path / "core" / name).write_text((Path(__file__).parents[3] / "core" / name).read_text())
    (tmp_path / "core" / "told.py").write_text("import sys; print(__file__, sys.argv)")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert str(tmp_path / "core" / "told.py") in done.stdout, done


def _folders() -> list[str]:
    """The folders of huggingface_hub and for temporary files in this environment."""
    hub, temporary = runpy.run_path(constants.__file__), os.environ.get("TMPDIR") or "/tmp"
    return [*map(os.path.abspath, (hub["HF_HUB_CACHE"], hub["HF_TOKEN_PATH"], temporary))]


def test_paths_mean_the_same_in_a_child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAFTLIGHT_HOME", "home")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(["", "mine", "/lib/mine", ""]))
    environment = child_environment(EXTRA="1")
    assert environment["DRAFTLIGHT_HOME"] == str(tmp_path / "home")
    assert environment["HF_HOME"] == str(tmp_path / "hub")
    assert environment["PYTHONPATH"] == os.pathsep.join([str(tmp_path / "mine"), "/lib/mine"])
    assert environment["EXTRA"] == "1"
    names = ("XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_TOKEN_PATH", "TMPDIR")
    for name, value in product(names, ("here", "~/here", "$DRAFTLIGHT_HOME", "$NOWHERE", "~nobody/here", "")):
        with monkeypatch.context() as patched:
            patched.delenv("HF_HOME")
            patched.setenv(name, value)
            here, told = _folders(), child_environment()
            patched.setenv(name, told[name])
            patched.chdir("/")
            assert _folders() == here, (name, value)
    (tmp_path / "owner" / "model").mkdir(parents=True)
    (tmp_path / STARTER).mkdir()
    assert absolute_reference("owner/model") == str(tmp_path / "owner" / "model")
    for kept in ("", "starter", "owner/other", "nu\0ll", "x" * 5000, "~no-such-user/x"):
        assert absolute_reference(kept) == kept
