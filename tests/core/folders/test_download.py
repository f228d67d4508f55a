"""Downloads over real HTTP: whole, cut off, paused, resumed, refused, damaged."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import socket
import ssl
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from core.errors import DownloadError, ModelError
from core.events import Message, Tool
from core.folders import download as download_module
from core.folders.download import Download, discard, in_words, partial_progress, staging_folder, unfinished
from core.folders.heads import found_heads
from core.folders.places import download_folder
from core.models.loader import load
from core.prompt import render
from tests.core.headed_models import PLACES, SEPARATE, Layout, separate_folder, write_headed_model
from tests.core.toy import TEMPLATE
from tests.hub import COMMIT, Hub, serving

NAME = "tests/Toy-1M-4bit"
WEIGHTS = "model.safetensors"


@pytest.fixture(scope="module")
def served() -> Iterator[Hub]:
    with serving() as hub:
        yield hub


@pytest.fixture
def hub(served: Hub, tmp_path: Path, toy_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Hub:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HF_ENDPOINT", served.address)
    folder = tmp_path / "served"
    shutil.copytree(toy_folder, folder)
    (folder / "README.md").write_text("Not needed.")
    (folder / "pytorch_model.bin").write_bytes(b"Not needed either.")
    served.folders, served.asked, served.commit = {NAME: folder}, [], COMMIT
    served.trouble = type(served.trouble)()
    return served


@pytest.mark.parametrize("place", PLACES)
def test_an_mtp_head_comes_with_its_model_or_alone(place: str, hub: Hub, tmp_path: Path) -> None:
    source = tmp_path / "Tiny-4bit"
    write_headed_model(source, "qwen3_5", Layout(place))
    (source / "other").mkdir()
    shutil.copy(source / "model.safetensors", source / "other" / "model.safetensors")
    hub.folders = {"tests/Tiny-4bit": source, "tests/Tiny-MTP": separate_folder(source)}
    folder = Download("tests/Tiny-4bit").run()
    assert not (folder / "other").exists()
    if place == SEPARATE:
        assert not found_heads(folder)
        hub.folders.pop("tests/Tiny-4bit")
        assert Download("tests/Tiny-MTP").run() == Download("tests/Tiny-MTP").run()
    head = next(iter(found_heads(folder)), None)
    assert head is not None
    assert head.problem == ""


def test_further_chat_templates_come_with_the_model(hub: Hub) -> None:
    served = hub.folders[NAME]
    inside = served / "additional_chat_templates"
    inside.mkdir()
    (served / "chat_template.jinja").write_text(TEMPLATE)
    (inside / "tool_use.jinja").write_text("{% if tools %}{{ tools | tojson }}{% endif %}" + TEMPLATE)
    for name in ("README.md", ".hidden.jinja", "more/deep.jinja"):
        (inside / name).parent.mkdir(exist_ok=True)
        (inside / name).write_text("Not needed.")
    folder = Download(NAME).run()
    assert [path.name for path in (folder / inside.name).iterdir()] == ["tool_use.jinja"]
    tool = Tool("weather", "Of a city.", "{}")
    prompt = render(load(NAME).tokenizer, (Message("user", "Rain?"),), tools=(tool,))
    assert '"name": "weather"' in prompt.text
    assert not prompt.changes  # the tool is not described in the system prompt


class Interrupted(Exception):
    """Stands for a process that ends in mid-download."""


# Share of the download at which the small files are there. The weights take at least two reads of 64 KiB.
WEIGHTS_BEGUN = 0.06


def interrupt_after(share: float) -> Download:
    def heard(done: int, total: int) -> None:
        if done >= share * total:
            raise Interrupted

    return Download(NAME, heard)


def quick(**options: object) -> Download:
    return Download(NAME, wait=lambda seconds: None, **options)  # type: ignore[arg-type]


def test_what_arrives_is_what_is_there_and_loads(hub: Hub) -> None:
    heard: list[tuple[int, int]] = []
    folder = Download(NAME, lambda done, total: heard.append((done, total))).run()
    assert folder == download_folder(NAME)
    wanted = {"config.json", "tokenizer.json", "tokenizer_config.json", WEIGHTS}
    assert {path.name for path in folder.iterdir()} == {*wanted, "draftlight-download.json"}
    for name in wanted:
        assert (folder / name).read_bytes() == (hub.folders[NAME] / name).read_bytes()
    assert [done for done, _ in heard] == sorted(done for done, _ in heard)
    assert heard[-1][0] == heard[-1][1] == sum((folder / name).stat().st_size for name in wanted)
    assert {total for _, total in heard} == {heard[-1][1]}
    assert load(NAME).info.name == "Toy 1M"
    assert not list(unfinished())
    assert [path.rpartition("/")[2] for path, _ in hub.asked][-1] == WEIGHTS  # the large files come last


def test_what_is_here_is_not_fetched_again_unless_it_is_damaged(hub: Hub) -> None:
    folder = Download(NAME).run()
    hub.asked.clear()
    assert Download(NAME).run() == folder
    assert hub.asked == []
    weights = folder / WEIGHTS
    weights.write_bytes(weights.read_bytes()[:100])
    Download(NAME).run()
    assert weights.read_bytes() == (hub.folders[NAME] / WEIGHTS).read_bytes()


def test_a_cut_connection_is_taken_up_where_it_ended(hub: Hub) -> None:
    hub.trouble.cut_after_bytes, hub.trouble.cuts = 30_000, 2
    folder = quick().run()
    ranges = hub.ranges_of(WEIGHTS)
    assert ranges[0] == ""
    starts = [int(wanted.removeprefix("bytes=").rstrip("-")) for wanted in ranges[1:]]
    assert starts == [30_000, 60_000]
    assert (folder / WEIGHTS).read_bytes() == (hub.folders[NAME] / WEIGHTS).read_bytes()


def test_after_many_cuts_it_stops_and_keeps_what_arrived(hub: Hub) -> None:
    hub.trouble.cut_after_bytes, hub.trouble.cuts = 0, 100
    with pytest.raises(DownloadError, match="was interrupted") as caught:
        quick(attempts=3).run()
    assert "kept" in caught.value.hint
    assert len(hub.ranges_of(WEIGHTS)) == 3
    assert partial_progress(NAME).done_bytes > 0
    hub.trouble.cuts = 0
    hub.asked.clear()
    quick().run()
    assert hub.ranges_of("config.json") == []


def test_an_interrupted_one_goes_on(hub: Hub) -> None:
    with pytest.raises(Interrupted):
        interrupt_after(WEIGHTS_BEGUN).run()
    partial = partial_progress(NAME)
    assert WEIGHTS_BEGUN < partial.done_bytes / partial.total_bytes < 1
    part = (staging_folder(NAME) / f"{WEIGHTS}.part").stat().st_size
    assert list(unfinished()) == [partial]
    hub.asked.clear()
    Download(NAME).run()
    assert hub.asked == [(f"/{NAME}/resolve/{'c' * 40}/{WEIGHTS}", f"bytes={part}-")]
    load(NAME)


def test_a_model_that_changed_meanwhile_goes_on_with_what_is_the_same(hub: Hub) -> None:
    with pytest.raises(Interrupted):
        interrupt_after(WEIGHTS_BEGUN).run()
    part = (staging_folder(NAME) / f"{WEIGHTS}.part").stat().st_size
    hub.commit = "d" * 40
    (hub.folders[NAME] / "tokenizer_config.json").rename(hub.folders[NAME] / "special_tokens_map.json")
    config = hub.folders[NAME] / "config.json"
    config.write_text(config.read_text() + " ")
    hub.asked.clear()
    folder = Download(NAME).run()
    assert {path.name for path in folder.iterdir()} >= {"special_tokens_map.json", WEIGHTS}
    assert not (folder / "tokenizer_config.json").exists()
    for name in ("config.json", WEIGHTS):
        assert (folder / name).read_bytes() == (hub.folders[NAME] / name).read_bytes()
    assert hub.ranges_of(WEIGHTS)[-1] == f"bytes={part}-"
    hub.commit = "e" * 40  # whose files cannot be had at all
    shutil.rmtree(folder)
    with pytest.raises(Interrupted):
        interrupt_after(WEIGHTS_BEGUN).run()
    hub.folders.clear()
    with pytest.raises(ModelError, match="no model “tests/Toy-1M-4bit” on the hub"):
        quick().run()


@pytest.mark.parametrize("damaged", [False, True])
def test_without_ranges_or_a_sound_part_all_of_it_is_fetched_again(hub: Hub, damaged: bool) -> None:
    with pytest.raises(Interrupted):
        interrupt_after(WEIGHTS_BEGUN).run()
    hub.trouble.no_ranges = not damaged
    part = staging_folder(NAME) / f"{WEIGHTS}.part"
    part.write_bytes(b"x" * part.stat().st_size if damaged else part.read_bytes())
    folder = Download(NAME).run()
    assert not damaged or hub.ranges_of(WEIGHTS)[-1] == ""
    assert (folder / WEIGHTS).read_bytes() == (hub.folders[NAME] / WEIGHTS).read_bytes()


def test_a_wrong_hash_is_never_taken(hub: Hub) -> None:
    hub.trouble.wrong_hash = True
    with pytest.raises(DownloadError, match="does not match its checksum"):
        quick().run()
    assert not download_folder(NAME).exists()


def test_a_full_disk_is_told_before_anything_is_fetched(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1000))
    with pytest.raises(DownloadError, match=r"needs .* GB more, and 0.0 GB are free"):
        Download(NAME).run()
    assert hub.ranges_of(WEIGHTS) == []


def test_discarding_leaves_nothing_or_says_so(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*given: object, **named: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with pytest.raises(Interrupted):
        interrupt_after(WEIGHTS_BEGUN).run()
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", fails)
        with pytest.raises(DownloadError, match="cannot be removed: access is not allowed"):
            discard(NAME)
    discard(NAME)
    assert not staging_folder(NAME).exists()
    assert not list(unfinished())


def test_two_at_once_do_not_mix(hub: Hub) -> None:
    def second(done: int, total: int) -> None:
        with pytest.raises(DownloadError, match="another Draftlight"):
            Download(NAME).run()
        with pytest.raises(DownloadError, match="another Draftlight"):
            discard(NAME)

    Download(NAME, second).run()


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("nobody/nothing", "no model “nobody/nothing” on the hub"),
        ("just-a-word", "not a hub name"),
        ("../x", "not a"),
    ],
)
def test_names_that_lead_nowhere(hub: Hub, name: str, words: str) -> None:
    with pytest.raises(ModelError, match=words):
        Download(name).run()
    assert not list(unfinished())


def test_a_gated_model_says_what_to_do(hub: Hub) -> None:
    hub.trouble.gated = True
    with pytest.raises(DownloadError, match="agreed to its terms") as caught:
        Download(NAME).run()
    assert "hf auth login" in caught.value.hint


def test_a_hub_that_is_down(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    hub.trouble.refuse_with = 503
    with pytest.raises(DownloadError, match="status 503"):
        quick(attempts=1).run()
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(DownloadError, match=r"cannot be reached \(the connection was refused\)"):
        quick(attempts=1).run()


def transport_errors() -> list[Exception]:
    """One of each exception that the transport or the system can raise while a file is fetched."""
    found: list[Exception] = [
        socket.gaierror(-2, "Name or service not known"),
        ssl.SSLCertVerificationError(1, "certificate verify failed"),
        ssl.SSLError(1, "[SSL: WRONG_VERSION_NUMBER] wrong version number (_ssl.c:1006)"),
        RuntimeError("Cannot send a request, as the client has been closed."),
    ]
    found += [OSError(number, os.strerror(number)) for number in sorted(errno.errorcode)]
    kinds = [each for each in vars(httpx2).values() if isinstance(each, type) and issubclass(each, Exception)]
    for kind in kinds:
        with suppress(TypeError):  # those that need a response never come from the transport
            found.append(kind("[Errno -2] Name or service not known"))
    assert len(found) > 150
    return found


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_reason_of_a_failure_is_in_words(wrapped: bool) -> None:
    for error in transport_errors():
        shown = error
        if wrapped:
            shown = httpx2.ConnectError("All connection attempts failed")
            shown.__cause__ = error
        text = in_words(shown)
        assert re.fullmatch(r"[a-z][\w ,'/()-]+", text), (error, text)
        assert not re.search(r"Errno|[A-Z]\w+(Error|Exception|Timeout|Failure)|_ssl|\d{3}", text), (
            error,
            text,
        )
        assert type(error).__name__ not in text


def test_the_usual_reasons_are_told_apart() -> None:
    said = [
        in_words(error)
        for error in (
            socket.gaierror(-3, "Temporary failure in name resolution"),
            ConnectionRefusedError(111, "Connection refused"),
            httpx2.ReadTimeout("timed out"),
            ConnectionResetError(104, "Connection reset by peer"),
            OSError(errno.ENOSPC, "No space left on device"),
            ssl.SSLCertVerificationError(1, "certificate verify failed"),
        )
    ]
    assert len(set(said)) == len(said)
    assert "network connection" in said[0]
    assert "disk is full" in said[4]


def test_other_forms_of_weights_are_named(hub: Hub) -> None:
    (hub.folders[NAME] / WEIGHTS).rename(hub.folders[NAME] / "model.gguf")
    with pytest.raises(ModelError, match=r"no model\*.safetensors; its weights are .bin and .gguf files"):
        Download(NAME).run()


def test_a_type_that_cannot_be_loaded_is_refused_before_its_weights(hub: Hub) -> None:
    config = hub.folders[NAME] / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "model_type": "abacus"}))
    with pytest.raises(ModelError, match="abacus"):
        Download(NAME).run()
    assert hub.ranges_of(WEIGHTS) == []


def test_a_search_marks_the_models_that_see(hub: Hub, tmp_path: Path) -> None:
    """By what the hub's list says of them; other types with images are not supported here."""
    for name, config in (
        ("a/eyes-1", {"model_type": "qwen3_5", "vision_config": {}}),
        ("a/eyes-2", {"model_type": "qwen3_5"}),
        ("a/eyes-3", {"model_type": "pixtral", "vision_config": {}}),
    ):
        folder = tmp_path / name
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(config))
        hub.folders[name] = folder
    assert {each.model: each.sees for each in download_module.search("eyes")} == {
        "a/eyes-1": True,
        "a/eyes-2": False,
        "a/eyes-3": False,
    }


def test_search(hub: Hub) -> None:
    assert [each.model for each in download_module.search("toy")] == [NAME]
    assert download_module.search("nothing of that name") == ()
    for status, words in (
        (503, "the hub answered with status 503"),
        (401, "the hub does not accept your login"),
    ):
        hub.trouble.refuse_with = status
        with pytest.raises(DownloadError, match=rf"The search for “toy” failed: {words}\."):
            download_module.search("toy")
