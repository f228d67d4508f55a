"""Two real servers in processes of their own, with a key, and the clients' environments.

One has the starter model, the other a tiny random model that sees.

`make test-clients` makes the environments in the folder `CLIENTS_ENVIRONMENTS` from the lock files here and
runs these tests; they are not among `make test`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from msgspec import Struct

from tests.core.seeing import write_seeing_model

HERE = Path(__file__).parent
JAVASCRIPT = HERE / "js" / "javascript_client.mjs"
# Of programs whose client needs other versions than all the others.
_ENVIRONMENTS = {"llama_index_client": "llama-index"}
_START_S = 120
_PROGRAM_S = 1500


class Server(Struct, frozen=True):
    """`base` ends in /v1, and so does `sees`, the address of the model that sees."""

    base: str
    key: str
    sees: str


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder run real clients; coding agents have a marker and a target of their own."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker("agents" if item.path.name == "test_agents.py" else "clients")
            item.add_marker(pytest.mark.timeout(_PROGRAM_S + _START_S))


@pytest.fixture(scope="session")
def environments() -> Path:
    folder = os.environ.get("CLIENTS_ENVIRONMENTS")
    assert folder, "make test-clients makes the clients' environments and says where they are"
    return Path(folder).absolute()


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("server")
    write_seeing_model(folder / "sees")
    with _served(folder, "starter") as base, _served(folder, folder / "sees") as sees:
        yield Server(base, (folder / "key").read_text().strip(), sees)


@contextmanager
def _served(folder: Path, model: str | Path) -> Iterator[str]:
    """The address of a server with `model`, and with the key in `folder`."""
    key, told = folder / "key", folder / f"log of {Path(model).name}"
    command = [sys.executable, "-m", "core.cli", "serve", "--model", model, "--port", "0", "--quiet"]
    log = told.open("w")
    child = subprocess.Popen([*command, "--key-file", key], stdout=subprocess.PIPE, stderr=log, text=True)
    assert child.stdout is not None
    # Nothing is said for ever if it does not come up.
    giving_up = threading.Timer(_START_S, child.kill)
    giving_up.start()
    try:
        base = child.stdout.readline().strip()
        assert base, told.read_text()
        giving_up.cancel()
        yield base
    finally:
        giving_up.cancel()
        child.terminate()
        status = child.wait(30)
        child.stdout.close()
        log.close()
    assert status == 0, told.read_text()


class Clients:
    """Runs clients against the server, each in the environment that is its own."""

    def __init__(self, server: Server, environments: Path, folder: Path) -> None:
        self._server = server
        self._environments = environments
        self._folder = folder
        self._outcomes: dict[str, dict[str, str]] = {}

    def run(
        self,
        environment: str,
        program: list[str | Path],
        more: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run `program` with the Python of `environment`, or with Node; Python may not look further than
        this machine.
        """
        strays = self._folder / "strays"
        told = {
            "PATH": os.environ["PATH"],
            "HOME": str(self._folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(HERE / "loopback"),
            "CLIENTS_STRAYS": str(strays),
            "CLIENTS_BASE": self._server.base,
            "CLIENTS_SEES": self._server.sees,
            "CLIENTS_KEY": self._server.key,
            # What would send figures, or fetch prices.
            "DO_NOT_TRACK": "1",
            "LANGSMITH_TRACING": "false",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
            **(more or {}),
        }
        folder = self._environments / environment
        command = ["node"] if environment == "js" else [folder / "bin" / "python"]
        ran = subprocess.run(
            [*command, *program], cwd=cwd or self._folder, env=told, capture_output=True, text=True,
            timeout=_PROGRAM_S, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert not strays.exists(), strays.read_text()
        return ran

    def outcome(self, program: str, case: str) -> str:
        """What went wrong with `case`, empty if nothing did. All of a program's cases run the first time."""
        if program not in self._outcomes:
            if program == JAVASCRIPT.stem:
                # Node looks for packages beside the program.
                copied = shutil.copy(JAVASCRIPT, self._environments / "js")
                ran = self.run("js", [copied], {"OPENAI_AGENTS_DISABLE_TRACING": "1"})
            else:
                environment = _ENVIRONMENTS.get(program, "clients")
                ran = self.run(environment, [HERE / "programs" / f"{program}.py"])
            lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith('{"case"')]
            assert lines, ran.stderr
            self._outcomes[program] = {line["case"]: line["problem"] for line in lines}
        return self._outcomes[program].get(case, "the program ended before it")


@pytest.fixture(scope="session")
def clients(server: Server, environments: Path, tmp_path_factory: pytest.TempPathFactory) -> Clients:
    return Clients(server, environments, tmp_path_factory.mktemp("clients"))
