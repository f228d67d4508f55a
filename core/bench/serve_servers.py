"""The servers of `bench serve`: child processes with one streaming client that times answers.

The client opens one connection per request, as editors do. Run as a module with a folder and a port, this
file is mlx-lm's server with Draftlight's BLAS.
"""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from core.errors import WorkerError
from core.system.children import CHILD_FOLDER, child_command, child_environment, module_command

if TYPE_CHECKING:  # importing it loads MLX, which `prepare()` must come before
    from core.models.loader import LoadedModel

_START_S = 120.0
_ANSWER_S = 600.0
_LOOK_S = 0.1


class Served(Struct, frozen=True):
    """One answer as measured by the client. `own` holds the fields only Draftlight's server sends.

    `ttft_s` is the time from before connecting to the first text, `decode_s` from there to the last text.
    `engine_ttft_s` and `engine_decode_s` are the same by the engine's clock, which starts when the worker
    has read the request; 0 unless token times were requested.
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
        """Decode speed of the tokens after the first."""
        return (self.tokens - 1) / self.decode_s if self.decode_s else 0.0


class BenchServer:
    """Context manager for one server process. Its stderr is written to `log`."""

    def __init__(self, name: str, command: Sequence[str], port: int, log: Path, **environment: str) -> None:
        self.name = name
        self._command = command
        self._port = port
        self._log = log
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @classmethod
    def draftlight(cls, model: Path, scratch: Path, drafter: str = "auto") -> BenchServer:
        """Draftlight's server, with its data in `scratch`."""
        port = _free_port()
        words = ("serve", "--model", str(model), "--port", str(port), "--drafter", drafter, "--quiet")
        home = scratch / "home"
        log = scratch / "draftlight.log"
        return cls("draftlight", child_command(*words), port, log, DRAFTLIGHT_HOME=str(home))

    @classmethod
    def mlx_lm(cls, model: Path, scratch: Path) -> BenchServer:
        """mlx-lm's server."""
        port = _free_port()
        command = module_command("core.bench.serve_servers", str(model), str(port))
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
        while not self._listens():
            if self._process.poll() is not None or time.monotonic() > end_s:
                self._process.kill()
                raise WorkerError(f"{self.name}'s server did not start: {self._log_end()}", "See above.")
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
        """A chat completion. Raises `WorkerError` if it fails."""
        return self._post("/v1/chat/completions", max_tokens, messages=messages, **fields)

    def complete(self, prompt: str, max_tokens: int, **fields: Any) -> Served:
        """A completion without chat template. Raises `WorkerError` if it fails."""
        return self._post("/v1/completions", max_tokens, prompt=prompt, **fields)

    def _post(self, path: str, max_tokens: int, **fields: Any) -> Served:
        """A streamed request at temperature 0."""
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
            return _timed(response, started)
        except OSError as error:
            problem = f"{self.name}'s server ended during an answer: {error}. {self._log_end()}"
            raise WorkerError(problem, "See above.") from error
        finally:
            connection.close()

    def _listens(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=1):
                return True
        except OSError:
            return False

    def _log_end(self) -> str:
        return self._log.read_text(errors="replace")[-500:]


def _timed(response: http.client.HTTPResponse, started: float) -> Served:
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
            if piece := choice["delta"].get("content") if "delta" in choice else choice["text"]:
                text += piece
                first_s = first_s or now_s
                last_s = now_s
        timed = chunk.get("draftlight", {}).get("tokens", ())
        written_s += [token["time_s"] for token in timed if token["text"]]
        if usage := chunk.get("usage"):
            tokens = usage["completion_tokens"]
            own = {**chunk.get("draftlight", {}), "timings": chunk.get("timings", {}), "usage": usage}
    first, last = (written_s[0], written_s[-1]) if written_s else (0.0, 0.0)
    return Served(text, tokens, first_s, last_s - first_s, first, last - first, own)


def _free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        return int(held.getsockname()[1])


def write_float_folder(loaded: LoadedModel, folder: Path) -> Path:
    """A model folder with the weights that `loaded` computes with, for both servers.

    On MLX's CPU build Draftlight dequantises weights to float32; mlx-lm computes with the quantised ones at
    a third of the speed. The comparison is not about number formats, so both load the float32 weights.
    Returns the model's own folder if nothing was dequantised, else `folder`.
    """
    import mlx.core as mx
    from mlx.utils import tree_flatten

    source = Path(loaded.info.path)
    config = json.loads((source / "config.json").read_text(encoding="utf-8"))
    if mx.default_device() == mx.gpu or "quantization" not in config:
        return source
    folder.mkdir(parents=True)
    for file in source.iterdir():
        if file.is_file() and file.suffix != ".safetensors" and not file.name.startswith("draftlight"):
            shutil.copy(file, folder / file.name)
    for key in ("quantization", "quantization_config"):
        config.pop(key, None)
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    weights = dict(tree_flatten(loaded.model.parameters()))
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder


def main(arguments: Sequence[str]) -> int:
    """Run mlx-lm's server: `FOLDER PORT`."""
    folder, port = arguments
    from core.models.runtime import prepare

    prepare()
    sys.argv = ["mlx_lm.server", "--model", folder, "--port", port, "--log-level", "ERROR"]
    from mlx_lm.server import main as serve

    serve()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
