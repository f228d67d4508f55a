"""BenchServer: a server as a child process, and one streamed request to it, timed at the client.

Both servers are asked by this one client, over one connection a request, as editors do.
"""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from msgspec import Struct

from core.errors import WorkerError
from core.system.children import CHILD_FOLDER, child_command, child_environment, module_command

_START_S = 120.0
_ANSWER_S = 600.0
_LOOK_S = 0.1


class Served(Struct, frozen=True):
    """One answer, as its client saw it. `own` is what Draftlight's server says of it besides.

    `ttft_s` is from before connecting to the first text, `decode_s` from there to the last. `engine_ttft_s`
    and `engine_decode_s` are of the same two tokens by the engine's clock, from when its worker had read
    the request; 0 where nobody asked for its tokens' times.
    """

    text: str
    tokens: int
    ttft_s: float
    decode_s: float
    engine_ttft_s: float = 0.0
    engine_decode_s: float = 0.0
    own: dict[str, Any] = {}

    @property
    def tokens_per_s(self) -> float:
        """Of the tokens after the first."""
        return (self.tokens - 1) / self.decode_s if self.decode_s else 0.0


class BenchServer:
    """One server from entering to leaving. `log` is what it wrote on stderr."""

    def __init__(self, name: str, command: Sequence[str], port: int, log: Path, **environment: str) -> None:
        self.name = name
        self._command = command
        self._port = port
        self._log = log
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def draftlight(cls, model: Path, scratch: Path, drafter: str = "auto") -> BenchServer:
        """Draftlight's, with tables and profile in a home of its own."""
        port = _free_port()
        words = ("serve", "--model", str(model), "--port", str(port), "--drafter", drafter, "--quiet")
        home = scratch / "home"
        log = scratch / "draftlight.log"
        return cls("draftlight", child_command(*words), port, log, DRAFTLIGHT_HOME=str(home))

    @classmethod
    def mlx_lm(cls, model: Path, scratch: Path) -> BenchServer:
        """mlx-lm's."""
        port = _free_port()
        command = module_command("core.bench.serve.plain_server", str(model), str(port))
        return cls("mlx-lm", command, port, scratch / "mlx-lm.log")

    def __enter__(self) -> BenchServer:
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=log,
                cwd=CHILD_FOLDER,
                env=child_environment(**self._environment),
            )
        end_s = time.monotonic() + _START_S
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end_s:
                self._process.kill()
                raise WorkerError(f"{self.name}'s server did not start: {self._said()}", "See above.")
            time.sleep(_LOOK_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def chat(self, messages: Sequence[dict[str, str]], max_tokens: int, **fields: Any) -> Served:
        """A chat completion. Raises `WorkerError` where it fails."""
        return self._ask("/v1/chat/completions", max_tokens, messages=messages, **fields)

    def complete(self, prompt: str, max_tokens: int, **fields: Any) -> Served:
        """What follows `prompt`, without a chat template. Raises `WorkerError` where it fails."""
        return self._ask("/v1/completions", max_tokens, prompt=prompt, **fields)

    def _ask(self, path: str, max_tokens: int, **fields: Any) -> Served:
        """Streamed, at temperature 0."""
        body = {
            "max_tokens": max_tokens,
            "temperature": 0.0,
            "stream": True,
            "stream_options": {"include_usage": True},
            **fields,
        }
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_ANSWER_S)
        started = time.perf_counter()
        try:
            connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
            response = connection.getresponse()
            if response.status != 200:
                raise WorkerError(f"{self.name} refused a request: {response.read()[:500]!r}", "See above.")
            return _heard(response, started)
        except OSError as error:
            said = f"{self.name}'s server ended in mid-answer: {error}. {self._said()}"
            raise WorkerError(said, "See above.") from error
        finally:
            connection.close()

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return True
        except OSError:
            return False

    def _said(self) -> str:
        return self._log.read_text(errors="replace")[-500:]


def _heard(response: http.client.HTTPResponse, started: float) -> Served:
    text, first_s, last_s, tokens = "", 0.0, 0.0, 0
    own: dict[str, Any] = {}
    written_s: list[float] = []
    for line in response:
        if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
            continue
        now_s = time.perf_counter() - started
        chunk = json.loads(line[6:])
        if "error" in chunk:
            raise WorkerError(f"An answer failed: {chunk['error']}", "See above.")
        for choice in chunk.get("choices", ()):
            if said := choice["delta"].get("content") if "delta" in choice else choice["text"]:
                text += said
                first_s = first_s or now_s
                last_s = now_s
        told = chunk.get("draftlight", {}).get("tokens", ())
        written_s += [token["time_s"] for token in told if token["text"]]
        if usage := chunk.get("usage"):
            tokens = usage["completion_tokens"]
            own = {**chunk.get("draftlight", {}), "timings": chunk.get("timings", {}), "usage": usage}
    first, last = (written_s[0], written_s[-1]) if written_s else (0.0, 0.0)
    return Served(text, tokens, first_s, last_s - first_s, first, last - first, own)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])
