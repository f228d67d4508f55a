"""Shared by all tests: MLX is prepared before anything imports it, nothing touches the user's folders, and
every SQLite connection is closed."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sqlite3
import sys
import tempfile
import traceback
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from itertools import combinations, compress
from pathlib import Path
from typing import Any

import pytest
from _pytest.mark.expression import Expression
from hypothesis import HealthCheck, settings

from tests import forks
from tests.thinned import OPTIONAL, asked

# How long an example takes to make or to test says more about the machine than about the code.
settings.register_profile("draftlight", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("draftlight")

# A shell that runs the tests in the background has them ignore Ctrl-C, and all that they start, too.
signal.signal(signal.SIGINT, signal.default_int_handler)
# MLX on a processor hands each operation from Python's thread to its own. On one core that takes two
# thirds of what it takes across two, so processes of tests that run side by side stay on one each.
if (_process := os.environ.get("PYTEST_XDIST_WORKER")) and sys.platform == "linux":
    _cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {_cores[int(_process.removeprefix("gw")) % len(_cores)]})
# Where g++ is installed, MLX on a processor compiles each fused operation with it: 1.5 s of CPU time for each
# of over a hundred, anew on a machine with an empty /tmp. Sweeps and other optional tests keep that.
os.environ.setdefault("MLX_DISABLE_COMPILE", "1")
_home = tempfile.TemporaryDirectory(prefix="draftlight-tests-")
_first_home = os.environ.get("DRAFTLIGHT_HOME", "")
os.environ["DRAFTLIGHT_HOME"] = _home.name


def _offscreen_platform() -> str:
    """Qt's offscreen platform with a wide screen: its own has 800 pixels, and windows fit their screen.

    Qt splits the setting at colons and reads the path as Latin-1, so the file is copied to a plain path.
    """
    screen = Path(__file__).with_name("screen.json")
    copies = (Path(folder) / "draftlight-tests-screen.json" for folder in (_home.name, "/tmp"))
    for path in (screen, *copies):
        if str(path).isascii() and ":" not in str(path):
            if path != screen:
                shutil.copyfile(screen, path)
            return f"offscreen:configfile={path}"
    return "offscreen"


if os.environ.setdefault("QT_QPA_PLATFORM", "offscreen") == "offscreen":
    os.environ["QT_QPA_PLATFORM"] = _offscreen_platform()

from core.models.runtime import index_file, prepare  # noqa: E402

# The process that starts the others has made the index of transformers' modules.
if _process and (_index := Path(_first_home, "cache", index_file().name)).exists():
    index_file().parent.mkdir(parents=True)
    shutil.copy2(_index, index_file())
prepare()
forks.install()

# What waits most comes first, and what computes most next: side by side they fill the cores, and none of
# them is left over at the end, alone.
_FIRST = ("core/worker", "app/journeys", "core/engine", "app/launch", "core/decoding", "core/bench")


def pytest_collection(session: pytest.Session) -> None:
    """Processes of xdist that collect all tests import a share of the modules first, each another one.

    In the same order, each of them would compile all modules of a fresh clone: 9 s of CPU time.
    """
    tests = Path(__file__).parent
    if not _process or [Path(each).absolute() for each in session.config.args] != [tests]:
        return
    number, count = int(_process.removeprefix("gw")), int(os.environ["PYTEST_XDIST_WORKER_COUNT"])
    tools = [tests.parent / folder for folder in session.config.getini("norecursedirs") if "/" in folder]
    paths = (path for path in tests.rglob("test_*.py") if not any(map(path.is_relative_to, tools)))
    for path in sorted(paths)[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # reported when it is collected
            import_module(".".join(path.relative_to(tests.parent).with_suffix("").parts))


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay, out of every later collection of garbage."""
    gc.collect()
    gc.freeze()


def pytest_configure(config: pytest.Config) -> None:
    """Find which sets of optional marks a test can have that `-m` selects."""
    selects = Expression.compile(config.option.markexpr or "True").evaluate
    for marks in (set(each) for size in range(1, 4) for each in combinations(OPTIONAL, size)):
        if selects(lambda name, /, *, marks=marks, **_: name in marks):
            asked.append(marks)
    if asked and os.environ.pop("MLX_DISABLE_COMPILE", ""):
        mx.enable_compile()


