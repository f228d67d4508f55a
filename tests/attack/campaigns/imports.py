"""Imports: exports of other programs that are damaged, hostile or of any shape are imported.

A case takes one or a few made-up chats, damages them as values (wrong types, deep nesting, huge numbers,
duplicate ids, cycles of parents), as bytes (cut off, replaced, other encodings) or as an archive, and imports
the file twice into one library. Every twentieth case is read by the child process, as in the window.
"""

from __future__ import annotations

import json
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from app.session.chats.chats import Chats
from app.session.chats.conversation import Conversation
from app.store.chat_files import to_json
from app.store.chat_store import ChatStore
from app.store.importing import ImportReading
from app.store.library import Library
from core.chat_archives.reading import Losses
from core.errors import RequestError
from tests.app.store.chats import chat_of
from tests.app.store.importing import InProcess
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.damage import broken_bytes, damage_value
from tests.core.chat_archives import samples

_LONGEST_S = 10.0
_RAW = ("Traceback", "codec", "Errno", "object at", "line 1 column")
_MADE: tuple[Callable[[], dict[str, Any]], ...] = (
    samples.chatgpt_chat,
    *(partial(samples.export, name) for name in ("chatgpt_research", "claude", "open_webui", "lm_studio")),
    lambda: {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}]},
)
# The program's messages in the made-up chats, to be found in what is imported.
_WITNESS = "The witness of case {}."


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        library = Library(root / "home")
        chats = Chats(archive=library)
        store = ChatStore(root / "home" / "chats.db")
        try:
            for case in cases:
                dice = case_random("imports", seed, case)
                path = root / f"case{case}"
                try:
                    yield _case(chats, library, store, path, case, dice)
                except Exception as error:  # whatever it is, a person would see it
                    yield Outcome(case, f"{type(error).__name__}: {str(error)[:300]}")
        finally:
            store.close()
            library.close()


def _case(
    chats: Chats, library: Library, store: ChatStore, path: Path, case: int, dice: random.Random
) -> Outcome:
    data, witness = _file(case, dice)
    path.write_bytes(data)
    began_s = time.monotonic()
    try:
        found, lost = _read(path, in_child=case % 20 == 0)
    except RequestError as error:
        said = f"{error.message} {error.hint}"
        if witness:
            return Outcome(case, f"a whole chat is refused: {said}")
        if not error.message or not error.hint or any(word in said for word in _RAW):
            return Outcome(case, f"said to a person: {said}")
        return Outcome(case, "", {"refused": 1.0})
    took_s = time.monotonic() - began_s
    if took_s > _LONGEST_S:
        return Outcome(case, f"took {took_s:.0f} s")
    if witness and not any(witness in version for chat in found for version in _texts(chat)):
        return Outcome(case, "a whole chat of the file is not imported")
    added = [chats.add(chat) for chat in found]
    if not library.flush():
        return Outcome(case, "an imported chat could not be saved")
    # A later chat of the file can have updated one of the same id.
    for chat in {chat.id: chat for chat, _ in added}.values():
        if store.load(chat.id) != chat:
            return Outcome(case, "an imported chat comes back changed")
    for chat in found:  # nothing is lost, whatever ids they share
        everything = {text for stored, _ in added for text in _texts(chats.get(stored.id))}
        # A longer answer replaces its beginning.
        if not all(any(each.startswith(text) for each in everything) for text in _texts(chat)):
            return Outcome(case, "a text was lost between two chats of the same id")
    before = len(chats.listed())
    again = [chats.add(chat)[1] for chat in _read(path, in_child=False)[0]]
    if set(again) - {"known"} or len(chats.listed()) != before:
        return Outcome(case, f"the second import of the same file: {sorted(set(again))}")
    for chat, _ in added:
        if chat.id != chats.open.id:
            chats.purge(chat.id)
    counts = {"imported": 1.0, "chats": float(len(found)), "items reported as lost": float(lost)}
    return Outcome(case, "", counts, {"longest reading in ms": took_s * 1000})


