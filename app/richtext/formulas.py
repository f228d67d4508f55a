"""Typeset formulas: made by a child process, kept, and painted as shapes in any size and colour.

A formula that is not known yet is shown as its source; `arrived` says that more are known. One that is wrong,
unsupported or too large stays as it is written. Widgets' thread only, except for `typeset_now`.
"""

from __future__ import annotations

import atexit
import os
import signal
import subprocess
from collections import OrderedDict
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from itertools import count

import msgspec
from PySide6.QtCore import (
    QCoreApplication,
    QObject,
    QPointF,
    QProcess,
    QProcessEnvironment,
    QRectF,
    Qt,
    Signal,
)
from PySide6.QtGui import (
    QColor,
    QPainter,
    QPainterPath,
    QPainterPathStroker,
    QPixmap,
    QPixmapCache,
    QTransform,
)
from shiboken6 import isValid

from app.theme.fonts import ui_font
from core.system.children import CHILD_FOLDER, child_command, child_environment
from core.system.prepared import prepared
from core.typesetting import EM, LONGEST, Formula, Typeset

_MOST_KEPT_BYTES = 16 * 1024 * 1024
_MOST_WAITING = 2_000
# Small letters of the formulas' font are as high as Inter's.
_SCALE = 1.15
_LARGEST_PX = 4_096  # of a pixmap; a larger one is painted as a shape
_RETRIES = 3  # of an export: a formula may end the process
_numbers = count()

_decoder = msgspec.json.Decoder(prepared(Typeset))


class Shape:
    """A typeset formula as a path in thousandths of the type size, from the left end of its baseline on."""

    def __init__(self, made: Typeset) -> None:
        self.made = made
        self._number = next(_numbers)
        self._path: QPainterPath | None = None

    @property
    def path(self) -> QPainterPath:
        """Made at its first painting."""
        if self._path is None:
            self._path = _path(self.made)
        return self._path

    def size_px(self, size_px: float) -> tuple[float, float, float]:
        """Width, ascent and descent at that type size."""
        made, scale = self.made, size_px * _SCALE / EM
        return made.width * scale, made.ascent * scale, made.descent * scale

    def fill(self, painter: QPainter, at: QPointF, size_px: float) -> None:
        """Paint it as a shape in the painter's pen colour, with its baseline's left end at `at`."""
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(at)
        painter.scale(size_px * _SCALE / EM, size_px * _SCALE / EM)
        painter.fillPath(self.path, painter.pen().color())
        painter.restore()

    def paint(self, painter: QPainter, at: QPointF, size_px: float) -> None:
        """Like `fill`, from a pixmap that is kept for its size, its colour and the screen's resolution."""
        ratio = painter.device().devicePixelRatioF()
        width, ascent, descent = self.size_px(size_px)
        area = QRectF(0, -ascent, width, ascent + descent).adjusted(-2, -2, 2, 2)
        if max(area.width(), area.height()) * ratio > _LARGEST_PX:
            self.fill(painter, at, size_px)
            return
        color = painter.pen().color()
        key = f"draftlight-formula:{self._number}:{size_px:g}:{color.rgba():x}:{ratio:g}"
        pixmap = QPixmap()
        if not QPixmapCache.find(key, pixmap):
            pixmap = self._pixmap(area, size_px, color, ratio)
            QPixmapCache.insert(key, pixmap)
        # On whole pixels, so that thin rules stay sharp.
        corner = painter.transform().map(at + area.topLeft())
        corner = QPointF(round(corner.x() * ratio) / ratio, round(corner.y() * ratio) / ratio)
        painter.drawPixmap(painter.transform().inverted()[0].map(corner), pixmap)

    def _pixmap(self, area: QRectF, size_px: float, color: QColor, ratio: float) -> QPixmap:
        pixmap = QPixmap(area.size().toSize() * ratio + QPixmap(2, 2).size())
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setPen(color)
        self.fill(painter, -area.topLeft(), size_px)
        painter.end()
        return pixmap


def _path(made: Typeset) -> QPainterPath:
    path = QPainterPath()
    path.setFillRule(Qt.FillRule.WindingFill)
    _draw(path, made.fill)
    for data, width in made.strokes:
        line = QPainterPath()
        _draw(line, data)
        stroker = QPainterPathStroker()
        stroker.setWidth(width)
        path.addPath(stroker.createStroke(line))
    for letters in made.letters:
        font = ui_font(100)
        text = QPainterPath()
        text.setFillRule(Qt.FillRule.WindingFill)
        text.addText(QPointF(), font, letters.text)
        place = QTransform.fromTranslate(letters.x, letters.y).scale(letters.size / 100, letters.size / 100)
        path.addPath(place.map(text))
    return path


def _draw(path: QPainterPath, data: str) -> None:
    """Adds absolute SVG path data of the commands M, L, Q, C and Z."""
    words = iter(data.split())

    def point() -> QPointF:
        return QPointF(float(next(words)), float(next(words)))

    for command in words:
        match command:
            case "M":
                path.moveTo(point())
            case "L":
                path.lineTo(point())
            case "Q":
                path.quadTo(point(), point())
            case "C":
                path.cubicTo(point(), point(), point())
            case "Z":
                path.closeSubpath()