def pytest_pycollect_makeitem(name: str, obj: object) -> list[pytest.Item] | None:
    """Make no items of optional tests and parameters that `-m` would deselect again."""
    marks: list[pytest.Mark] = getattr(obj, "pytestmark", []) if name.startswith("test") else []
    if _is_left_out(marks):
        return []
    for number, mark in enumerate(marks):
        if mark.name != "parametrize" or len(mark.args) < 2:
            continue
        names, given, *others = mark.args
        values = list(given)
        wanted = [not _is_left_out(getattr(value, "marks", ())) for value in values]
        if not all(wanted) or not isinstance(given, Sequence):  # an iterator is used up now
            options = dict(mark.kwargs)
            if isinstance(options.get("ids"), list | tuple):
                options["ids"] = list(compress(options["ids"], wanted))
            values = list(compress(values, wanted))
            marks[number] = pytest.mark.parametrize(names, values, *others, **options).mark
            if not values:
                return []
    return None


def _is_left_out(marks: Collection[pytest.Mark]) -> bool:
    names = OPTIONAL.intersection(mark.name for mark in marks)
    return bool(names) and not any(names <= each for each in asked)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Order the rooms; inside them nothing moves."""
    tests = Path(__file__).parent

    @cache
    def place(path: Path) -> int:
        rooms = [number for number, room in enumerate(_FIRST) if path.is_relative_to(tests / room)]
        return rooms[0] if rooms else len(_FIRST)

    items.sort(key=lambda item: place(item.path))


def pytest_runtest_teardown() -> None:
    """Where an application was made, Python collects nothing by itself, and most tests run no event loop."""
    if not gc.isenabled():
        from app.launch.application import collect_if_due

        collect_if_due()


_connect = sqlite3.connect
# Connections that were opened and not seen closed, each with the stack of the call that opened it. The list
# keeps them: one that is dropped without being closed is found, too, and Python before 3.13 does not warn.
_connections: list[tuple[sqlite3.Connection, traceback.StackSummary]] = []


def _recorded_connect(*arguments: Any, **options: Any) -> sqlite3.Connection:
    connection = _connect(*arguments, **options)
    frames = traceback.walk_stack(sys._getframe(1))
    stack = traceback.StackSummary.extract(frames, limit=8, lookup_lines=False)
    _connections.append((connection, stack))
    return connection


sqlite3.connect = _recorded_connect


def _is_open(connection: sqlite3.Connection) -> bool:
    try:
        return connection.total_changes >= 0
    except sqlite3.ProgrammingError:
        return False


def _closes_its_connections() -> Iterator[None]:
    before = {id(connection) for connection, _ in _connections}
    yield
    _connections[:] = [each for each in _connections if _is_open(each[0])]
    left = [each for each in _connections if id(each[0]) not in before]
    _connections[:] = [each for each in _connections if id(each[0]) in before]
    for connection, _ in left:
        with suppress(sqlite3.ProgrammingError):  # only its own thread may close it
            connection.close()
    assert not left, "SQLite connections were not closed. They were opened at:\n" + "\n".join(
        "".join(stack.format()) for _, stack in left
    )


# What a module's own fixture has opened may stay until the module ends.
closed_after_a_test = pytest.fixture(autouse=True)(_closes_its_connections)
closed_after_a_module = pytest.fixture(scope="module", autouse=True)(_closes_its_connections)

import mlx.core as mx  # noqa: E402

from core.engine.engine import Engine  # noqa: E402
from tests.core.toy import write_toy_model  # noqa: E402


@pytest.fixture(scope="session")
def toy_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A complete MLX model folder with a tiny random llama, tried out; loads in milliseconds."""
    folder = tmp_path_factory.mktemp("models") / "toy"
    write_toy_model(folder)
    engine = Engine()
    engine.load(str(folder))
    engine.try_out()
    engine.unload()
    return folder


@pytest.fixture
def toy_engine(toy_folder: Path) -> Iterator[Engine]:
    """An engine with the toy model, nothing in its cache."""
    engine = Engine()
    engine.load(str(toy_folder))
    yield engine
    engine.unload()


@pytest.fixture(scope="session")
def starter_engine() -> Iterator[Engine]:
    """An engine with the real starter model, loaded once. Tests call `forget()` for a cold start."""
    engine = Engine()
    engine.load("starter")
    yield engine
    engine.unload()
