"""A small hub on this machine: what the hub client asks for, over real HTTP, and ways to fail.

It serves folders as repositories: names and sizes with hashes, files with byte ranges, a search.
`trouble` makes it fail; `asked` is what was asked of it, each with the range wanted.
"""

from __future__ import annotations

import hashlib
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

COMMIT = "c" * 40
_PIECE_BYTES = 16 * 1024


@dataclass
class Trouble:
    """`cut_after_bytes` ends that many (`cuts`) answers with weights in their middle."""

    cut_after_bytes: int = 0
    cuts: int = 0
    bytes_per_s: int = 0
    refuse_with: int = 0
    wrong_hash: bool = False
    no_ranges: bool = False
    gated: bool = False
    search_takes_s: float = 0.0


@dataclass
class Hub:
    """`folders` are the repositories by name, all at `commit`. `address` is what HF_ENDPOINT is set to."""

    address: str
    folders: dict[str, Path] = field(default_factory=dict)
    commit: str = COMMIT
    trouble: Trouble = field(default_factory=Trouble)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def ranges_of(self, name: str) -> list[str]:
        """The ranges that were wanted of the file `name`, in order."""
        return [wanted for path, wanted in self.asked if path.endswith(f"/{name}")]


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that go in mid-answer are what is tried here."""


@contextmanager
def serving() -> Iterator[Hub]:
    """A hub until the block ends."""
    server = _Server(("127.0.0.1", 0), _Handler)
    hub = Hub(f"http://127.0.0.1:{server.server_address[1]}")
    server.hub = hub  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, name="hub")
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    @property
    def hub(self) -> Hub:
        hub: Hub = self.server.hub  # type: ignore[attr-defined]
        return hub

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        self.hub.asked.append((url.path, self.headers.get("Range", "")))
        if self.hub.trouble.refuse_with:
            self._refuse(self.hub.trouble.refuse_with)
        elif url.path == "/api/models":
            time.sleep(self.hub.trouble.search_takes_s)
            wanted = parse_qs(url.query).get("search", [""])[0].lower()
            names = [name for name in self.hub.folders if wanted in name.lower()]
            self._json([{"id": name, "modelId": name, "downloads": 7, **self._kind(name)} for name in names])
        elif url.path.startswith("/api/models/"):
            self._describe("/".join(url.path.split("/")[3:5]))
        elif "/resolve/" in url.path:
            name, _, rest = url.path[1:].partition("/resolve/")
            commit, _, file = rest.partition("/")
            self._send_file(name, file if commit == self.hub.commit else "")
        else:
            self._refuse(404)

    def _kind(self, name: str) -> dict[str, Any]:
        """What the hub derives from a model's files."""
        path = self.hub.folders[name] / "config.json"
        config = json.loads(path.read_text()) if path.is_file() else {}
        what = "image-text-to-text" if "vision_config" in config else None
        return {"tags": ["mlx", config.get("model_type", "")], "pipeline_tag": what}

    def _describe(self, name: str) -> None:
        folder = self.hub.folders.get(name)
        if folder is None:
            self._refuse(404, "RepoNotFound")
        elif self.hub.trouble.gated:
            self._refuse(403, "GatedRepo")
        else:
            files = sorted(path for path in folder.rglob("*") if path.is_file())
            siblings = [self._sibling(path, path.relative_to(folder).as_posix()) for path in files]
            self._json(
                {"id": name, "modelId": name, "sha": self.hub.commit, "private": False, "siblings": siblings}
            )

    def _sibling(self, path: Path, name: str) -> dict[str, Any]:
        content = path.read_bytes()
        if self.hub.trouble.wrong_hash:
            content += b"!"
        size = path.stat().st_size
        told: dict[str, Any] = {"rfilename": name, "size": size}
        if path.suffix == ".safetensors":
            told["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": size, "pointerSize": 134}
        told["blobId"] = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        return told

    def _send_file(self, name: str, file: str) -> None:
        path = self.hub.folders.get(name, Path("/nowhere")) / file
        if not path.is_file():
            self._refuse(404, "EntryNotFound")
            return
        content, trouble = path.read_bytes(), self.hub.trouble
        wanted = self.headers.get("Range", "")
        start = int(wanted[len("bytes=") :].partition("-")[0]) if wanted and not trouble.no_ranges else 0
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        end = len(content)
        if trouble.cuts and file.endswith(".safetensors") and len(content) - start > trouble.cut_after_bytes:
            trouble.cuts -= 1
            end = start + trouble.cut_after_bytes
        for at in range(start, end, _PIECE_BYTES):
            piece = content[at : min(at + _PIECE_BYTES, end)]
            try:
                self.wfile.write(piece)
            except OSError:
                self.close_connection = True
                return
            if trouble.bytes_per_s and file.endswith(".safetensors"):
                time.sleep(len(piece) / trouble.bytes_per_s)
        if end < len(content):
            self.close_connection = True

    def _json(self, value: Any) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _refuse(self, status: int, code: str = "") -> None:
        self.send_response(status)
        if code:
            self.send_header("X-Error-Code", code)
        self.send_header("Content-Length", "0")
        self.end_headers()
