"""Kills the real window at a random moment by a random signal, reads its store, and starts the next one.

The moments: while it loads or rests; just after a question in a new or an old chat; while an answer streams;
while a chat is renamed, moved to a new project, deleted, deleted for good in Recently Deleted, or branched.
The signals: SIGKILL, SIGTERM (which closes it in order), SIGSEGV, SIGABRT.

Then the store is opened by the product's own code and has to be whole. Every other chat has to be unchanged;
a question that the worker received has to be there, and all of its answer that was shown a second before the
end. A change has to be absent or complete, and complete if it was a second old. A chat that was deleted more
than 30 days ago has to go. The next window has to list and show all of it: it is the one that the next case
kills. A home lasts for some cases; the model is a tiny one, its worker the real one.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from msgspec import Struct

from app.session.chats.chats import KEPT_DELETED, UNFINISHED_NOTE
from app.session.chats.conversation import Conversation
from app.store.library import Library
from tests.app.store.chats import chat_of
from tests.attack.campaign import Campaign, Outcome, case_random
from tests.attack.support.kept_worker import KeptWorker, kept_worker
from tests.attack.support.window_server import Report
from tests.attack.support.window_talk import WindowTalk
from tests.attack.support.worker_talk import Broken

_SIGNALS = ("SIGKILL", "SIGTERM", "SIGSEGV", "SIGABRT")
_MOMENTS = ("load", "ask-new", "ask-old", "stream", "rename", "move", "delete", "purge", "branch", "idle")
_WEIGHTS = (9, 20, 20, 17, 7, 6, 6, 6, 8, 7)
_LOST_S = 1.0
_CASES_A_HOME = 25
_MOST_TURNS = 5
Chats = Mapping[str, Conversation]


class _Deed(Struct):
    """What the window did in one case, and when it was killed."""

    moment: str
    chat: str = ""  # that was touched
    born: str = ""  # the chat that was made
    turn: str = ""
    text: str = ""
    done_s: float = 0.0
    killed_s: float = 0.0
    orderly: bool = False

    @property
    def must_be_kept(self) -> bool:
        """Whether all of it has to be on the disk."""
        return self.done_s > 0 and (self.orderly or self.killed_s - self.done_s > _LOST_S)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    from tests.core.toy import write_toy_model

    with tempfile.TemporaryDirectory(prefix="draftlight-attack-") as name:
        folder = Path(name)
        write_toy_model(folder / "toy", max_position_embeddings=8192)
        with kept_worker(folder) as worker:
            talk = WindowTalk(folder, worker, str(folder / "toy"))
            try:
                yield from _cases(seed, cases, folder, worker, talk)
            finally:
                talk.close()


def _cases(
    seed: int, cases: Sequence[int], folder: Path, worker: KeptWorker, talk: WindowTalk
) -> Iterator[Outcome]:
    home, known = _new_home(folder, 0)
    talk.start(home)
    for number, case in enumerate(cases):
        if number and number % _CASES_A_HOME == 0:
            talk.end()
            home, known = _new_home(folder, number)
            talk.start(home)
        chance = case_random("window-kills", seed, case)
        # The first cases try each moment once, so that a quick run tries them all.
        moment = _MOMENTS[case] if case < len(_MOMENTS) else chance.choices(_MOMENTS, _WEIGHTS)[0]
        signal_name = chance.choice(_SIGNALS)
        fault, deed, began_s = "", _Deed(moment), time.monotonic()
        counts: dict[str, float] = {"kills": 1, f"kills_at_{moment}": 1}
        peaks: dict[str, float] = {}
        try:
            _bring(talk, worker, deed, known, chance)
            deed.killed_s, deed.orderly = talk.kill(signal_name), signal_name == "SIGTERM"
            if any(heard.what == "trouble" for heard in talk.heard):
                raise Broken(f"the window said: {[h.text for h in talk.heard if h.what == 'trouble']}")
            after = _stored(home)
            _check(deed, known, after, worker, talk.heard, counts, peaks)
            known = after
            talk.start(home)
            _shown(talk, deed, known)
        except Broken as broken:
            fault = f"{signal_name} at {moment}: {broken}"
            talk.end()
            home, known = _new_home(folder, f"after-{case}")
            talk.start(home)
        peaks["case_s"] = time.monotonic() - began_s
        yield Outcome(case, fault, counts, peaks)


def _new_home(folder: Path, name: object) -> tuple[Path, Chats]:
    """A folder with a few chats written by the store, one of them deleted longer ago than it is kept."""
    home = folder / f"home-{name}"
    library = Library(home)
    for number in range(1, 4):
        library.save(chat_of(number, turns=2, tokens=24))
    library.save(chat_of(4).with_deleted(datetime.now(UTC) - KEPT_DELETED - timedelta(hours=1)))
    if not library.close():
        raise Broken("a new store could not be written")
    return home, _stored(home)


def _bring(talk: WindowTalk, worker: KeptWorker, deed: _Deed, known: Chats, chance: random.Random) -> None:
    """Bring the window to the moment, somewhere within it. Raises `Broken`."""
    if deed.moment == "load":
        talk.rest(chance.uniform(0.0, 0.5))
        return
    talk.until("ready")
    old = [each for each in known.values() if each.turns and not each.deleted]
    few = [each.id for each in old if len(each.turns) < _MOST_TURNS]
    deed.chat = chance.choice(few or [each.id for each in old] or [""])
    words = "".join(chance.choice("abcdefgh ") for _ in range(30)).split()
    deed.text = " ".join(words) + "?"  # a name is stored with single spaces
    # Now and then long enough for the promise to bind.
    pause_s = chance.uniform(0.0, 0.4) if chance.random() < 0.8 else chance.uniform(1.0, 1.4)
    if deed.moment == "idle" or not (deed.chat or deed.moment in ("ask-new", "stream")):
        deed.chat = ""
        talk.rest(pause_s)
        return
    if deed.moment in ("ask-new", "ask-old", "stream"):
        if deed.moment == "ask-new" or (deed.moment == "stream" and chance.random() < 0.5):
            deed.chat = ""
        talk.tell("ask", deed.chat, deed.text)
        sent = talk.until("sent")
        deed.turn, deed.done_s = sent.turn, sent.at_s
        if not deed.chat:
            deed.chat = deed.born = sent.chat
        if deed.moment == "stream":
            talk.until("tokens")
            talk.rest(chance.uniform(0.0, 2.2))
        elif chance.random() < 0.5:
            talk.rest(chance.uniform(0.0, 0.1))
        else:
            _until_given(talk, worker, sent.turn)
            talk.rest(chance.choice((0.0, chance.uniform(0.0, 0.05))))
        return
    talk.tell(deed.moment, deed.chat, deed.text)
    if chance.random() < 0.8:
        done = talk.until("done")
        deed.done_s = done.at_s
        deed.born = done.chat if deed.moment == "branch" else ""
        talk.rest(pause_s)
    else:
        talk.rest(chance.uniform(0.0, 0.02))


def _until_given(talk: WindowTalk, worker: KeptWorker, turn: str, timeout_s: float = 10.0) -> None:
    end_s = time.monotonic() + timeout_s
    while turn not in worker.asked:
        if time.monotonic() > end_s:
            raise Broken(f"the worker was not given the question within {timeout_s:g} s")
        time.sleep(0.001)


def _stored(home: Path) -> dict[str, Conversation]:
    """All chats as the product's own code reads them. Raises `Broken`."""
    library = Library(home)
    try:
        if library.problem:
            raise Broken(f"the store reports {library.problem}")
        chats = {each.id: library.load(each.id).settled(UNFINISHED_NOTE) for each in library.summaries()}
        if library.problem:
            raise Broken(f"the store reports {library.problem}")
        projects = {project.id for project in library.projects()}
    finally:
        library.close()
    if any(chat.project and chat.project not in projects for chat in chats.values()):
        raise Broken("a chat is in a project that is not stored")
    return chats


