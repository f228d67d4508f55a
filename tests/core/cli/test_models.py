"""`draftlight models` as a person calls it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from core.cli import main
from tests.core.toy import write_toy_model
from tests.hub import Hub, Trouble, serving
from tests.processes import set_home

NAME = "tests/Toy-1M"
COMMAND = [sys.executable, "-m", "core.cli", "models"]


# A download whose library loses every KeyboardInterrupt, as one does that comes in a destructor.
DEAF = """
import sys, time
from core import cli
from core.folders import download

def look_up(model):
    print("looking it up", flush=True)
    while True:
        try:
            time.sleep(60)
        except KeyboardInterrupt:
            pass

download.look_up = look_up
sys.exit(cli.main())
"""


def models(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *arguments], capture_output=True, text=True, timeout=120, check=False)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[str]]:
    """A process that is gone when the block ends, however that happens."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    set_home(monkeypatch, tmp_path / "home")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    write_toy_model(tmp_path / "served", hidden_size=128, intermediate_size=512)
    with serving() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.address)
        hub.folders = {NAME: tmp_path / "served"}
        yield hub


@pytest.mark.sweep
def test_a_models_whole_life(hub: Hub, toy_folder: Path) -> None:
    done = models("download", NAME)
    assert done.returncode == 0, done.stderr
    assert f"Downloaded {NAME} to" in done.stdout
    done = models("import", str(toy_folder))
    assert done.returncode == 0, done.stderr
    done = models("list", "--context", "256")
    assert done.returncode == 0, done.stderr
    assert f"Toy 1M  ({NAME})" in done.stdout
    assert "Fits: about" in done.stdout
    assert "with a context of 256 tokens" in done.stdout
    assert "draft models: toy" in done.stdout
    listed = json.loads(models("list", "--json").stdout)
    by_reference = {entry["reference"]: entry for entry in listed["models"]}
    assert set(by_reference) == {"starter", NAME, str(toy_folder)}
    assert by_reference[NAME]["family"] == by_reference[str(toy_folder)]["family"] != ""
    assert models("remove", NAME).returncode == 1
    done = models("remove", "toy", "--yes")
    assert (done.returncode, done.stdout) == (0, "Removed toy.\n")
    assert toy_folder.is_dir()
    assert "are free again" in models("remove", NAME, "--yes").stdout
    assert list(by_reference)[:1] == [
        entry["reference"] for entry in json.loads(models("list", "--json").stdout)["models"]
    ]


@pytest.mark.sweep
def test_an_interrupted_download_is_listed_and_goes_on(hub: Hub) -> None:
    hub.trouble = Trouble(bytes_per_s=60_000)
    with running([*COMMAND, "download", NAME]) as process:
        end = time.monotonic() + 30
        while not hub.ranges_of("model.safetensors") and time.monotonic() < end:
            time.sleep(0.02)
        time.sleep(0.5)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert f"To continue: draftlight models download {NAME}" in said
    assert "Traceback" not in said
    assert f"{NAME}  not finished:" in models("list").stdout
    hub.trouble = Trouble()
    assert models("download", NAME).returncode == 0
    assert hub.ranges_of("model.safetensors")[-1].startswith("bytes=")


def test_one_ctrl_c_is_enough_whatever_becomes_of_it(hub: Hub) -> None:
    with running([sys.executable, "-c", DEAF, "models", "download", NAME]) as process:
        assert process.stdout
        assert process.stdout.readline() == "looking it up\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=10)
    assert process.returncode == 130
    assert f"To continue: draftlight models download {NAME}" in said


@pytest.mark.sweep
def test_a_command_that_needs_a_model_gets_it_and_says_so(hub: Hub) -> None:
    words = ["generate", "--model", NAME, "--prompt", "hello", "--max-tokens", "4", "--json"]
    for number in range(2):
        done = subprocess.run(
            [sys.executable, "-m", "core.cli", *words],
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert (f"{NAME} is not on this computer. Downloading it" in done.stderr) is (number == 0)
        assert json.loads(done.stdout.splitlines()[-1])["type"] == "finished"


@pytest.mark.sweep
def test_what_arrived_can_be_discarded(hub: Hub) -> None:
    hub.trouble = Trouble(wrong_hash=True)
    done = models("download", NAME)
    assert done.returncode == 1
    assert "does not match its checksum" in done.stderr
    assert models("download", NAME, "--discard").returncode == 0
    assert "no unfinished download" in models("download", NAME, "--discard").stderr
    assert "not finished" not in models("list").stdout


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (["download", "word"], 1, "owner/name"),
        (["import", "/no/such/folder"], 1, "There is no folder /no/such/folder"),
        (["remove", "nothing", "--yes"], 1, "Choose one of starter"),
        (["remove", "starter", "--yes"], 1, "stays"),
    ],
)
def test_what_goes_wrong_is_said(
    arguments: list[str], status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["models", *arguments]) == status
    assert words in capsys.readouterr().err


def test_a_model_that_the_hub_lacks_is_named(hub: Hub) -> None:
    done = models("download", "nobody/nothing")
    assert done.returncode == 1
    assert "no model “nobody/nothing” on the hub" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.sweep
def test_a_removed_folder_is_listed_with_its_reason(hub: Hub, toy_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(toy_folder, tmp_path / "gone")
    assert models("import", str(tmp_path / "gone")).returncode == 0
    os.remove(tmp_path / "gone" / "model.safetensors")
    assert "Cannot be used:" in models("list").stdout
    assert "holds no weights" in models("list").stdout
