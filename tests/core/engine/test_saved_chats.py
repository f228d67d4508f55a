"""Chats on disk: after saving, a restart and loading, answers are what they are without; and when that is."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from mlx_lm.tokenizer_utils import TokenizerWrapper
from msgspec.structs import replace

from core.engine import saved_chats
from core.engine.engine import Engine
from core.events import Attachment, Finished, Generate, Message, ReadAheadProgress, SavedChatsListed
from core.kv.saved_files import SavedFiles
from core.models.loader import LoadedModel
from core.settings import Settings, assign_all
from core.settings.prefill import Prefill
from tests.core.architectures import ARCHITECTURES, build
from tests.core.engine.support import ONE_OF_EACH, SAMPLED, loaded_of, written
from tests.core.engine.test_sparse_session import prompt_of
from tests.core.toy import write_toy_model
from tests.thinned import thinned

CONTEXT_TOKENS = 2048
CHAT = "a chat"


@pytest.fixture
def files(tmp_path: Path) -> SavedFiles:
    return SavedFiles(tmp_path / "contexts")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Files that give a model an identity; the models of these tests are made in memory."""
    write_toy_model(tmp_path / "model")
    return tmp_path / "model"


class Seconds:
    """A clock that stands still."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def started(
    loaded: LoadedModel,
    files: SavedFiles | None = None,
    clock: Callable[[], float] = time.perf_counter,
    say: Callable[[Any], None] = lambda event: None,
) -> Engine:
    """An engine after a start of the worker, with `loaded`."""
    engine = Engine(say=say, clock=clock, saved_files=files)
    engine.use(loaded)
    return engine


def run(
    engine: Engine, prompt: Sequence[int], settings: Settings, chat: str = CHAT
) -> tuple[list[int], Finished]:
    tokens, finished = written(engine.generate_ids(prompt, settings, also=Generate("", (), chat=chat)))
    return [token.id for token in tokens], finished


def idle(engine: Engine) -> None:
    """All that is to be loaded and saved now."""
    while engine.saved_chats.piece():
        pass


# ---- equal answers


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=ONE_OF_EACH))
@pytest.mark.parametrize("sampled", thinned([False, True], keep=[False]))
@pytest.mark.parametrize("bits", ["off", pytest.param("8", marks=pytest.mark.sweep)])
def test_a_new_chat_about_the_document_of_a_saved_one(
    architecture: str, sampled: bool, bits: str, tokenizer: TokenizerWrapper, files: SavedFiles, folder: Path
) -> None:
    """Its answer is that of a cold start, the prefix comes from disk, and each chat has its own file."""
    loaded = long_model(architecture, tokenizer, folder)
    values = {**PLAIN, "drafting.drafter": "cacheback", "gate.mode": "always", "kv.bits": bits}
    chosen = assign_all(Settings(), {**values, **(SAMPLED if sampled else {})}.items())
    document = Attachment("log.txt", " ".join(f"Line {n}: {n * 7 % 13} errors." for n in range(40)))

    def ask(engine: Engine, question: str, chat: str) -> tuple[list[int], Finished]:
        messages = (Message("user", question, attachments=(document,)),)
        return answer(engine, Generate("", messages, chosen, chat=chat))

    engine = started(loaded, files)
    ask(engine, "Which line has the most errors?", CHAT)
    engine.unload()
    (path,) = files.folder.glob("*.safetensors")
    content = path.read_bytes()
    expected, cold = ask(started(loaded), "Is the last line right?", "")
    assert cold.stats.reused_tokens == 0

    engine = started(loaded, files)
    got, finished = ask(engine, "Is the last line right?", "a new chat")
    assert got == expected
    stats = finished.stats
    assert 256 < stats.disk_tokens == stats.reused_tokens < stats.prompt_tokens
    assert stats.prompt_tokens == stats.reused_tokens + stats.read_tokens
    assert engine.sequence.chat == "a new chat"
    engine.unload()
    assert path.read_bytes() == content
    assert files.usage()[0] == 2
    engine = started(loaded, files)
    engine.saved_chats.erase(["a new chat"])
    _, finished = ask(engine, "Which line has the most errors?", CHAT)
    assert finished.stats.disk_tokens > 256
    engine.unload()


DOCUMENTS = tuple(
    Attachment(f"{n}.txt", " ".join(f"Line {line}: {line * n % 13} errors." for line in range(30)))
    for n in (7, 5)
)


def ahead_of(documents: Sequence[Attachment], bits: str = "off", content: str = "") -> Generate:
    """A new chat's question about `documents`, read ahead."""
    values = {**PLAIN, "prefill.chunk_tokens": 64, "prefill.read_ahead": "on", "kv.bits": bits}
    return Generate("", (Message("user", content, tuple(documents)),), settings(**values), chat=CHAT)


