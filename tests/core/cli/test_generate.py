"""What `generate` reads, what it says on the way, and its lines of JSON."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import threading
from contextlib import nullcontext, suppress
from pathlib import Path
from unittest.mock import Mock

import msgspec
import pytest

from core.cli import json_lines, main
from core.cli.generate import summary
from core.cli.json_lines import Line
from core.errors import reason_of
from core.events import Effective, Finished, Stats
from core.settings import Settings
from core.system.terminal import ProgressLine
from tests.core.documents.made import pdf_of
from tests.core.toy import write_toy_model

DOCS = Path(__file__).parents[3] / "docs"


def answer(capsys: pytest.CaptureFixture[str], model: Path, *more: str) -> list[dict[str, object]]:
    assert main(["generate", "--model", str(model), "--max-tokens", "3", "--json", *more]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def prompt_tokens(events: list[dict[str, object]]) -> int:
    stats = events[-1]["stats"]
    assert isinstance(stats, dict)
    return int(stats["prompt_tokens"])


def test_a_prompt_from_stdin(
    toy_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = answer(capsys, toy_folder, "--prompt", "hello there")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"hello there")))
    piped = answer(capsys, toy_folder, "--prompt-file", "-")
    assert prompt_tokens(piped) == prompt_tokens(said)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    assert main(["generate", "--model", str(toy_folder), "--prompt-file", "-"]) == 1
    assert "not UTF-8" in capsys.readouterr().err


def test_several_documents(toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counts = []
    documents: list[str] = []
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("abc abc abc abc abc")
        documents += ["--document", str(tmp_path / name)]
        counts.append(prompt_tokens(answer(capsys, toy_folder, "--prompt", "x", *documents)))
    assert counts[1] > counts[0] + 10


def test_what_a_document_leaves_out_is_named(
    toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "a.log"
    log.write_bytes(b"abc abc\n\0\0\nabc\n")
    asked = ["generate", "--model", str(toy_folder), "--max-tokens", "3", "--json", "--prompt", "x"]
    assert main([*asked, "--document", str(log)]) == 0
    found = capsys.readouterr()
    read = json.loads(found.out.splitlines()[1])
    assert read["type"] == "document_read"
    assert read["left_out"] == [{"kind": "damaged character", "count": 2, "place": ""}]
    assert "a.log: Not in the text: 2 damaged characters" in found.err


def test_an_encoding_that_was_guessed_is_named(
    toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = ["generate", "--model", str(toy_folder), "--max-tokens", "3", "--json", "--prompt", "x"]
    for name, data in (("guessed.txt", "Preis: 5 € und grüße".encode("cp1252")), ("sure.txt", b"abc")):
        (tmp_path / name).write_bytes(data)
        asked += ["--document", str(tmp_path / name)]
    assert main(asked) == 0
    found = capsys.readouterr()
    guessed, sure = (json.loads(line) for line in found.out.splitlines()[1:3])
    assert guessed["encoding"] == "cp1252"
    assert guessed["other_encodings"]
    assert not sure.get("encoding")
    assert "guessed.txt: read as cp1252, which is a guess; it may be " in found.err
    assert "sure.txt" not in found.err


def test_documents_of_other_kinds_are_read_as_in_the_window(
    toy_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain, pdf, picture = (tmp_path / name for name in ("same.txt", "same.pdf", "same.png"))
    plain.write_text("abc abc abc\n\nabc abc")
    pdf.write_bytes(pdf_of(["abc abc abc", "abc abc"]))
    picture.write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    counts = [
        prompt_tokens(answer(capsys, toy_folder, "--prompt", "x", "--document", str(path)))
        for path in (plain, pdf)
    ]
    assert counts[0] == counts[1]
    asked = ["generate", "--json", "--model", str(toy_folder), "--prompt", "x", "--document", str(picture)]
    assert main(asked) == 1
    failed = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert "is a picture." in failed["message"]
    assert failed["hint"]


@pytest.mark.parametrize(
    ("arguments", "status", "code"),
    [
        (["--prompt", "x", "--dowse"], 2, "usage"),
        ([], 2, "usage"),
        (["--prompt", "x", "--temperature", "hot"], 2, "bad-setting"),
        (["--prompt-file", "/no/such"], 2, "usage"),
        (["--prompt", "x", "--model", "/no/such"], 1, "bad-model"),
    ],
)
def test_errors_before_loading_are_lines_too(
    arguments: list[str], status: int, code: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["generate", "--json", *arguments]) == status
    said = capsys.readouterr()
    started, failed = [msgspec.json.decode(line, type=Line) for line in said.out.splitlines()]
    assert isinstance(started, json_lines.Started)
    assert started.schema == json_lines.SCHEMA
    assert isinstance(failed, json_lines.Failed)
    assert failed.code == code
    assert failed.message in said.err


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), ValueError("Other shapes")])
def test_every_error_is_the_last_line(
    error: Exception, toy_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("core.cli.generate.settings_from", Mock(side_effect=error))
    with nullcontext() if isinstance(error, OSError) else pytest.raises(ValueError, match="shapes"):
        assert main(["generate", "--json", "--prompt", "x", "--model", str(toy_folder)]) == 1
    failed = msgspec.json.decode(capsys.readouterr().out.splitlines()[-1], type=Line)
    assert isinstance(failed, json_lines.Failed)
    assert reason_of(error) in failed.message
    assert not failed.hint


def test_every_line_is_of_the_schema_in_the_docs(
    toy_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (DOCS / "json-schema.json").read_bytes() == json_lines.schema(), (
        "Run: python -m core.cli.json_lines docs"
    )
    for event in answer(capsys, toy_folder, "--prompt", "hello"):
        msgspec.convert(event, Line)


def test_an_answer_of_one_step_has_no_speed() -> None:
    words = summary(
        Finished("", "stop", Stats(tokens=1, steps=1), Effective("m", "float32", "off", Settings()))
    )
    assert "0.0 tok/s" not in words


@pytest.mark.sweep
@pytest.mark.skipif(sys.platform == "win32", reason="it needs a pseudo-terminal")
@pytest.mark.parametrize("quiet", [False, True])
def test_how_far_it_is_stands_on_a_terminal_and_is_gone_before_the_answer(
    toy_folder: Path, quiet: bool
) -> None:
    import pty

    ours, theirs = pty.openpty()
    command = ["generate", "--model", str(toy_folder), "--prompt", "x" * 300, "--max-tokens", "2"]
    done = subprocess.run(
        [sys.executable, "-m", "core.cli", *command, *(["--quiet"] if quiet else [])],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    os.close(theirs)
    said = os.read(ours, 100_000).decode()
    os.close(ours)
    assert done.returncode == 0
    assert ("Loading" in said) is not quiet
    assert "2 tokens" in said.rpartition("\x1b[K")[2]


def test_the_line_is_said_four_times_a_second_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    out = type("Terminal", (io.StringIO,), {"isatty": lambda self: True})()
    monkeypatch.setattr("sys.stderr", out)
    now_s = 0.0
    with ProgressLine(clock=lambda: now_s) as line:
        for number in range(100):
            line.say(f"{number} of 100")
            now_s += 0.01
    said = out.getvalue().split("\r\x1b[K")
    assert said == ["", "0 of 100", "25 of 100", "50 of 100", "75 of 100", ""]


def test_the_models_own_sampling_holds_where_no_flag_says_otherwise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTLIGHT_HOME", str(tmp_path / "home"))
    model = tmp_path / "model"
    write_toy_model(model)
    (model / "generation_config.json").write_text('{"temperature": 0.6, "top_p": 0.9, "top_k": 5000}')

    def sampling(*flags: str) -> tuple[float, float, int]:
        assert (
            main(["generate", "--model", str(model), "--prompt", "x", "--max-tokens", "3", "--json", *flags])
            == 0
        )
        said = capsys.readouterr()
        notes.append(said.err)
        used = json.loads(said.out.splitlines()[-1])["effective"]["settings"]["sampling"]
        return used["temperature"], used["top_p"], used["top_k"]

    notes: list[str] = []
    assert sampling() == (0.6, 0.9, 1000)
    assert "sampling.top_k: 1000 instead of the model's own 5000" in notes[-1]
    assert sampling("--temperature", "0", "--set", "sampling.top_k=7") == (0.0, 0.9, 7)
    assert "instead of" not in notes[-1]
    (tmp_path / "home").mkdir(exist_ok=True)
    (tmp_path / "home" / "config.toml").write_text("[sampling]\ntop_p = 1.0\n")
    assert sampling("--temperature", "0.3") == (0.3, 1.0, 1000)


@pytest.mark.parametrize("flag", ["--prompt-file", "--messages"])
@pytest.mark.parametrize("source", ["/dev/zero", "pipe", "file"])
def test_no_more_than_a_limit_is_read_of_a_file(
    flag: str,
    source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("core.cli.generate._MOST_BYTES", 2**20)
    reader, writer = os.pipe()
    paths = {"pipe": f"/dev/fd/{reader}", "file": str(tmp_path / "long")}
    (tmp_path / "long").write_bytes(b"x" * (2**20 + 1))

    def write() -> None:
        with suppress(BrokenPipeError), os.fdopen(writer, "wb") as pipe:
            pipe.write(b"x" * 2**21)

    thread = threading.Thread(target=write)
    thread.start()
    asked = ["generate", "--model", str(tmp_path / "none"), flag, paths.get(source, source), "--quiet"]
    assert main(asked) == 1
    assert "more than 1 MB, the most that is read" in capsys.readouterr().err
    os.close(reader)
    thread.join()


def test_a_named_pipe_is_opened_once(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, toy_folder: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    writing = threading.Thread(target=(tmp_path / "pipe").write_text, args=("\ufeffhi",), daemon=True)
    writing.start()
    piped = answer(capsys, toy_folder, "--prompt-file", str(tmp_path / "pipe"))
    writing.join()
    given = answer(capsys, toy_folder, "--prompt", "hi")
    assert piped[-1]["stats"]["prompt_tokens"] == given[-1]["stats"]["prompt_tokens"]  # type: ignore[index]


@pytest.mark.parametrize(
    "shape",
    [
        [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}],
        {"messages": [{"role": "developer", "content": "Be brief."}, {"role": "user", "content": "hi"}]},
        {
            "model": "any",
            "stream": True,
            "messages": [
                {"role": "system", "content": [{"type": "text", "text": "Be brief."}]},
                {"role": "user", "content": [{"type": "text", "text": "hi"}]},
            ],
        },
    ],
)
def test_messages_are_read_in_the_servers_shapes(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, toy_folder: Path, shape: object
) -> None:
    def tokens(messages: object) -> object:
        path = tmp_path / "messages.json"
        path.write_text("\ufeff" * (messages is shape) + json.dumps(messages))
        return answer(capsys, toy_folder, "--messages", str(path))[-1]["stats"]["prompt_tokens"]  # type: ignore[index]

    own = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hi"}]
    assert tokens(shape) == tokens(own)


def test_messages_that_are_none_are_refused_in_words(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, toy_folder: Path
) -> None:
    path = tmp_path / "messages.json"
    for wrong in ("{}", "[]x", '[{"role": "x", "content": ""}]', '{"messages": 3}'):
        path.write_text(wrong)
        assert main(["generate", "--model", str(toy_folder), "--messages", str(path)]) != 0
        assert "cannot be read as messages" in capsys.readouterr().err
