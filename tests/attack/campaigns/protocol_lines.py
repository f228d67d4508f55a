"""Writes hostile lines to one real worker: broken JSON, wrong types, huge, deep, out of order.

After each line the worker is asked something harmless, which it must answer in time; in between it must
not have hit an error of its own nor have written anything that is no event. A line that is no command must
be answered by a failure. Now and then, and at the end, a real answer must be the one it always was.
"""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from core.errors import DraftlightError
from core.events import (
    CountTokens,
    Failed,
    Finished,
    Hello,
    LoadModel,
    ModelLoaded,
    StandStill,
    Token,
    TokenCount,
    decode_command,
)
from core.events.codec import BadLine
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.variables import variables
from tests.attack.support.worker_talk import Broken, WorkerTalk, ask, talking

_CHECK_EVERY = 200
_CHECK = "the campaign's own"  # no line of it asks under this name
# A prompt of 100,000 characters without a limit is embedded before it is read: a minute on a busy CPU.
_MOST_S = 120.0
_MOST_MB = 700.0


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    # A hub that is not there: nothing here is about the network.
    with variables(HF_HUB_OFFLINE="1"), talking() as (talk, folder):
        os.mkfifo(folder / "fifo")
        talk.start()
        talk.until(Hello)
        expected = _answer(talk, folder)
        for place, case in enumerate(cases, 1):
            chance = case_random("protocol-lines", seed, case)
            line, fault, began_s = _line(chance, folder), "", time.monotonic()
            try:
                _survives(talk, line, case)
                if (place % _CHECK_EVERY == 0 or place == len(cases)) and _answer(talk, folder) != expected:
                    fault = "the answer is another one than before"
            except Broken as broken:
                fault = str(broken)
                talk.client.kill()
                talk.start()
                talk.until(Hello)
                _answer(talk, folder)
            held_mb = talk.rss_mb
            if held_mb > _MOST_MB:
                fault = fault or f"the worker holds {held_mb:.0f} MB"
            if fault:
                fault = f"{line[:160]!r} ({len(line):,} bytes): {fault}"
            peaks = {"line_bytes": len(line), "answered_s": time.monotonic() - began_s, "held_mb": held_mb}
            yield Outcome(case, fault, {"bytes": len(line)}, peaks)


def _survives(talk: WorkerTalk, line: bytes, case: int) -> None:
    """Raises `Broken` if the worker does not take `line` as it should."""
    talk.heard.clear()
    sentinel = f"sentinel-{case}"
    talk.send_raw(line)
    # What holds for a person at the window holds here: nothing goes on that was not asked for now.
    talk.send(StandStill(True), CountTokens(sentinel))
    talk.until((TokenCount, Failed), _MOST_S, lambda heard: heard.request == sentinel)  # type: ignore[arg-type]
    failed = [each for each in talk.heard if isinstance(each, Failed) and each.request != sentinel]
    for each in talk.heard:
        if isinstance(each, BadLine):
            raise Broken(f"it wrote a line that is no event: {each.message}")
    for failure in failed:
        if failure.code == "internal":
            raise Broken(f"an error of its own: {failure.message}")
        if not failure.message or len(failure.message) > 3000:
            raise Broken(f"a message of {len(failure.message):,} characters")
    if line.strip() and not failed and not _is_command(line):
        raise Broken("no answer to what is no command")


def _is_command(line: bytes) -> bool:
    try:
        decode_command(line)
    except DraftlightError:
        return False
    return True


def _answer(talk: WorkerTalk, folder: Path) -> list[int]:
    talk.heard.clear()
    talk.send(StandStill(False), LoadModel(str(folder / "toy")))
    talk.until(ModelLoaded, _MOST_S)
    talk.send(ask(_CHECK, "Is it still there?", sampling__max_tokens=12, tables__learn=False))
    talk.until(Finished, _MOST_S, lambda heard: heard.request == _CHECK)
    return [each.id for each in talk.heard if isinstance(each, Token) and each.request == _CHECK]


# ---- lines