def _check(
    deed: _Deed,
    before: Chats,
    after: Chats,
    worker: KeptWorker,
    heard: Sequence[Report],
    counts: dict[str, float],
    peaks: dict[str, float],
) -> None:
    """Raises `Broken` at what was promised and is not so."""
    for chat_id, old in before.items():
        new = after.get(chat_id)
        if new is None:
            if not (_is_overdue(old) or (deed.moment == "purge" and chat_id == deed.chat)):
                raise Broken("an earlier chat is missing")
        elif _is_overdue(old) and deed.orderly and deed.moment != "load":
            raise Broken("a chat was kept longer than 30 days after it was deleted")
        elif chat_id != deed.chat:
            if new != old:
                raise Broken(f"an earlier chat is changed: {_difference(old, new)}")
        elif new.turns[: len(old.turns)] != old.turns:
            raise Broken(f"earlier turns are changed: {_difference(old, new)}")
        elif new.name != old.name and not (deed.moment == "rename" and new.name == deed.text):
            raise Broken(f"the name became {new.name!r}")
        elif new.project != old.project and deed.moment != "move":
            raise Broken("a chat is in another project")
        elif bool(new.deleted) != bool(old.deleted) and deed.moment not in ("delete", "purge"):
            raise Broken("a chat counts as deleted")
    for chat_id in after.keys() - before.keys():
        made = after[chat_id]
        if made.turns and chat_id != deed.born and not (deed.moment == "branch" and not deed.done_s):
            raise Broken("there is a chat that nobody made")
        if made.turns and deed.moment == "branch" and made.turns != before[deed.chat].turns:
            raise Broken("a branch is not as its chat was")
    if deed.turn:
        _check_answer(deed, after, worker, heard, counts, peaks)
    elif deed.must_be_kept:
        counts["changes_that_had_to_be_kept"] = 1
        _check_change(deed, after)