def rest(engine: Engine, pieces: int = 10_000) -> None:
    """So many pieces of loading, saving and reading ahead."""
    for _ in range(pieces):
        if not (engine.saved_chats.piece() or engine._ahead.piece(engine._session, engine._guard)):
            break


def answer(engine: Engine, question: Generate) -> tuple[list[int], Finished]:
    tokens, finished = written(engine.generate(question))
    return [token.id for token in tokens], finished


@pytest.mark.sweep
@pytest.mark.parametrize("architecture", thinned(ARCHITECTURES, keep=["llama", "gemma3_text"]))
@pytest.mark.parametrize("bits", ["off", pytest.param("8", marks=pytest.mark.sweep)])
def test_what_was_read_ahead_before_a_restart_is_not_read_again(
    architecture: str, bits: str, tokenizer: TokenizerWrapper, files: SavedFiles, folder: Path
) -> None:
    loaded = long_model(architecture, tokenizer, folder)
    question = ahead_of(DOCUMENTS, bits, "Is the last line right?")
    expected, _ = answer(started(loaded), replace(question, chat=""))
    for pieces, is_opened in ((10_000, True), (10_000, False), (14, True)):
        said: list[Any] = []
        engine = started(loaded, files, say=said.append)
        engine.read_ahead(ahead_of(DOCUMENTS[:1], bits))
        rest(engine)
        first = said[-1].total_tokens
        engine.read_ahead(ahead_of(DOCUMENTS, bits))
        rest(engine, pieces)
        read = said[-1]
        assert read.done_tokens > first, "the second document is read after the first"
        engine.unload()

        said = []
        engine = started(loaded, files, say=said.append)
        if is_opened:
            engine.read_ahead(ahead_of(DOCUMENTS, bits))
            rest(engine)
            progress = [each for each in said if isinstance(each, ReadAheadProgress)]
            assert progress[0].done_tokens == read.done_tokens
            assert progress[-1].done_tokens == read.total_tokens
        got, finished = answer(engine, question)
        assert got == expected
        assert finished.stats.reused_tokens == (read.total_tokens if is_opened else read.done_tokens)
        assert finished.stats.disk_tokens == read.done_tokens
        engine.unload()
        # And after the question.
        engine = started(loaded, files)
        got, finished = answer(engine, question)
        assert got == expected
        assert finished.stats.disk_tokens >= read.total_tokens
        engine.saved_chats.erase([CHAT])
        engine.unload()


