"""System libraries that PySide6 links on Linux: which ones are missing, and the command that installs them.

Qt aborts the process when a platform plugin cannot be loaded, and `import PySide6.QtGui` fails without
libEGL. So the libraries are read from the ELF headers of the installed wheel before Qt is imported. Uses the
standard library only.

    python -m app.launch.libraries [offscreen | xcb | wayland ...]

prints the problem and exits with status 1 if a library is missing. Without arguments it checks `offscreen`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import mmap
import platform
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# The Qt modules that the window and its tests import (checked by a test).
MODULES = ("QtCore", "QtGui", "QtNetwork", "QtSvg", "QtTest", "QtWidgets")
# Plugins that Qt loads on every platform, and those of each platform. Qt's other plugins are optional:
# it skips them silently if their libraries are missing.
_PLUGINS = (
    "iconengines/*.so",
    "imageformats/libqsvg.so",
    "platforminputcontexts/libcompose*.so",
    "platforminputcontexts/libibus*.so",
    "platformthemes/libqxdgdesktopportal.so",
    "tls/*.so",
)
_PLATFORM_PLUGINS = {
    "offscreen": (),
    "xcb": ("xcbglintegrations/*.so",),
    "wayland": (
        "wayland-decoration-client/*.so",
        "wayland-graphics-integration-client/*.so",
        "wayland-shell-integration/*.so",
    ),
}
# Packages of Debian and Ubuntu. A library maps to its package, or to one that depends on
# that package, which keeps the command short: libgl1 brings most of X11, libxcb-cursor0 much of XCB.
PACKAGES = {
    "libEGL.so.1": "libegl1",
    "libGL.so.1": "libgl1",
    "libX11-xcb.so.1": "libgl1",
    "libX11.so.6": "libgl1",
    "libbrotlicommon.so.1": "libfontconfig1",
    "libbrotlidec.so.1": "libfontconfig1",
    "libdbus-1.so.3": "libdbus-1-3",
    "libfontconfig.so.1": "libfontconfig1",
    "libfreetype.so.6": "libfontconfig1",
    "libglib-2.0.so.0": "libglib2.0-0",
    "libgssapi_krb5.so.2": "libgssapi-krb5-2",
    "libgthread-2.0.so.0": "libglib2.0-0",
    "libwayland-client.so.0": "libwayland-cursor0",
    "libwayland-cursor.so.0": "libwayland-cursor0",
    "libwayland-egl.so.1": "libwayland-egl1",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-glx.so.0": "libgl1",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-image.so.0": "libxcb-cursor0",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-randr.so.0": "libgl1",
    "libxcb-render-util.so.0": "libxcb-cursor0",
    "libxcb-render.so.0": "libxcb-cursor0",
    "libxcb-shape.so.0": "libxcb-shape0",
    "libxcb-shm.so.0": "libgl1",
    "libxcb-sync.so.1": "libgl1",
    "libxcb-util.so.1": "libxcb-cursor0",
    "libxcb-xfixes.so.0": "libgl1",
    "libxcb-xkb.so.1": "libxkbcommon-x11-0",
    "libxcb.so.1": "libgl1",
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxkbcommon.so.0": "libxkbcommon-x11-0",
    "libzstd.so.1": "libfontconfig1",
}
# One command for everything: what `make` needs and what the window needs. README.md shows the same line.
APT_COMMAND = " ".join(("sudo apt-get install git make python3-venv", *sorted(set(PACKAGES.values()))))
_SHOWN = 6


def missing_message(missing: Sequence[str]) -> str:
    """The message for the system libraries `missing`; empty for none."""
    if not missing:
        return ""
    more = f" and {len(missing) - _SHOWN} more" if len(missing) > _SHOWN else ""
    return (
        "Draftlight needs system libraries that are not installed:"
        f" {', '.join(missing[:_SHOWN])}{more}.\nOn Debian or Ubuntu, install everything with:\n"
        f"    {APT_COMMAND}\nOn other systems, install the packages that contain these libraries."
    )


def missing_libraries(platforms: Sequence[str], loadable: Callable[[str], bool]) -> list[str]:
    """Names of the system libraries that Qt's `platforms` link and that cannot be loaded, sorted."""
    return [library for library in sorted(linked_libraries(platforms)) if not loadable(library)]


