"""The walks of docs/architecture.md: the lists name exactly the modules that a real request enters.

A module is entered if one of its functions runs. Not listed: declarations (errors, settings, messages) and
`core.system`, which every module may use.

    make walks        rewrites the lists
"""

from __future__ import annotations

import re
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
_DECLARATIONS = ("core/errors", "core/settings/", "core/events/", "core/system/", "core/answer_format/")
# Such a list: names without `core/` and `.py`, indented, with arrows between them.
_LIST = re.compile(r"(?:^    \S.*\n)+", re.MULTILINE)
_ARROW = " → "


class Entered:
    """The modules of `core` whose functions ran, in the order of their first call."""

    def __init__(self) -> None:
        self._codes: dict[Any, None] = {}

    def __call__(self, frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            self._codes.setdefault(frame.f_code)

    @property
    def files(self) -> list[str]:
        found: dict[str, None] = {}
        for code in self._codes:
            path = Path(code.co_filename)
            if code.co_name == "<module>" or not path.is_relative_to(ROOT / "core"):
                continue
            name = path.relative_to(ROOT).as_posix()
            if not name.startswith(_DECLARATIONS):
                found.setdefault(name)
        return list(found)


@contextmanager
def entered() -> Iterator[Entered]:
    """Records the calls of this thread."""
    found = Entered()
    sys.setprofile(found)
    try:
        yield found
    finally:
        sys.setprofile(None)


def _engine(folder: Path, **config: Any) -> Any:
    from core.engine.engine import Engine
    from tests.core.toy import write_toy_model

    write_toy_model(folder, **config)
    engine = Engine()
    engine.load(str(folder))
    engine.loaded.eos = frozenset()
    engine.try_out()
    return engine


def _answer(engine: Any, command: Any) -> None:
    from core.engine.engine import never
    from core.events import decode_command, encode

    events = [encode(event) for event in engine.generate(decode_command(encode(command)), never)]
    assert b'"type":"finished"' in events[-1]


def chat_request() -> list[str]:
    """From a worker's command to the events of its answer, with a draft accepted."""
    from core.events import Generate, Message
    from core.settings import Settings, assign_all

    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(Path(folder) / "toy")
        settings = assign_all(Settings(), [("sampling.max_tokens", 24), ("drafting.drafter", "ngram-simple")])
        messages = (Message("user", "abc abc abc abc abc"),)
        _answer(engine, Generate("0", messages, settings))  # imports and caches
        engine.forget()
        with entered() as found:
            _answer(engine, Generate("1", messages, settings))
        engine.unload()
    return found.files


def second_question() -> list[str]:
    """A later question about a document of which the first answer read a part."""
    from core.events import Attachment, Generate, Message
    from core.settings import Settings, assign_all

    text = "\n\n".join(
        f"Chapter {n}. The harbour of town {n} has {3 * n} boats and one light." for n in range(60)
    )
    values = [("sampling.max_tokens", 8), ("prefill.mode", "on"), ("prefill.scorer", "lexical")]
    settings = assign_all(Settings(), [*values, ("prefill.keep_pct", 10.0), ("drafting.drafter", "off")])
    first = (Message("user", "How many boats has town 7?", (Attachment("towns.txt", text),)),)
    later = (*first, Message("assistant", "Some."), Message("user", "And what has town 41?"))
    with tempfile.TemporaryDirectory() as folder:
        engine = _engine(Path(folder) / "toy", max_position_embeddings=8192)
        for turn in (first, later):
            _answer(engine, Generate("0", turn, settings))
        engine.forget()
        _answer(engine, Generate("1", first, settings))
        with entered() as found:
            _answer(engine, Generate("2", later, settings))
        engine.unload()
    return found.files


def http_request() -> list[str]:
    """A chat completion with tools, in the server's process."""
    from tests.core.serve.served import serving
    from tests.core.toy import write_toy_model

    schema = {"type": "object", "properties": {"exact": {"type": "boolean"}}, "required": ["exact"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "toy"
        write_toy_model(path, max_position_embeddings=4096)
        with serving(path) as served:

            def ask() -> None:
                reply = served.chat(tools=tools, tool_choice="required", max_tokens=60)
                assert reply.json["choices"][0]["message"]["tool_calls"]

            def on_loop(work: Callable[[], None]) -> None:
                done = threading.Event()
                served.loop.call_soon_threadsafe(lambda: (work(), done.set()))
                assert done.wait(60)

            ask()
            found = Entered()
            on_loop(lambda: sys.setprofile(found))
            try:
                ask()
            finally:
                on_loop(lambda: sys.setprofile(None))
    # It hears what the worker tells by itself, which may come meanwhile.
    return [name for name in found.files if name != "core/serve/own_worker.py"]


WALKS = {
    "Chat request": chat_request,
    "Second question on a sparse document": second_question,
    "HTTP request with tools": http_request,
}


@pytest.mark.parametrize("title", WALKS)
def test_the_page_lists_the_modules_that_a_request_enters(title: str) -> None:
    _, _, section = PAGE.read_text("utf-8").partition(f"\n### {title}\n")
    listed = _listed(section.partition("\n#")[0])
    found = WALKS[title]()
    assert sorted(listed) == sorted(found), (
        f"missing: {sorted({*found} - {*listed})}, not entered: {sorted({*listed} - {*found})};"
        " run `make walks`"
    )


def _listed(section: str) -> list[str]:
    found = _LIST.search(section)
    words = " ".join(found[0].split()) if found else ""
    return [f"core/{name}.py" for name in words.split(_ARROW)]


def _written(files: list[str]) -> str:
    words = _ARROW.join(name.removeprefix("core/").removesuffix(".py") for name in files)
    lines = textwrap.wrap(words, 114, break_long_words=False, break_on_hyphens=False)
    return "".join(f"    {line}\n" for line in lines)


def main() -> None:
    """Rewrites the lists of docs/architecture.md."""
    from core.models.runtime import prepare

    prepare()
    page = PAGE.read_text("utf-8")
    for title, walk in WALKS.items():
        files = walk()
        head, heading, tail = page.partition(f"\n### {title}\n")
        text, hashes, others = tail.partition("\n#")
        text = _LIST.sub("", text).rstrip() + "\n\n" + _written(files)
        page = head + heading + text + hashes + others
        print(f"{title}: {len(files)} files")
    PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