def test_a_removed_document_does_not_stay_on_the_disk(
    tokenizer: TokenizerWrapper, files: SavedFiles, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = long_model("llama", tokenizer, folder)

    def kept(*drafts: Sequence[Attachment], **values: object) -> int:
        """The number of files after a life of the worker, in which the chat's documents were `drafts`."""
        engine = started(loaded, files)
        for documents in drafts:
            draft = ahead_of(documents)
            draft = replace(draft, settings=assign_all(draft.settings, values.items()))
            engine.read_ahead(draft)
            rest(engine)
        engine.unload()
        return files.usage()[0]

    assert kept(DOCUMENTS) == 1
    size_bytes = files.usage()[1]
    assert kept(DOCUMENTS[:1]) == 1
    assert files.usage()[1] < 0.6 * size_bytes
    assert kept(()) == 0, "removed after a restart"
    assert kept(DOCUMENTS, ()) == 0
    assert kept((), **{"chat.system_prompt": DOCUMENTS[0].text}) == 0, "a chat that may never be one"
    assert kept(DOCUMENTS, **{"prefill.save": False}) == 0
    monkeypatch.setattr("core.engine.saved_chats.MOST_DISK_BYTES", 0)
    assert kept(DOCUMENTS) == 0


def long_model(name: str, tokenizer: TokenizerWrapper, folder: Path) -> LoadedModel:
    spec = ARCHITECTURES[name]
    model = build({**spec.config, "max_position_embeddings": CONTEXT_TOKENS}, spec.weight_scale)
    return loaded_of(name, tokenizer, str(folder), model, CONTEXT_TOKENS)


# ---- when


PLAIN: dict[str, object] = {
    "drafting.drafter": "off",
    "sampling.max_tokens": 10,
    "prefill.mode": "off",
    "tables.learn": False,
}


def settings(**values: object) -> Settings:
    return assign_all(Settings(), {**PLAIN, **values}.items())


class Chats:
    """A toy model, a folder and a clock, and what was said of the chats on disk."""

    def __init__(self, loaded: LoadedModel, files: SavedFiles) -> None:
        self.loaded, self.files, self.clock = loaded, files, Seconds()
        self.said: list[SavedChatsListed] = []
        self.engine = self.start()

    def start(self) -> Engine:
        self.engine = started(self.loaded, self.files, self.clock, self.said.append)
        return self.engine

    def ask(self, tokens: int, chat: str = CHAT, seed: int = 1, **values: object) -> Finished:
        _, finished = run(self.engine, prompt_of(seed, tokens), settings(**values), chat)
        return finished

    @property
    def count(self) -> int:
        return self.files.usage()[0]


@pytest.fixture
def chats(tokenizer: TokenizerWrapper, files: SavedFiles, folder: Path) -> Iterator[Chats]:
    chats = Chats(long_model("llama", tokenizer, folder), files)
    yield chats
    chats.engine.unload()


def test_30_seconds_after_an_answer_with_1024_new_tokens(chats: Chats) -> None:
    chats.ask(1014)
    chats.clock.now = 29.0
    idle(chats.engine)
    assert chats.engine.idle_due_s() == pytest.approx(1.0)
    chats.clock.now = 31.0
    idle(chats.engine)
    assert chats.count == 0, "1,023 tokens are in the cache: the last one was not read"
    chats.ask(1020)
    chats.clock.now = 61.0
    idle(chats.engine)
    assert chats.count == 1
    assert chats.said[-1].files == 1
    assert chats.said[-1].size_bytes == chats.files.usage()[1] > 0
    # Not again before so much is new.
    chats.ask(1100)
    chats.clock.now = 100.0
    idle(chats.engine)
    assert len(chats.said) == 1


def test_when_the_chat_is_left(chats: Chats) -> None:
    chats.engine.saved_chats.open(CHAT, Prefill())
    chats.ask(200)
    idle(chats.engine)
    assert chats.count == 0
    chats.engine.saved_chats.open("another", Prefill())
    idle(chats.engine)
    assert chats.count == 1
    chats.ask(150, "another", seed=2)
    chats.ask(160, "a third", seed=3)
    idle(chats.engine)
    assert chats.count == 2, "another chat asked"
    chats.ask(100, "short", seed=4)
    chats.engine.saved_chats.open("", Prefill())
    idle(chats.engine)
    assert chats.count == 3, "100 tokens are read faster than loaded"


def test_a_file_is_replaced_only_if_a_sixteenth_is_new(chats: Chats) -> None:
    for tokens, saves in ((1800, 1), (1890, 1), (1960, 2)):
        chats.ask(tokens)
        chats.engine.saved_chats.open(f"at {tokens}", Prefill())
        idle(chats.engine)
        assert len(chats.said) == saves


def test_an_opened_chat_is_loaded_before_its_question(chats: Chats) -> None:
    chats.ask(500)
    chats.engine.unload()
    engine = chats.start()
    engine.saved_chats.open(CHAT, Prefill())
    assert len(engine._session.prefix_cache) == 1
    idle(engine)
    assert len(engine.sequence.tokens) == 509
    assert engine.sequence.chat == CHAT
    # Nothing is left to be done at the question: the file is not opened again.
    chats.files.erase_all()
    finished = chats.ask(600)
    assert finished.stats.disk_tokens == finished.stats.reused_tokens == 500
    assert finished.effective.changes == ()


def test_a_question_ends_a_save_and_it_is_repeated(chats: Chats) -> None:
    chats.ask(400)
    chats.engine.saved_chats.open("another", Prefill())
    assert chats.engine.saved_chats.piece()
    assert chats.engine.saved_chats.piece()
    temporary = list(chats.files.folder.glob(".*"))
    assert len(temporary) == 1
    chats.ask(200, "another", seed=2)
    assert not temporary[0].exists()
    assert chats.count == 0
    idle(chats.engine)
    assert chats.count == 1


def test_a_question_waits_for_its_chat_to_be_loaded(chats: Chats) -> None:
    chats.ask(500)
    chats.engine.unload()
    engine = chats.start()
    engine.saved_chats.open(CHAT, Prefill())
    assert engine.saved_chats.piece()
    assert chats.ask(600).stats.disk_tokens == 500


def test_another_chat_than_the_loaded_one_reads_its_own(chats: Chats) -> None:
    chats.ask(500)
    chats.ask(400, "other", seed=2)
    chats.engine.unload()
    chats.start()
    assert chats.ask(600, "third", seed=3).stats.disk_tokens == 0
    assert chats.ask(600, "other", seed=2).stats.disk_tokens == 400
    assert chats.ask(600).stats.disk_tokens == 500


def test_which_file_of_another_chat_is_read(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    """The one that shares most; nothing for a few tokens, a sixteenth of a file, or what memory has."""
    shared = prompt_of(1, 700)
    for length, chat in ((300, "some"), (600, "most"), (250, "few")):
        run(chats.engine, [*shared[:length], *prompt_of(length, 300)], settings(), chat)
    run(chats.engine, [*prompt_of(5, 100), *prompt_of(6, 1900)], settings(), "long")
    chats.engine.unload()
    assert chats.count == 4
    opened: list[Path] = []
    opens = chats.files.open
    monkeypatch.setattr(chats.files, "open", lambda path: opened.append(path) or opens(path))

    def disk_tokens(prompt: list[int], chat: str, **values: object) -> int:
        return run(chats.engine, prompt, settings(**values), chat)[1].stats.disk_tokens

    chats.start()
    assert disk_tokens([*shared[:255], *prompt_of(9, 300)], "one") == 0
    monkeypatch.setattr(saved_chats, "_LEAST_PREFIX_TOKENS", 64)
    assert disk_tokens([*prompt_of(5, 100), *prompt_of(10, 300)], "two") == 0
    assert opened == []
    assert disk_tokens([*shared, *prompt_of(11, 30)], "three") == 600
    assert opened == [chats.files.path("most", chats.loaded.info.path)]
    held = [each.chat for each in chats.engine._session.prefix_cache.sequences if each.tokens]
    assert held == ["one", "two", "three"]
    # Memory has all but a few tokens.
    assert disk_tokens([*shared[:550], *prompt_of(12, 30)], "four") == 0
    # A chat that is not kept, or not saved, has nothing to do with the disk.
    chats.start()
    assert disk_tokens([*shared, 5], "") == 0
    chats.start()
    assert disk_tokens([*shared, 5], "five", **{"prefill.save": False}) == 0
    assert len(opened) == 1


def test_what_memory_has_is_not_loaded(chats: Chats) -> None:
    chats.ask(500)
    chats.engine.unload()
    engine = chats.start()
    chats.ask(600)
    engine.saved_chats.open(CHAT, Prefill())
    idle(engine)
    assert len([each for each in engine._session.prefix_cache.sequences if each.tokens]) == 1


def test_nothing_is_loaded_beyond_the_memory_for_prompts(chats: Chats) -> None:
    chats.ask(500)
    chats.engine.unload()
    engine = chats.start()
    engine.saved_chats.open(CHAT, Prefill(memory_mib=0))
    idle(engine)
    assert not engine.sequence.tokens
    assert chats.ask(600, **{"prefill.memory_mib": 0}).stats.disk_tokens == 0


def test_a_chat_that_would_go_from_memory_is_saved_before_another_is_loaded(chats: Chats) -> None:
    """Three chats of 0.4 MB in a memory of 1 MB."""
    small = {"prefill.memory_mib": 1}
    chats.ask(1500, "old", seed=2)
    chats.engine.unload()
    engine = chats.start()
    chats.ask(1500, **small)
    chats.ask(1500, "later", seed=3, **small)
    engine.saved_chats.open("old", Prefill(memory_mib=1))
    idle(engine)
    assert chats.count == 3
    assert [each.chat for each in engine._session.prefix_cache.sequences if each.tokens] == ["later", "old"]


# ---- off, erased, refused


def test_off(chats: Chats) -> None:
    chats.ask(500)
    chats.engine.unload()
    chats.start()
    off = {"prefill.save": False}
    assert chats.ask(600, **off).stats.disk_tokens == 0
    assert chats.count == 0, "its file is erased"
    chats.ask(300, "", seed=2)  # of no chat
    chats.engine.unload()
    assert chats.count == 0


def test_an_erased_chat_leaves_nothing(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    chats.ask(500)
    chats.ask(400, "other", seed=2)
    idle(chats.engine)
    assert chats.count == 1
    chats.engine.saved_chats.erase([CHAT])
    assert chats.count == 0
    assert chats.said[-1] == SavedChatsListed(0, 0)
    chats.engine.unload()
    assert chats.count == 1, "the other chat"
    saved_chats = chats.start().saved_chats
    with monkeypatch.context() as patch:
        patch.setattr(chats.files, "remove", lambda path: False)
        saved_chats.erase([], everything=True)
    assert chats.said[-1].problem == f"Not erased: 1 file in {chats.files.folder}"
    saved_chats.erase([], everything=True)
    assert chats.count == 0
    assert chats.said[-1].problem == ""


def test_erased_while_it_is_being_saved(chats: Chats) -> None:
    chats.ask(400)
    chats.engine.saved_chats.open("another", Prefill())
    assert chats.engine.saved_chats.piece()
    chats.engine.saved_chats.erase([], everything=True)
    idle(chats.engine)
    chats.engine.unload()
    assert chats.count == 0
    assert not list(chats.files.folder.glob("*.safetensors*"))


def test_erasing_a_chat_ends_no_work_on_another(chats: Chats) -> None:
    chats.ask(400)
    chats.engine.saved_chats.open("another", Prefill())
    assert chats.engine.saved_chats.piece()
    chats.engine.saved_chats.erase(["a third"])
    idle(chats.engine)
    assert chats.count == 1
    engine = chats.start()
    engine.saved_chats.open(CHAT, Prefill())
    assert engine.saved_chats.piece()
    engine.saved_chats.erase(["a third"])
    idle(engine)
    assert engine.sequence.chat == CHAT


def test_what_another_model_saved_is_removed(chats: Chats, folder: Path) -> None:
    chats.ask(500)
    chats.engine.unload()
    write_toy_model(folder, seed=3)
    chats.start()
    assert chats.ask(600).stats.disk_tokens == 0
    assert chats.count == 0
    assert chats.said[-1].files == 0


@pytest.mark.parametrize(("empty", "chat"), [(False, CHAT), (True, CHAT), (False, "another")])
def test_a_damaged_file_is_removed_and_the_prompt_read_anew(chats: Chats, empty: bool, chat: str) -> None:
    chats.ask(700)
    chats.engine.unload()
    (path,) = chats.files.folder.glob("*.safetensors")
    content = bytearray(path.read_bytes())
    content[-9000] ^= 4
    path.write_bytes(b"" if empty else content)
    expected, _ = run(started(chats.loaded), prompt_of(1, 600), settings(), "")
    chats.start()
    got, finished = run(chats.engine, prompt_of(1, 600), settings(), chat)
    assert (got, finished.stats.reused_tokens, chats.count) == (expected, 0, 0)


def test_the_limit_is_named_in_the_next_answer(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.engine.saved_chats.MOST_DISK_BYTES", 0)
    words = "the limit is 0 MB"
    chats.ask(500)
    chats.engine.saved_chats.open("another", Prefill())
    idle(chats.engine)
    assert chats.count == 0
    assert words in chats.said[-1].problem
    (change,) = chats.ask(520).effective.changes
    assert (change.setting, change.used) == ("prefill.save", "on, but not saved")
    assert words in change.reason


def test_a_lower_limit_holds_from_the_next_start(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    """The oldest files go, and no more of them than have to."""
    names = [f"chat {number}" for number in range(4)]
    for seed, name in enumerate(names):
        chats.ask(1500, name, seed=seed)
        chats.engine.saved_chats.open("", Prefill())
        idle(chats.engine)
    chats.engine.unload()
    assert chats.count == 4
    fitting = (1 << 20) // (chats.files.usage()[1] // 4)
    monkeypatch.setattr("core.engine.saved_chats.MOST_DISK_BYTES", 1 << 20)
    chats.start().saved_chats.open("chat 3", Prefill())
    idle(chats.engine)
    left = [name for name in names if chats.files.path(name, chats.loaded.info.path).exists()]
    assert left == names[-fitting:]


def test_a_full_disk_is_named_and_nothing_is_lost(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    chats.ask(500)
    chats.engine.unload()
    before = {path: path.read_bytes() for path in chats.files.folder.glob("*.safetensors")}
    chats.start()
    chats.ask(700)

    def full(path: Path) -> Any:
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(chats.files, "writing", full)
    chats.engine.saved_chats.open("another", Prefill())
    idle(chats.engine)
    assert "No space left" in chats.said[-1].problem
    assert {path: path.read_bytes() for path in chats.files.folder.glob("*.safetensors")} == before
    monkeypatch.undo()
    (change,) = chats.ask(720).effective.changes
    assert "No space left" in change.reason
    chats.engine.saved_chats.open(CHAT, Prefill())
    chats.engine.saved_chats.open("", Prefill())
    idle(chats.engine)
    assert chats.said[-1].problem == ""


def test_ending_takes_no_longer_than_its_time(chats: Chats, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(3):
        chats.ask(500, f"chat {seed}", seed=seed)
    begun: list[Path] = []
    reserve = chats.files.reserve
    monkeypatch.setattr(chats.files, "reserve", lambda *given: begun.append(given[0]) or reserve(*given))
    times = iter(range(0, 1000, 3))
    monkeypatch.setattr(chats.engine.saved_chats, "_clock", lambda: next(times))
    chats.engine.unload()
    assert (chats.count, len(begun)) == (0, 1)
    assert not list(chats.files.folder.glob(".*.tmp"))