def _read(path: Path, *, in_child: bool) -> tuple[list[Conversation], int]:
    reading = ImportReading(path) if in_child else ImportReading(path, InProcess(path))
    found: list[Conversation] = []
    lost = 0
    for item in reading.chats():
        if isinstance(item, Losses):
            lost += sum(item.counts.values())
        elif isinstance(item, tuple):
            found.append(item[1])
    return found, lost


def _texts(chat: Conversation) -> list[str]:
    return [
        f"{version.user.content}\0{version.answer.text}" for turn in chat.turns for version in turn.versions
    ]


# ---- files


def _file(case: int, dice: random.Random) -> tuple[bytes, str]:
    """An export, and a text of a whole chat in it that has to be imported; empty without one."""
    witness = _WITNESS.format(case)
    whole = samples.chatgpt_chat(case)
    whole["mapping"]["a4"]["message"]["content"]["parts"] = [witness]
    broken = dice.choice(_MADE)()
    kind = dice.randrange(8)
    if kind <= 2:
        for _ in range(dice.randint(1, 4)):
            damage_value(broken, dice)
        data = json.dumps([broken, whole]).encode()
        return (samples.chatgpt_archive([broken, whole]) if kind == 2 else data), witness
    if kind == 3:
        return json.dumps([_graph(dice), whole]).encode(), witness
    if kind == 4:
        return json.dumps([whole, _hostile(dice)]).replace('"@"', _deep(dice)).encode(), witness
    data = json.dumps(dice.choice([[broken, whole], broken]), ensure_ascii=dice.random() < 0.5).encode()
    if kind == 5:
        return broken_bytes(data, dice), ""
    if kind == 6:
        archive = samples.zipped({"a/conversations.json": data, "b.json": json.dumps(whole).encode()})
        return broken_bytes(archive, dice), ""
    own = to_json([chat_of(case, 2, 5), chat_of(case + 1)])
    return broken_bytes(own, dice) if dice.random() < 0.8 else own, ""


def _graph(dice: random.Random) -> dict[str, Any]:
    """Messages with any parents: cycles, several roots, missing ones, very long chains."""
    count = dice.choice([1, 5, 40, 3_000])
    names = [str(number) for number in range(count)]
    shape = dice.randrange(3)
    nodes = {}
    for number, name in enumerate(names):
        parent = names[number - 1] if number and shape == 0 else dice.choice([*names, "missing", None])
        if shape == 1:
            parent = names[dice.randrange(number)] if number else None
        role = dice.choice(["user", "assistant", "tool", "system"])
        nodes[name] = samples.chatgpt_node(name, parent, role, f"Text {name}")[1]
    return {
        "title": "Graph",
        "mapping": nodes,
        "current_node": dice.choice([*names, "missing"]),
        "id": "graph",
    }


def _hostile(dice: random.Random) -> dict[str, Any]:
    """A chat with one value that takes long or much, if it is read without care."""
    chat = samples.export("open_webui")
    message = chat["chat"]["history"]["messages"]["y"]
    message["content"] = dice.choice(
        [
            '<details type="reasoning">' * 20_000,
            '<details type="reasoning"' * 20_000 + "></details>",
            "<details" + " " * 100_000,
            "@",
            "```\n" * 20_000,
            "x" * 3_000_000,
        ]
    )
    return dice.choice([chat, {"chat_messages": "@"}, {"mapping": {"a": "@"}}])


def _deep(dice: random.Random) -> str:
    return dice.choice(["[" * 100_000 + "]" * 100_000, "9" * 6_000, "[" * 50 + "]" * 50, '"@"'])


CAMPAIGN = Campaign(
    "imports",
    "damaged and hostile exports of other programs are read within bounds or refused in words; whole chats in"
    " them are imported, and once only",
    60,
    2_000,
    _run,
)
