"""System libraries that PySide6 needs on Linux: whether they are there, and the command that installs them.

Qt aborts the process when a platform plugin cannot be loaded, and `import PySide6.QtGui` fails without
libEGL. So the loader is called before Qt is imported: it names the first library that a file lacks. Uses the
standard library only.

    python -m app.launch.libraries [offscreen | xcb | wayland ...]

prints the problem and exits with status 1 if a library is missing. Without arguments it checks `offscreen`.
"""

from __future__ import annotations

import ctypes
import importlib.util
import platform
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

# The Qt modules that the window imports (checked by a test).
MODULES = ("QtCore", "QtGui", "QtNetwork", "QtSvg", "QtWidgets")
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
# Packages of Debian and Ubuntu that bring all libraries; libgl1 brings most of X11, libxcb-cursor0 of XCB.
PACKAGES = (
    "libdbus-1-3",
    "libegl1",
    "libfontconfig1",
    "libgl1",
    "libglib2.0-0",
    "libgssapi-krb5-2",
    "libwayland-cursor0",
    "libwayland-egl1",
    "libxcb-cursor0",
    "libxcb-icccm4",
    "libxcb-keysyms1",
    "libxcb-shape0",
    "libxkbcommon-x11-0",
)
# One command for everything: what `make` needs and what the window needs. README.md shows the same line.
APT_COMMAND = " ".join(("sudo apt-get install git make python3-venv", *PACKAGES))


def missing_message(missing: Sequence[str]) -> str:
    """The message for the system libraries `missing`; empty for none."""
    if not missing:
        return ""
    return (
        "Draftlight needs system libraries that are not installed:"
        f" {', '.join(missing)}.\nOn Debian or Ubuntu, install everything with:\n"
        f"    {APT_COMMAND}\nOn other systems, install the packages that contain these libraries."
    )


def missing_libraries(platforms: Sequence[str], load: Callable[[str], object] = ctypes.CDLL) -> list[str]:
    """The first library of each file that `load` does not find, for Qt's modules and `platforms`; sorted.

    Empty if PySide6 is not installed.
    """
    missing: set[str] = set()
    for path in _files(platforms):
        try:
            load(str(path))
        except OSError as error:  # "libEGL.so.1: cannot open shared object file: …"
            missing.add(str(error).partition(":")[0])
    return sorted(missing)


def _package() -> Path | None:
    spec = importlib.util.find_spec("PySide6")
    places = spec.submodule_search_locations if spec else None
    return Path(places[0]) if places else None


def _files(platforms: Sequence[str]) -> list[Path]:
    """The modules and plugins that the window loads."""
    package = _package()
    if package is None:
        return []
    patterns = [*_PLUGINS, *(f"platforms/libq{platform}.so" for platform in platforms)]
    patterns += [pattern for platform in platforms for pattern in _PLATFORM_PLUGINS.get(platform, ())]
    plugins = (path for pattern in patterns for path in (package / "Qt" / "plugins").glob(pattern))
    return [*(package / f"{module}.abi3.so" for module in MODULES), *plugins]


def platform_names() -> list[str]:
    """Qt platforms that this installation has plugins for, sorted; empty if PySide6 is not installed."""
    package = _package()
    plugins = (package / "Qt" / "plugins" / "platforms").glob("libq*.so") if package else ()
    return sorted(path.stem.removeprefix("libq") for path in plugins)


def main(arguments: Sequence[str]) -> int:
    """Exit status of `python -m app.launch.libraries`."""
    if platform.system() != "Linux":
        return 0
    problem = missing_message(missing_libraries(arguments or ("offscreen",)))
    print(problem, end="\n" if problem else "", file=sys.stderr)
    return int(bool(problem))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
