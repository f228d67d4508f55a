"""The app's icon in every size that is asked for, all rendered by Qt from the one SVG."""

from __future__ import annotations

import os
from pathlib import Path

from bundle.icons.icns import KINDS, write_icns
from bundle.project import ROOT

SVG = ROOT / "resources" / "app-icon" / "draftlight.svg"
# What desktops on Linux ask for; the packager takes each as a file of its own.
LINUX_SIZES = (16, 32, 64, 128, 256, 512)


def write_icons(folder: Path, svg: Path = SVG) -> None:
    """`draftlight.icns` and `draftlight-<size>.png` in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    pngs = {size: render(size, svg) for size in {*KINDS.values(), *LINUX_SIZES}}
    (folder / "draftlight.icns").write_bytes(write_icns(pngs))
    for size in LINUX_SIZES:
        (folder / f"draftlight-{size}.png").write_bytes(pngs[size])


def render(size: int, svg: Path = SVG) -> bytes:
    """A PNG of `size` pixels a side, transparent around the drawing. Raises ValueError for a bad SVG."""
    os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")
    from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, Qt
    from PySide6.QtGui import QGuiApplication, QImage, QPainter
    from PySide6.QtSvg import QSvgRenderer

    application = QGuiApplication.instance() or QGuiApplication(["icon"])
    renderer = QSvgRenderer(str(svg))
    if not renderer.isValid():
        raise ValueError(f"{svg} is not a drawing that Qt can render.")
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    renderer.render(painter, QRectF(0, 0, size, size))
    painter.end()
    content = QByteArray()
    buffer = QBuffer(content)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    image.save(buffer, "PNG")  # type: ignore[call-overload]
    del application
    return bytes(content.data())