def linked_libraries(platforms: Sequence[str]) -> set[str]:
    """Names of all system libraries that the window links, directly or through Qt's own libraries.

    Empty if PySide6 is not installed.
    """
    spec = importlib.util.find_spec("PySide6")
    if spec is None or not spec.submodule_search_locations:
        return set()
    package = Path(spec.submodule_search_locations[0])
    plugins = package / "Qt" / "plugins"
    patterns = [*_PLUGINS, *(f"platforms/libq{platform}.so" for platform in platforms)]
    patterns += [pattern for platform in platforms for pattern in _PLATFORM_PLUGINS.get(platform, ())]
    todo = [package / f"{module}.abi3.so" for module in MODULES]
    todo += [path for pattern in patterns for path in plugins.glob(pattern)]
    seen: set[Path] = set()
    system: set[str] = set()
    while todo:
        path = todo.pop()
        if path in seen or not path.is_file():
            continue
        seen.add(path)
        names, folders = read_needed(path)
        for name in names:
            inside = next((folder / name for folder in folders if (folder / name).is_file()), None)
            if inside:
                todo.append(inside.resolve())
            else:
                system.add(name)
    return system


def is_loadable(library: str) -> bool:
    """Whether the system's loader finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def platform_names() -> list[str]:
    """Qt platforms that this installation has plugins for, sorted; empty if PySide6 is not installed."""
    spec = importlib.util.find_spec("PySide6")
    if spec is None or not spec.submodule_search_locations:
        return []
    folder = Path(spec.submodule_search_locations[0]) / "Qt" / "plugins" / "platforms"
    return sorted(path.stem.removeprefix("libq") for path in folder.glob("libq*.so"))


def read_needed(path: Path) -> tuple[list[str], list[Path]]:
    """`DT_NEEDED` names and `DT_RUNPATH` folders of a 64-bit ELF file; empty for other files."""
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as elf:
        if elf[:6] != b"\x7fELF\x02\x01":
            return [], []
        (headers,) = struct.unpack_from("<Q", elf, 32)
        size, count = struct.unpack_from("<HH", elf, 54)
        segments = [struct.unpack_from("<IIQQQQ", elf, headers + index * size) for index in range(count)]
        # Fields: type, flags, file offset, virtual address, physical address, size in the file.
        loaded = [(segment[3], segment[2], segment[5]) for segment in segments if segment[0] == 1]
        dynamic = next(((segment[2], segment[5]) for segment in segments if segment[0] == 2), (0, 0))
        entries = [struct.unpack_from("<qQ", elf, dynamic[0] + offset) for offset in range(0, dynamic[1], 16)]
        table = next((value for tag, value in entries if tag == 5), 0)
        strings = next((offset + table - start for start, offset, length in loaded
                        if start <= table < start + length), 0)  # fmt: skip

        def text(value: int) -> str:
            start = strings + value
            return elf[start : elf.find(b"\0", start)].decode()

        names = [text(value) for tag, value in entries if tag == 1]
        search = [part for tag, value in entries if tag in (15, 29) for part in text(value).split(":")]
    origin = str(path.parent)
    return names, [Path(part.replace("$ORIGIN", origin)) for part in search if part]


def main(arguments: Sequence[str]) -> int:
    """Exit status of `python -m app.launch.libraries`."""
    if platform.system() != "Linux":
        return 0
    problem = missing_message(missing_libraries(arguments or ("offscreen",), is_loadable))
    print(problem, end="\n" if problem else "", file=sys.stderr)
    return int(bool(problem))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
