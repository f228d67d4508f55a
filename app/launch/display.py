"""Whether a window can be opened here at all, asked before Qt is imported.

Qt aborts the process when its xcb plugin misses a library, and `import PySide6.QtGui` itself
fails without libEGL; both leave nobody the wiser. So on Linux the libraries are looked for
first. Nothing here imports Qt.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, MutableMapping

from app.launch import strings

# What Qt links, and what its xcb plugin links beyond that, with the Debian package of each.
GRAPHICS = {"libEGL.so.1": "libegl1"}
XCB = {
    "libxkbcommon-x11.so.0": "libxkbcommon-x11-0",
    "libxcb-cursor.so.0": "libxcb-cursor0",
    "libxcb-icccm.so.4": "libxcb-icccm4",
    "libxcb-keysyms.so.1": "libxcb-keysyms1",
    "libxcb-image.so.0": "libxcb-image0",
    "libxcb-render-util.so.0": "libxcb-render-util0",
    "libxcb-shape.so.0": "libxcb-shape0",
}


def is_loadable(library: str) -> bool:
    """Whether the system's loader finds `library`."""
    try:
        ctypes.CDLL(library)
    except OSError:
        return False
    return True


def has_display(environment: Mapping[str, str]) -> bool:
    """Whether a desktop or a chosen Qt platform is there to draw on."""
    return any(environment.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"))


def go_offscreen_without_display(environment: MutableMapping[str, str], platform: str) -> None:
    """For runs without a person: draw nowhere if there is nowhere to draw. Changes `environment`."""
    if platform.startswith("linux") and not has_display(environment):
        environment["QT_QPA_PLATFORM"] = "offscreen"


def display_problem(
    environment: Mapping[str, str], platform: str, loadable: Callable[[str], bool] = is_loadable
) -> str:
    """What keeps a window from opening and what to do about it; empty if nothing does."""
    if not platform.startswith("linux"):
        return ""
    if not has_display(environment):
        return strings.NO_DISPLAY
    chosen = environment.get("QT_QPA_PLATFORM", "")
    needs_xcb = chosen.startswith("xcb") or not (chosen or environment.get("WAYLAND_DISPLAY"))
    wanted = {**GRAPHICS, **XCB} if needs_xcb else GRAPHICS
    missing = [library for library in wanted if not loadable(library)]
    if not missing:
        return ""
    packages = " ".join(wanted[library] for library in missing)
    return strings.missing_libraries(missing[0], packages, len(missing) - 1)