def _check_change(deed: _Deed, after: Chats) -> None:
    chat = after.get(deed.chat)
    kept = {
        "rename": chat is not None and chat.name == deed.text,
        "move": chat is not None and bool(chat.project),
        "delete": chat is not None and chat.deleted is not None,
        "purge": chat is None,
        "branch": deed.born in after,
    }
    if not kept[deed.moment]:
        raise Broken(f"it was not kept after {deed.killed_s - deed.done_s:.2f} s")


def _check_answer(
    deed: _Deed,
    after: Chats,
    worker: KeptWorker,
    heard: Sequence[Report],
    counts: dict[str, float],
    peaks: dict[str, float],
) -> None:
    chat = after.get(deed.chat)
    found = chat.turn(deed.turn) if chat and chat.has(deed.turn) else None
    given = worker.asked.get(deed.turn, deed.killed_s) < deed.killed_s
    counts["questions_given_to_the_worker"] = int(given)
    if found is None:
        if given or deed.orderly:
            raise Broken("a question that the worker was given is not there")
        return
    counts["questions_kept"] = 1
    if found.user.content != deed.text:
        raise Broken(f"the question became {found.user.content!r}")
    seen = [(each.at_s, token) for each in heard if each.what == "tokens" for token in each.ids]
    stored = [token.id for token in found.answer.tokens]
    streamed = [token for _, token in seen]
    if any(one != other for one, other in zip(stored, streamed, strict=False)):
        raise Broken("what is stored of the answer is not what was shown")
    bound_s = deed.killed_s - (0.0 if deed.orderly else _LOST_S)
    needed = sum(1 for at_s, _ in seen if at_s <= bound_s)
    counts["tokens_shown"] = len(streamed)
    counts["tokens_that_had_to_be_kept"] = needed
    counts["tokens_lost"] = max(0, len(streamed) - len(stored))
    if len(stored) < len(streamed) and not deed.orderly:
        peaks["lost_s"] = deed.killed_s - seen[len(stored)][0]
    if len(stored) < needed:
        lost_s = deed.killed_s - seen[len(stored)][0]
        raise Broken(f"of an answer the last {lost_s:.2f} s are lost, {len(streamed) - len(stored)} tokens")


def _shown(talk: WindowTalk, deed: _Deed, known: Chats) -> None:
    """The window that has just started shows what is stored. Raises `Broken`."""
    chat = known.get(deed.chat)
    living = chat is not None and chat.turns and not chat.deleted
    talk.tell("look", deed.chat if living else "")
    look = talk.until("look")
    listed = {each.id for each in known.values() if each.turns and not each.deleted}
    if set(look.listed) != listed:
        missing, more = listed - set(look.listed), set(look.listed) - listed
        raise Broken(f"the next window lists {len(missing)} too few and {len(more)} too many")
    if living and chat and list(look.answers) != [turn.answer.text for turn in chat.turns]:
        raise Broken("the next window shows other answers than are stored")


def _is_overdue(chat: Conversation) -> bool:
    return chat.deleted is not None and datetime.now(UTC) - chat.deleted >= KEPT_DELETED


def _difference(old: Conversation, new: Conversation) -> str:
    names = [name for name in old.__struct_fields__ if getattr(old, name) != getattr(new, name)]
    return f"{', '.join(names)}; {len(old.turns)} turns, now {len(new.turns)}"


CAMPAIGN = Campaign(
    "window-kills",
    "A question is on the disk before the worker has it, of an answer at most the last second is lost,"
    " every other chat is as it was, and the next window shows it all.",
    len(_MOMENTS),
    1000,
    _run,
)
