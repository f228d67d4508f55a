"""Signatures and seals, made here and damaged in each way that would matter."""

from __future__ import annotations

import plistlib
from collections.abc import Callable
from pathlib import Path

import pytest

from bundle.signing.macho import MachOError
from bundle.signing.seal import seal_problems
from bundle.signing.signature import ADHOC, RUNTIME, changed, code_directories
from tests.packaging.signing import PAGE_BYTES, seal, sign
from tests.packaging.test_macho import image

BIG = image() + bytes(range(256)) * 40  # three pages


def test_a_signature_is_read() -> None:
    (found,) = code_directories(sign(BIG, {1: b"plist"}, ADHOC | RUNTIME))
    assert found.identifier == "test"
    assert found.flags & RUNTIME
    assert (found.digest, found.page_bytes, len(found.pages)) == ("sha256", PAGE_BYTES, 3)
    assert found.parts == {1: found.of(b"plist")}
    assert changed(sign(BIG)) == ""


@pytest.mark.parametrize("at", [600, PAGE_BYTES + 1, 2 * PAGE_BYTES + 7])
def test_a_changed_page_is_named(at: int) -> None:
    signed = bytearray(sign(BIG))
    signed[at] ^= 1
    assert changed(bytes(signed)).endswith(f"at byte {at // PAGE_BYTES * PAGE_BYTES:,}")


def test_no_signature_and_half_of_one() -> None:
    assert changed(image(signed=False)) == "has no signature"
    with pytest.raises(MachOError, match="cut off"):
        changed(sign(BIG)[:-40])
    with pytest.raises(MachOError, match="none"):
        changed(sign(BIG).replace(b"\xfa\xde\x0c\xc0", b"\xfa\xde\x0c\xc1"))


@pytest.fixture
def contents(tmp_path: Path) -> Path:
    folder = tmp_path / "Draftlight.app" / "Contents"
    (folder / "Resources").mkdir(parents=True)
    (folder / "Info.plist").write_bytes(plistlib.dumps({"CFBundleExecutable": "Draftlight"}))
    (folder / "Resources" / "a.txt").write_text("a")
    (folder / "Resources" / "b.txt").write_text("b")
    (folder / "Resources" / "link").symlink_to("a.txt")
    return folder


def test_a_whole_seal_holds(contents: Path) -> None:
    seal(contents, BIG)
    assert seal_problems(contents) == []


def relink(contents: Path) -> None:
    (contents / "Resources" / "link").unlink()
    (contents / "Resources" / "link").symlink_to("b.txt")


def shorten_list(contents: Path) -> None:
    path = contents / "_CodeSignature" / "CodeResources"
    whole = plistlib.loads(path.read_bytes())
    del whole["files2"]["Resources/b.txt"]
    path.write_bytes(plistlib.dumps(whole))


def cut_launcher(contents: Path) -> None:
    path = contents / "MacOS" / "Draftlight"
    path.write_bytes(path.read_bytes()[:-40])


DAMAGES: list[tuple[str, Callable[[Path], object]]] = [
    ("Resources/a.txt was changed", lambda c: (c / "Resources" / "a.txt").write_text("x")),
    ("Resources/b.txt is missing", lambda c: (c / "Resources" / "b.txt").unlink()),
    ("Resources/c.txt is not sealed", lambda c: (c / "Resources" / "c.txt").write_text("c")),
    ("Resources/link links elsewhere", relink),
    (
        "Info.plist is not the one",
        lambda c: (c / "Info.plist").write_bytes(
            plistlib.dumps({"CFBundleExecutable": "Draftlight", "a": 1})
        ),
    ),
    ("CodeResources is not the one", shorten_list),
    ("cannot be read", cut_launcher),
]


@pytest.mark.parametrize(("words", "damage"), DAMAGES, ids=[words for words, _ in DAMAGES])
def test_each_damage_breaks_the_seal(contents: Path, words: str, damage: Callable[[Path], object]) -> None:
    seal(contents, BIG)
    damage(contents)
    assert any(words in problem for problem in seal_problems(contents))


def test_a_seal_without_the_hardened_runtime_is_not_enough(contents: Path) -> None:
    seal(contents, BIG, flags=ADHOC)
    assert seal_problems(contents) == ["the hardened runtime is off"]
