"""A tool server of the standard library alone, which starts in 30 ms and misbehaves when it is told to.

    plain_server.py FOLDER [WORD…]

Its tools write into FOLDER: `ran` gets a line for each call that was carried out, `cancelled` for each that
was cancelled, `asked` for each message. Words change how it starts: `slow=S` waits, `silent` never answers,
`exit=N` ends at once, `deaf` ignores SIGTERM and the end of its stdin, `child` starts a process that does,
`many=N` has N tools, `banner` prints lines that are no messages, `flood` writes its log without end.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(*sys.argv[1:2])
WORDS = dict(word.partition("=")[::2] for word in sys.argv[2:])
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
lock = threading.Lock()
cancelled: set[Any] = set()
tools = [
    "echo",
    "count",
    "slow",
    "die",
    "big",
    "long",
    "parts",
    "error",
    "half",
    "twice",
    "change",
    "environment",
    "junk",
    "log",
]


def note(name: str, text: str) -> None:
    with open(FOLDER / name, "a", encoding="utf-8") as file:
        file.write(text + "\n")


def send(message: dict[str, Any]) -> None:
    data = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode() + b"\n"
    with lock:
        sys.stdout.buffer.write(data)
        sys.stdout.buffer.flush()


def answer(number: Any, text: str, **more: Any) -> None:
    send({"id": number, "result": {"content": [{"type": "text", "text": text}], **more}})


def declared(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"The tool {name}.",
        "inputSchema": {"type": "object", "properties": {"arguments": {"type": "string", "default": "x"}}},
        "annotations": {"readOnlyHint": name == "echo"},
    }


def call(number: Any, name: str, given: dict[str, Any]) -> None:
    note("ran", name)
    match name:
        case "slow":
            until = time.monotonic() + given.get("seconds", 60)
            while time.monotonic() < until and number not in cancelled:
                time.sleep(0.01)
            if number in cancelled:
                note("cancelled", str(given.get("name", "")))
                return
            answer(number, "done")
        case "die":
            os._exit(given.get("status", 3))
        case "big":
            answer(number, given.get("letter", "ä") * given["letters"])
        case "long":
            answer(number, "x" * (17 << 20))
        case "parts":
            send({"id": number, "result": {"content": given["content"]}})
        case "error":
            if given.get("protocol"):
                send({"id": number, "error": {"code": -32602, "message": "no such thing"}})
            else:
                answer(number, "it failed", isError=True)
        case "half":
            text = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"a\\ud83d"}]}}\n'
            with lock:
                sys.stdout.buffer.write(text % number)
                sys.stdout.buffer.flush()
        case "twice":
            answer(number, "first")
            answer(number, "second")
        case "change":
            tools.append(given["name"])
            send({"method": "notifications/tools/list_changed"})
            answer(number, "changed")
        case "environment":
            answer(number, json.dumps(dict(os.environ)))
        case "junk":
            with lock:
                sys.stdout.buffer.write(b'{"jsonrpc": "2.0", "id": 99\nno message\n[[[[[\n\xff\xfe\n')
                sys.stdout.buffer.flush()
            answer(number, "after junk")
        case "log":
            more = given.get("more", "").replace("{words}", " ".join(sys.argv[2:]))
            for line in range(given["lines"]):
                print(f"line {line} " + more, file=sys.stderr)
            sys.stderr.flush()
            answer(number, "logged")
        case _:
            answer(number, json.dumps(given, ensure_ascii=False))


def handle(message: dict[str, Any]) -> None:
    number, method, given = message.get("id"), message.get("method"), message.get("params") or {}
    note("asked", str(method))
    if method == "initialize":
        time.sleep(float(WORDS.get("slow", 0)))
        send(
            {
                "id": number,
                "result": {
                    "protocolVersion": given["protocolVersion"],
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "plain", "version": "1"},
                },
            }
        )
    elif method == "tools/list":
        names = [*tools, *(f"tool{at}" for at in range(int(WORDS.get("many", 0))))]
        at = int(given.get("cursor", 0))
        page = {"tools": [declared(name) for name in names[at : at + 50]]}
        if at + 50 < len(names):
            page["nextCursor"] = str(at + 50)  # type: ignore[assignment]
        send({"id": number, "result": page})
    elif method == "tools/call":
        work = (number, given["name"], given.get("arguments") or {})
        threading.Thread(target=call, args=work, daemon=True).start()
    elif method == "notifications/cancelled":
        cancelled.add(given.get("requestId"))
    elif number is not None and method:
        send({"id": number, "error": {"code": -32601, "message": "Method not found"}})


def flood() -> None:
    while True:
        sys.stderr.write("flood " * 50 + "\n")


def main() -> None:
    note("started", str(os.getpid()))
    if "child" in WORDS:
        script = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", script])
        note("started", str(child.pid))
    if "exit" in WORDS:
        print("it cannot start because of a missing key", file=sys.stderr)
        sys.exit(int(WORDS["exit"]))
    if "deaf" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "banner" in WORDS:
        print("Welcome to the server!\n{not json}\n", flush=True)
    if "flood" in WORDS:
        threading.Thread(target=flood, daemon=True).start()
    for line in sys.stdin.buffer:
        if "silent" not in WORDS:
            handle(json.loads(line))
    while "deaf" in WORDS:
        time.sleep(1)


if __name__ == "__main__":
    main()
