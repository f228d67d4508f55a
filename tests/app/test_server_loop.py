"""The local server on the window's own loop: it answers, stops, and leaves nothing behind."""

from __future__ import annotations

import asyncio
import http.client
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

from core.serve.answering import Serving
from core.serve.own_worker import OwnWorker
from core.serve.queue import Answers
from core.serve.served_requests import ServedRequests
from core.serve.server import LocalServer


def ask(port: int, **fields: Any) -> tuple[int, bytes]:
    """On another thread: whoever asks is another program."""
    line = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    body = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 20, **fields}
    line.request("POST", "/v1/chat/completions", json.dumps(body), {"content-type": "application/json"})
    try:
        reply = line.getresponse()
        return reply.status, reply.read()
    finally:
        line.close()


def test_it_serves_on_qasyncs_loop(qapp: QApplication, toy_folder: Path) -> None:
    errors: list[str] = []
    loop = QEventLoop(qapp)
    loop.set_exception_handler(lambda _, context: errors.append(str(context)))
    asyncio.set_event_loop(loop)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)

    async def life() -> list[str]:
        worker = OwnWorker(str(toy_folder), lambda told: None)
        answers = Answers(worker.gate, ServedRequests(), 4)
        server = LocalServer(answers, Serving(port=0))
        await server.start()
        assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
        worker.start()
        port = int(server.address.rpartition(":")[2])
        asked = [asyncio.to_thread(ask, port, stream=stream) for stream in (True, False, True)]
        replies = await asyncio.gather(*asked)
        assert [status for status, _ in replies] == [200, 200, 200]
        assert replies[0][1].endswith(b"data: [DONE]\n\n")
        cut = asyncio.ensure_future(asyncio.to_thread(ask, port, max_tokens=480, drafter="off"))
        while not answers.gate.open:
            await asyncio.sleep(0.01)
        await server.stop()
        assert (await cut)[0] == 503
        # Again, at another port: the window's switch is turned off and on.
        again = LocalServer(answers, Serving(port=0))
        await again.start()
        assert (await asyncio.to_thread(ask, int(again.address.rpartition(":")[2])))[0] == 200
        await again.stop()
        await worker.stop()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        return [str(task) for task in left]

    with loop:
        assert loop.run_until_complete(life()) == []
        loop.run_until_complete(loop.shutdown_default_executor())
    assert errors == []


@pytest.fixture(autouse=True)
def _no_loop_is_left() -> Any:
    yield
    asyncio.set_event_loop(None)
