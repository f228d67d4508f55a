"""Damaged, hostile and odd model folders, listed and loaded by processes of the command line.

A case is a home with a good model and three folders, each with one or two seeded damages. `models list` must
name every folder, with a reason for each that cannot be used, and the good one without; `generate` with one
of the folders must answer or refuse with a sentence. Neither may print a traceback or a control character,
run code of a folder, read the answer to a question from stdin, or exceed its time or memory.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from core.models.runtime import prepare
from tests.attack.campaign import Campaign, Outcome, case_random

_LIMIT_S = 90.0
_MOST_BYTES = 2 << 30
_READ_BYTES = 1 << 24
_FOLDERS = 3
_FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
_VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 0.5, 10**9, 10**30, 10**450, -(10**18), 1e300, "", "x", "\x1b[2J", "é" * 9),
    *([], [None, {}, "a"], [[]], {}, {"a": {"b": [1]}}, ["full_attention"] * 50_000),
)
_FIELDS = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"),
    *("max_position_embeddings", "vocab_size", "intermediate_size", "sliding_window", "layer_types"),
    *("quantization", "quantization_config", "text_config", "rope_scaling", "architectures", "eos_token_id"),
    *("num_experts", "num_local_experts", "hybrid_override_pattern", "tie_word_embeddings", "model_type"),
    *(
        "draftlight_name",
        "auto_map",
        "model_file",
        "torch_dtype",
        "num_nextn_predict_layers",
        "linear_attn_config",
    ),
)


class Damage(Struct, frozen=True):
    """`refused`: the list gives a reason for a folder with it, whatever else is wrong there."""

    apply: Callable[[random.Random, Path, Path], object]
    refused: bool = False


def _json(path: Path) -> dict[str, Any]:
    try:
        # An earlier damage made it huge. What this process held would count as its children's.
        found = json.loads(path.read_bytes()) if path.stat().st_size < _READ_BYTES else {}
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: Path, content: bytes) -> None:
    """Replaces whatever is at `path`, without opening it."""
    if path.is_dir() and not path.is_symlink():
        return
    path.unlink(missing_ok=True)
    path.write_bytes(content)


def _change(path: Path, **fields: Any) -> None:
    if path.is_file():
        _write(path, json.dumps(_json(path) | fields).encode())


def _wrong_fields(rng: random.Random, folder: Path, marker: Path) -> None:
    chosen = rng.sample(_FIELDS, rng.randrange(1, 4))
    _change(folder / "config.json", **{field: rng.choice(_VALUES) for field in chosen})


def _wrong_settings(rng: random.Random, folder: Path, marker: Path) -> None:
    fields = ("chat_template", "added_tokens_decoder", "tokenizer_class", "eos_token", "model_max_length")
    _change(folder / "tokenizer_config.json", **{rng.choice(fields): rng.choice(_VALUES)})
    _write(folder / "generation_config.json", json.dumps(rng.choice(_VALUES)).encode())


def _large_figure(rng: random.Random, folder: Path, marker: Path) -> None:
    field = rng.choice(("num_hidden_layers", "num_experts", "num_key_value_heads", "head_dim"))
    _change(folder / "config.json", **{field: rng.choice((10**9, 10**30, 1e9, 10**490))})


def _digits(rng: random.Random, folder: Path, marker: Path) -> None:
    digits = "9" * rng.randrange(1_000, 100_000)
    _write(folder / "config.json", b'{"model_type": "llama", "num_hidden_layers": %s}' % digits.encode())


def _nested(rng: random.Random, folder: Path, marker: Path) -> None:
    depth = rng.randrange(500, 300_000)
    content = rng.choice((b"[" * depth, b'{"a":' * depth, b'{"a":' * depth + b"1" + b"}" * depth))
    _write(folder / rng.choice(("config.json", "model.safetensors.index.json")), content)


def _code(rng: random.Random, folder: Path, marker: Path) -> None:
    for name in ("evil.py", "modeling_evil.py", "llama.py"):
        code = f"open({str(marker)!r}, 'w').close()\nclass Tok: ...\nModel = ModelArgs = Config = Tok\n"
        _write(folder / name, code.encode())
    named = rng.choice(
        ("evil.Tok", ["evil.Tok", None], [None, "evil.Tok"], ["evil.Tok", "evil.Tok"], "a/b--evil.Tok")
    )
    _change(
        folder / "tokenizer_config.json",
        tokenizer_class=rng.choice(("Tok", "TokFast", None)),
        auto_map=rng.choice(({"AutoTokenizer": named}, named)),
        trust_remote_code=True,
    )
    if rng.random() < 0.5:
        _change(
            folder / "config.json",
            auto_map={"AutoConfig": "evil.Config", "AutoModelForCausalLM": "evil.Model"},
        )


def _code_file(rng: random.Random, folder: Path, marker: Path) -> None:
    _code(rng, folder, marker)
    _change(
        folder / "config.json", model_file=rng.choice(("evil.py", "../bad/evil.py", str(folder / "evil.py")))
    )


def _no_file(rng: random.Random, folder: Path, marker: Path) -> None:
    path = folder / rng.choice(_FILES)
    path.unlink(missing_ok=True)
    match rng.randrange(5):
        case 0:
            os.mkfifo(path)
        case 1:
            path.symlink_to("/dev/zero")
        case 2:
            path.symlink_to(path)
        case 3:
            with path.open("wb") as file:
                file.truncate(1 << rng.randrange(31, 42))
        case _:
            path.symlink_to("/dev/stdin")


def _header(rng: random.Random, folder: Path, marker: Path) -> None:
    entry = {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}
    entry[rng.choice(list(entry))] = rng.choice((*_VALUES, [2**53], [-1], [4, 0], [0, 2**62]))
    text = json.dumps({"model.embed_tokens.weight": entry, "__metadata__": rng.choice(_VALUES)}).encode()
    length = rng.choice((len(text), len(text) + 9, 2**63 - 1, 0, 2**26))
    _write(folder / "model.safetensors", length.to_bytes(8, "little") + text + bytes(64))


def _flipped(rng: random.Random, folder: Path, marker: Path) -> None:
    path = folder / rng.choice(_FILES)
    if path.is_file() and path.stat().st_size < _READ_BYTES:
        data = bytearray(path.read_bytes())
        for _ in range(rng.randrange(1, 20)):
            if data:
                data[rng.randrange(min(len(data), 4_000))] = rng.randrange(256)
        _write(path, bytes(data[: rng.choice((len(data), len(data), len(data) // 2))]))


def _tokenizer(rng: random.Random, folder: Path, marker: Path) -> None:
    letter = rng.choice("aeh ")
    doubling = {"type": "Replace", "pattern": {"String": letter}, "content": letter * 2}
    slow = {"type": "Replace", "pattern": {"Regex": rng.choice(("(h+)+$", "([a-z]+i?)*$"))}, "content": ""}
    levels = [{"type": "ByteLevel", "add_prefix_space": False, "use_regex": False, "trim_offsets": True}] * 40
    parts: list[dict[str, Any]] = [
        {"normalizer": {"type": "Sequence", "normalizers": [doubling] * 45}},
        {"normalizer": {"type": "Replace", "pattern": {"String": letter}, "content": "x" * 50_000_000}},
        {"normalizer": {"type": "Sequence", "normalizers": [slow] * 8}},
        {"pre_tokenizer": {"type": "Sequence", "pretokenizers": levels}},
        {"decoder": {"type": "Sequence", "decoders": [{**doubling, "content": "x" * 99_999}, *levels[:1]]}},
    ]
    _change(folder / "tokenizer.json", **rng.choice(parts))


def _template(rng: random.Random, folder: Path, marker: Path) -> None:
    loop = "{% for i in range(99999) %}" * 3 + "x" + "{% endfor %}" * 3
    inner = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    _change(
        folder / "tokenizer_config.json",
        chat_template=rng.choice((loop, inner, "{{ 'x' * 10**10 }}", "\x1b[2J")),
    )


def _escape(rng: random.Random, folder: Path, marker: Path) -> None:
    _change(
        folder / "config.json",
        draftlight_name="\x1b]0;title\x07\x9b31m",
        model_type=rng.choice(("llama", "\x1b[31mx")),
    )


def _many_files(rng: random.Random, folder: Path, marker: Path) -> None:
    for number in range(rng.choice((200, 12_000))):
        (folder / f"extra-{number}.json").touch()
    place = folder
    for _ in range(rng.randrange(60)):
        place = place / "deeper"
    place.mkdir(parents=True, exist_ok=True)


DAMAGES: tuple[Damage, ...] = (
    Damage(_wrong_fields),
    Damage(_wrong_fields),
    Damage(_wrong_settings),
    Damage(_large_figure, True),
    Damage(_digits, True),
    Damage(_nested, True),
    Damage(_code),
    Damage(_code),
    Damage(_code_file, True),
    Damage(_no_file, True),
    Damage(_no_file, True),
    Damage(_header, True),
    Damage(_flipped),
    Damage(_tokenizer),
    Damage(_tokenizer),
    Damage(_template),
    Damage(_escape),
    Damage(_many_files),
)
_NAMES = ("bad", "bad\x1b[31m", "bad\n", "bad name", "böse", "bad\x9b", os.fsdecode(b"bad\xff"), "b" * 200)


def _run(seed: int, cases: Sequence[int]) -> Iterator[Outcome]:
    prepare()
    from tests.core.toy import write_toy_model

    with tempfile.TemporaryDirectory(prefix="draftlight-folders-") as scratch:
        for case in cases:
            home = Path(scratch) / str(case)
            models = home / "data" / "models"
            write_toy_model(models / "good")
            yield _case(case_random("model-folders", seed, case), case, home, models)


def _case(rng: random.Random, case: int, home: Path, models: Path) -> Outcome:
    marker, refused = home / "CODE_WAS_RUN", 0
    folders = []
    for name in rng.sample(_NAMES, _FOLDERS):
        folder = models / name
        shutil.copytree(models / "good", folder)
        damages = rng.sample(DAMAGES, rng.choice((1, 1, 2)))
        for damage in damages:
            damage.apply(rng, folder, marker)
        # Of two, the second may have undone the first.
        refused += len(damages) == 1 and damages[0].refused
        folders.append((folder, "+".join(each.apply.__name__.strip("_") for each in damages)))
    listed = _process(home, "models", "list", "--json")
    faults = [*listed.faults(marker), *_wrong_list(listed, refused)]
    folder, damage = rng.choice(folders)
    words = (
        "generate",
        "--model",
        os.fsencode(folder),
        "--prompt",
        "hello there",
        "--set",
        "sampling.max_tokens=2",
    )
    done = _process(home, *words)
    faults += [f"{fault} ({damage})" for fault in done.faults(marker)]
    named = f"{', '.join(each for _, each in folders)}: " if faults else ""
    peaks = {"list MB": listed.peak_bytes / 2**20, "generate MB": done.peak_bytes / 2**20}
    return Outcome(case, named + "; ".join(faults), {f"status {done.status}": 1.0}, peaks)


class _Done(Struct, frozen=True):
    words: str
    status: int
    out: bytes
    err: bytes
    peak_bytes: int
    late: bool

    def faults(self, marker: Path) -> Iterator[str]:
        """What is wrong with the process's end and output."""
        if marker.exists():
            yield f"{self.words} ran code of a folder"
        if self.late:
            yield f"{self.words} did not end in {_LIMIT_S:.0f} s"
            return
        if self.peak_bytes > _MOST_BYTES:
            yield f"{self.words} held {self.peak_bytes / 2**20:,.0f} MB"
        for part in (b"Traceback", b"Exception ignored", b"panicked"):
            if part in self.err:
                yield f"{self.words}: {self.err.strip().splitlines()[-1][:200].decode(errors='replace')}"
        if self.status not in (0, 1, 2):
            yield f"{self.words}: status {self.status}"
        if self.status in (1, 2) and not self.err.strip():
            yield f"{self.words}: status {self.status} without a word"
        text = (self.err + (self.out if self.words == "models" else b"")).decode(errors="replace")
        if any(
            character != "\n" and (ord(character) < 32 or 127 <= ord(character) < 160) for character in text
        ):
            yield f"{self.words} printed a control character"