def _line(chance: random.Random, folder: Path) -> bytes:
    """One line, of the kinds in turn of luck; never one that is a whole `shutdown`."""
    command = _command(chance, folder)
    text = json.dumps(command, ensure_ascii=chance.random() < 0.5).encode("utf-8", "surrogatepass")
    match chance.randrange(10):
        case 0:
            line = text[: chance.randrange(len(text))]
        case 1:
            damaged = bytearray(text)
            for _ in range(chance.randint(1, 8)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            line = bytes(damaged)
        case 2:
            line = _noise(chance)
        case 3:
            line = _large(chance)
        case 4:
            line = text + chance.choice((b"}", b",", text, b"\x00", b"\xff", b" 1"))
        case _:
            line = text
    line = line.replace(b"\n", b" ").replace(b"\r", b" ")
    return b'{"type":"stop"}' if b"shutdown" in line else line


def _command(chance: random.Random, folder: Path) -> dict[str, Any]:
    """A command as a dictionary, mostly with something wrong in it."""
    path = lambda: _path(chance, folder)  # noqa: E731
    request = lambda: chance.choice(("a", "a", "", "x" * 300, "\ud800", "check", None, 7))  # noqa: E731
    generate = {
        "type": "generate",
        "request": request(),
        "messages": [{"role": chance.choice(("user", "system", "tool", "")), "content": _text(chance)}],
        "settings": {
            "sampling": {"max_tokens": chance.choice((1, 4, 0, -1, 2**70, "4", None))},
            chance.choice(("drafting", "prefill", "nothing")): chance.choice(
                ({}, {"drafter": "x"}, [], None)
            ),
        },
        "begun": chance.choice(([], [5], [-1], [2**40], ["5"], None)),
    }
    found: dict[str, Any] = chance.choice(
        (
            generate,
            {**generate, "settings": {"sampling": {"max_tokens": 4}}, "begun": []},
            {"type": "cancel", "request": request()},
            {"type": "count_tokens", "request": request(), "text": _text(chance)},
            {"type": "load_model", "model": path()},
            {"type": "unload_model"},
            {"type": "import_model", "request": "i", "path": path()},
            {"type": "remove_model", "request": "d", "reference": path()},
            {"type": "list_models", "request": request()},
            {"type": "list_tables", "request": request()},
            {"type": "save_tables", "request": request()},
            {"type": "load_tables", "request": request(), "previous": chance.choice((True, False, 1))},
            {"type": "reset_table", "request": "r", "family": _text(chance)},
            {"type": "import_table", "request": "t", "path": path()},
            {
                "type": "export_table",
                "request": "e",
                "family": chance.choice(("", "../..", "0" * 64)),
                "n": chance.choice((3, -1, 2**63, 1.5)),
                "slots": chance.choice((1024, 0, -5, 2**70)),
                "path": path(),
                "replace": chance.choice((True, False)),
            },
            {"type": "pause_download", "model": _text(chance)},
            {"type": "cancel_download", "model": _text(chance)},
            {"type": "stand_still", "wanted": chance.choice((True, None, "yes"))},
            {"type": "cancel", "request": chance.choice(("e", ""))},
            {"type": _text(chance)},
            {"type": chance.choice((None, 1, [], {}))},
            {},
        )
    )
    found = dict(found)
    for _ in range(chance.choice((0, 0, 1, 2))):
        name = chance.choice((*found, "more"))
        if chance.random() < 0.3:
            found.pop(name, None)
        else:
            found[name] = chance.choice((None, True, -1, 1e308, 2**64, [], {}, [[]], "\0", "\udc00"))
    return found


def _path(chance: random.Random, folder: Path) -> str:
    return chance.choice(
        (
            "nu\0ll",
            "x" * 300,
            "y/" * 4000,
            "~nobody/x",
            "\ud800",
            "",
            ".",
            "/",
            "/dev/zero",
            "/proc/self/mem",
            "/dev/full",
            "owner/name",
            "../../etc/passwd",
            str(folder / "fifo"),
            str(folder / "toy" / "config.json"),
            str(folder / "nothing"),
            "starter" * 3,
        )
    )


def _text(chance: random.Random) -> str:
    piece = chance.choice(
        ("", "a", "\0", "\ud83d", "\U0001f600", "<|end|>", "é", "\u202e", "word ", "{{ x }}")
    )
    return piece * chance.choice((1, 3, 100, 5000))


def _noise(chance: random.Random) -> bytes:
    return chance.choice(
        (
            chance.randbytes(chance.randint(1, 300)),
            b"[" * chance.choice((10, 2000, 200_000)),
            b'{"a":' * chance.choice((10, 2000, 200_000)),
            b'{"type":"generate","messages":' + b"[" * 5000 + b"]" * 5000 + b"}",
            b"null",
            b"1e999999",
            b'"' + b"\\ud800" * 50 + b'"',
            b'{"type":"count_tokens","request":"a","text":"\xed\xa0\x80"}',
            b'{"type":"count_tokens","type":"cancel","request":"a","request":"b"}',
            b"\xef\xbb\xbf{}",
            b"   ",
        )
    )


def _large(chance: random.Random) -> bytes:
    """Mostly a tenth of a megabyte, now and then eight."""
    size = chance.choice((100_000, 100_000, 100_000, 100_000, 1_000_000, 1_000_000, 8_000_000))
    # A prompt that fits the context is read: a question of 100,000 tokens takes minutes on a busy CPU.
    read = min(size, 30_000) if size < 1_000_000 else size
    question = b'{"type":"generate","request":"a","messages":[{"role":"user","content":"%s"}]}'
    return chance.choice(
        (
            b"x" * size,
            b"[" + b"{}," * (size // 3) + b"{}]",
            b'{"type":"generate","request":"a","x":[' + b"[]," * (size // 3) + b"1]}",
            question % (b"a b" * (read // 3)),
            question % (b"a" * read),
            b'{"type":"count_tokens","request":"a","text":"%s"}' % (b"ab " * (size // 3)),
            b'{"type":"load_model","model":"%s"}' % (b"m" * size),
            b'{"type":"%s"}' % (b"t" * size),
        )
    )


CAMPAIGN = Campaign(
    "protocol-lines",
    "Every line is answered or ignored as it should be, none is an error of the worker's own; it lives on.",
    40,
    10_000,
    _run,
)