class Formulas(QObject):
    """The known formulas of this process, and those that the child process is typesetting."""

    arrived = Signal()

    def __init__(self) -> None:
        # Deleted with the application: deleted after it, it ends the process with a fault.
        super().__init__(QCoreApplication.instance())
        if application := QCoreApplication.instance():
            application.aboutToQuit.connect(self.stop)
        atexit.register(lambda: self.stop() if isValid(self) else None)
        self._known: OrderedDict[Formula, Shape | None] = OrderedDict()
        self._kept_bytes = 0
        self._waiting: OrderedDict[Formula, None] = OrderedDict()
        self._process: QProcess | None = None
        self._is_ready = False

    def get(self, formula: Formula) -> Shape | None:
        """The formula; None if it cannot be typeset or is not known yet. Then it is requested."""
        if formula not in self._known and not _may_be_typeset(formula):
            self.keep(formula, None)
        if formula in self._known:
            self._known.move_to_end(formula)
            return self._known[formula]
        self._ask(formula)
        return None

    def knows(self, formula: Formula) -> bool:
        """Whether it has been typeset or refused."""
        return formula in self._known

    def mathml(self, formula: Formula) -> str:
        """The formula as MathML; empty if it is not known or cannot be typeset."""
        shape = self.get(formula)
        return shape.made.mathml if shape else ""

    def keep(self, formula: Formula, made: Typeset | None) -> None:
        self._known[formula] = Shape(made) if made else None
        self._kept_bytes += _size(formula, made)
        while self._kept_bytes > _MOST_KEPT_BYTES:
            oldest, shape = self._known.popitem(last=False)
            self._kept_bytes -= _size(oldest, shape.made if shape else None)

    def _ask(self, formula: Formula) -> None:
        if formula in self._waiting or len(self._waiting) >= _MOST_WAITING:
            return
        self._waiting[formula] = None
        if self._process is None:
            self._start()
        elif self._is_ready:
            self._send(formula)

    def _start(self) -> None:
        self._is_ready = False
        self._process = process = QProcess(self)
        environment = QProcessEnvironment()
        for name, value in child_environment().items():
            environment.insert(name, value)
        process.setProcessEnvironment(environment)
        process.setWorkingDirectory(CHILD_FOLDER)
        process.setProcessChannelMode(QProcess.ProcessChannelMode.ForwardedErrorChannel)
        process.readyReadStandardOutput.connect(self._read)
        process.finished.connect(self._end)
        process.errorOccurred.connect(self._fail)
        program, *words = child_command("--typeset")
        process.start(program, words)

    def _send(self, formula: Formula) -> None:
        assert self._process
        self._process.write(msgspec.json.encode(formula) + b"\n")

    def _read(self) -> None:
        assert self._process
        arrived = False
        while self._process and self._process.canReadLine():
            line = bytes(self._process.readLine().data()).strip()
            if not self._is_ready:
                self._is_ready = True
                for formula in self._waiting:
                    self._send(formula)
            elif self._waiting:
                formula, _ = self._waiting.popitem(last=False)
                self.keep(formula, _decoded(line))
                arrived = True
        if arrived:
            self.arrived.emit()

    def _end(self) -> None:
        """The process has ended: it was idle, a formula took its memory, or it could not start."""
        process, self._process = self._process, None
        if process is None:
            return
        failed = bool(process.exitCode()) or process.exitStatus() is QProcess.ExitStatus.CrashExit
        process.deleteLater()
        if failed or not self._is_ready:
            refused = list(self._waiting)[: 1 if self._is_ready else None]
            for formula in refused:
                del self._waiting[formula]
                self.keep(formula, None)
        if self._waiting:
            self._start()

    def _fail(self, error: QProcess.ProcessError) -> None:
        if error is QProcess.ProcessError.FailedToStart:
            self._end()

    def stop(self) -> None:
        """End the process; waiting formulas are requested again when they are shown."""
        process, self._process = self._process, None
        self._waiting.clear()
        if process is None:
            return
        if QCoreApplication.instance() is None:  # Qt's objects are no longer to be used
            with suppress(OSError):
                os.kill(process.processId(), signal.SIGKILL)
            return
        process.blockSignals(True)
        process.kill()
        process.waitForFinished()
        process.deleteLater()


@cache
def formulas() -> Formulas:
    """The formulas of this process. Needs an application."""
    return Formulas()


def typeset_now(
    wanted: Iterable[Formula], check: Callable[[], object] = lambda: None
) -> dict[Formula, Shape]:
    """Typesets formulas in a separate process, and returns those that can be typeset. Blocks; any thread.

    `check` is called for each formula and may raise to stop.
    """
    waiting = list(dict.fromkeys(filter(_may_be_typeset, wanted)))
    made: dict[Formula, Shape] = {}
    for _ in range(_RETRIES):
        if not waiting:
            break
        with subprocess.Popen(
            child_command("--typeset"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=child_environment(),
            cwd=CHILD_FOLDER,
        ) as process:
            assert process.stdin
            assert process.stdout
            try:
                if not process.stdout.readline():
                    break
                while waiting:
                    process.stdin.write(msgspec.json.encode(waiting[0]) + b"\n")
                    process.stdin.flush()
                    line = process.stdout.readline()
                    formula = waiting.pop(0)
                    if shape := _decoded(line):
                        made[formula] = Shape(shape)
                    check()
                    if not line:
                        break
            except BrokenPipeError:
                waiting.pop(0)
            finally:
                process.kill()
    return made


def _may_be_typeset(formula: Formula) -> bool:
    """Whether it is short enough, and has no half of a character, which cannot be encoded."""
    return len(formula.latex) <= LONGEST and not any("\ud800" <= each <= "\udfff" for each in formula.latex)


def _decoded(line: bytes) -> Typeset | None:
    return _decoder.decode(line) if line.strip() not in (b"", b"{}") else None


def _size(formula: Formula, made: Typeset | None) -> int:
    """About how many bytes it holds."""
    return 2 * (len(formula.latex) + (len(made.fill) + len(made.mathml) if made else 0)) + 500
