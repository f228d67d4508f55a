"""Preferences: damaged preferences are read, and damaged chat files are imported.

Half of the cases give `PreferencesFile` a file that is broken in its bytes or in what it says, or no file
at all. What it takes in has to be allowed, and has to last; what it does not has to be said. The other
half import an export that was damaged, or text of other programs. It is taken in whole, so that the
database gives back the same, or refused in words.
"""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from app.session.chats.chats import Chats
from app.session.chats.presets import Override
from app.store.chat_files import to_json, to_markdown
from app.store.chat_store import ChatStore
from app.store.importing import ImportReading
from app.store.library import Library
from app.store.preferences import Preferences, PreferencesFile, WindowPlace
from core.errors import RequestError
from core.events import Attachment, Message
from core.settings import WindowSettings
from core.settings.declaration import check
from tests.app.store.chats import chat_of
from tests.app.store.importing import InProcess
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.damage import broken_bytes, damage_value

_RAW = ("Traceback", "codec", "Errno", "object at")


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "home").mkdir()
        store = ChatStore(root / "home" / "chats.db")  # made before the library's writer opens it
        library = Library(root / "home")
        chats = Chats(archive=library)
        try:
            for case in cases:
                dice = case_random("preferences", seed, case)
                folder = root / f"case{case}"
                folder.mkdir()
                try:
                    if case % 2:
                        yield _import(chats, library, store, folder, case, dice)
                    else:
                        yield _preferences(folder, case, dice)
                except Exception as error:  # whatever it is, a person would see it
                    yield Outcome(case, f"{type(error).__name__}: {str(error)[:300]}")
        finally:
            store.close()
            library.close()


# ---- preferences


def _preferences(folder: Path, case: int, dice: random.Random) -> Outcome:
    path = folder / "preferences.json"
    _damage_preferences(path, dice)
    there = path.read_bytes() if path.is_file() else None
    file = PreferencesFile(folder)
    now = file.now
    if any(word in file.problem for word in _RAW):
        return Outcome(case, f"said to a person: {file.problem}")
    msgspec.convert(msgspec.to_builtins(now.settings), WindowSettings)  # raises for what is not allowed
    check(file.defaults)
    place = now.window
    if place and max(abs(place.x), abs(place.y), place.width, place.height) >= 2**24:
        return Outcome(case, f"a window at {place}")
    said = bool(file.problem)
    if said and now != Preferences():
        return Outcome(case, "what cannot be read is taken all the same")
    kept = folder / "preferences-damaged.json"
    if said and there is not None and (not kept.is_file() or kept.read_bytes() != there):
        return Outcome(case, "the damaged file is not kept")
    file.change(open_chat=f"new{case}")
    file.flush()
    again = PreferencesFile(folder)
    if not file.problem and (again.now != file.now or again.problem):
        return Outcome(case, f"what was written comes back changed: {again.problem}")
    return Outcome(case, "", {"preferences set aside" if said else "preferences taken": 1.0})


def _damage_preferences(path: Path, dice: random.Random) -> None:
    whole = Preferences(
        open_chat="c1",
        defaults=(Override("sampling.temperature", 0.7), Override("ngram_simple.k", 5)),
        window=WindowPlace(10, 20, 1300, 800),
        model="starter",
    )
    data = msgspec.json.encode(whole)
    kind = dice.randrange(8)
    if kind == 0:
        path.mkdir()
        return
    if kind == 1:
        path.symlink_to(dice.choice(["preferences.json", "nowhere.json", "/dev/null", "."]))
        return
    path.write_bytes(_damaged_json(data, dice) if kind < 6 else broken_bytes(data, dice))


# ---- imports


def _import(
    chats: Chats, library: Library, store: ChatStore, folder: Path, case: int, dice: random.Random
) -> Outcome:
    chat = replace(chat_of(dice.randrange(9), 2, dice.randint(0, 12)), name=dice.choice(["", "A name"]))
    message = Message("user", "# You\n```\nx", (Attachment("a.txt", "one\r\ntwo"),))
    chat = replace(chat, turns=(replace(chat.turns[0], user=message), *chat.turns[1:]))
    if dice.random() < 0.65:
        path, data = folder / "chats.json", to_json([chat, chat_of(3)])
        data = _damaged_json(data, dice) if dice.random() < 0.75 else broken_bytes(data, dice)
    else:
        path, data = folder / "chat.md", _damaged_markdown(to_markdown(chat), dice)
    path.write_bytes(data)
    try:
        found = [item[1] for item in ImportReading(path, InProcess(path)).chats() if isinstance(item, tuple)]
    except RequestError as error:
        if not error.message or any(word in error.message + error.hint for word in _RAW):
            return Outcome(case, f"said to a person: {error.message} {error.hint}")
        return Outcome(case, "", {"imports refused": 1.0})
    # A file may hold two states of a chat; the later one stays if it includes the other.
    added = {chat.id: chat for chat in (chats.add(each)[0] for each in found)}.values()
    if not library.flush():
        return Outcome(case, "an imported chat could not be saved")
    kept = [each for each in added if not each.is_blank]
    if any(store.load(each.id) != each for each in kept):
        return Outcome(case, "an imported chat comes back changed")
    store.heads("chats")
    chats.listed()
    for each in kept:
        if each.id != chats.open.id:
            chats.purge(each.id)
    return Outcome(case, "", {"imports taken": 1.0})


def _damaged_markdown(text: str, dice: random.Random) -> bytes:
    lines = text.split("\n")
    for _ in range(dice.randint(1, 12)):
        place = dice.randrange(len(lines) + 1)
        lines.insert(
            place,
            dice.choice(
                [
                    *lines,
                    "<!-- draftlight: question 0001-01-01T00:00:00 -->",
                    "<!-- draftlight: question 9999-99-99 -->",
                    "<!-- draftlight: question 0001-01-01T00:00:00+23:59 -->",
                    '<!-- draftlight: attachment "\\ud800" -->',
                    '<!-- draftlight: attachment {"a": ' + "[" * 3_000 + " -->",
                    "<!-- draftlight: answer --><!-- draftlight: question -->",
                    "```" * dice.randint(1, 500),
                    "#" * dice.randint(1, 9) + " **Assistant:**",
                    "# \x00\x0b\u2028",
                    "\\" * 2_000 + "<!-- draftlight: ",
                ]
            ),
        )
    data = dice.choice(["\n", "\r\n", "\r", "\n\r"]).join(lines).encode()
    return broken_bytes(data, dice) if dice.random() < 0.4 else data


def _damaged_json(data: bytes, dice: random.Random) -> bytes:
    """In other words than ours in some places; surrogates come as escapes."""
    root = json.loads(data)
    for _ in range(dice.choice([1, 1, 1, 2, 5])):
        damage_value(root, dice)
    return json.dumps(root).encode()


CAMPAIGN = Campaign(
    "preferences",
    "damaged preferences and damaged chat files are taken in whole or refused in words, and what is taken in"
    " comes back the same",
    60,
    4_000,
    _run,
)