def _wrong_list(listed: _Done, refused: int) -> Iterator[str]:
    if listed.status or listed.late:
        yield f"models list: status {listed.status}"
        return
    entries = [each for each in msgspec.json.decode(listed.out)["models"] if each["source"] == "folder"]
    if len(entries) != _FOLDERS + 1:
        yield f"{len(entries)} of {_FOLDERS + 1} folders were listed"
    problems = [each.get("problem", "") for each in entries]
    if next((each.get("problem") for each in entries if each["path"].endswith("/good")), None):
        yield "the good folder has a problem"
    if (count := sum(map(bool, problems))) < refused:
        yield f"{count} folders have a reason, at least {refused} should"
    if any(len(each) > 2_000 for each in problems):
        yield "a reason is longer than 2,000 characters"


def _process(home: Path, *words: str | bytes) -> _Done:
    """Runs a command of the command line with yes on its stdin, ended with its children at the limit."""
    environment = {**os.environ, "DRAFTLIGHT_HOME": str(home), "HF_HUB_OFFLINE": "1", "HOME": str(home)}
    environment |= {"PYTHONPATH": os.getcwd(), "HF_HOME": str(home / "hub")}
    process = subprocess.Popen(
        [sys.executable, "-m", "core.cli", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin
    assert process.stdout
    assert process.stderr
    late = threading.Event()

    def end() -> None:
        late.set()
        os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(_LIMIT_S, end)
    timer.start()
    process.stdin.write(b"y\n1\nyes\n")
    process.stdin.close()
    errors: list[bytes] = []
    reader = threading.Thread(target=lambda: errors.append(process.stderr.read()))  # type: ignore[union-attr]
    reader.start()
    out = process.stdout.read()
    reader.join()
    _, status, usage = os.wait4(process.pid, 0)
    timer.cancel()
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    process.stderr.close()
    unit = 1 if sys.platform == "darwin" else 1024
    return _Done(str(words[0]), process.returncode, out, errors[0], usage.ru_maxrss * unit, late.is_set())


CAMPAIGN = Campaign(
    "model-folders",
    "No model folder ends a command in a traceback, runs code, takes a minute or 2 GB, or hides another",
    2,
    60,
    _run,
)
