"""ImageViewer: the window that shows the images of one message, one at a time.

The arrow keys go to the other images, + and − zoom, 0 fits the image into the window, Space and Escape
close. Until the process that reads images has made a preview, the enlarged thumbnail is shown. An image that
fits can be dragged to another program; an enlarged one is moved in the window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import (
    QImage,
    QKeyEvent,
    QKeySequence,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPixmap,
    QResizeEvent,
    QTransform,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QGraphicsPixmapItem,
    QGraphicsScene,
    QGraphicsView,
    QWidget,
)

from app.chat import strings
from app.chat.image_files import ImageFiles
from app.chat.image_tile import drag_out
from app.controls.buttons import Button, IconButton, on_click
from app.controls.keys import DragStart, held
from app.features.side_window import SideWindow
from app.theme.measures import column_of
from app.theme.theme import color, theme
from core.documents.client import ImageReading
from core.errors import RequestError
from core.events import Image

_SIZE, _MINIMUM = QSize(900, 680), QSize(420, 320)
_STEP = 1.25
_LEAST, _MOST = 0.05, 16.0  # screen pixels for a pixel of the image
_WHEEL_STEP = 120.0


class PictureView(QGraphicsView):
    """One picture. `drag` is called when it is dragged while it fits."""

    def __init__(self, drag: Callable[[], object], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._drag = drag
        self._drag_start = DragStart()
        self.fits = True
        self._scene = QGraphicsScene(self)
        self._item = QGraphicsPixmapItem()
        self._item.setTransformationMode(Qt.TransformationMode.SmoothTransformation)
        self._scene.addItem(self._item)
        self.setScene(self._scene)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setRenderHint(QPainter.RenderHint.SmoothPixmapTransform)
        self.setTransformationAnchor(QGraphicsView.ViewportAnchor.AnchorUnderMouse)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        theme.changed.connect(self._recolour)
        self._recolour()

    @property
    def factor(self) -> float:
        """Screen pixels for a pixel of the image."""
        return self.transform().m11()

    def show_picture(self, shown: QPixmap | None, size: QSize) -> None:
        """Show a picture of an image of that size in pixels; the zoom stays."""
        shown = shown or QPixmap()
        self._item.setPixmap(shown)
        self._item.setScale(size.width() / shown.width() if shown.width() else 1.0)
        self._scene.setSceneRect(QRectF(QPointF(0, 0), QPointF(size.width(), size.height())))
        if self.fits:
            self.fit()

    def fit(self) -> None:
        """Fit the image into the view; a small one keeps its size."""
        self.fits = True
        area, room = self.sceneRect(), self.maximumViewportSize()
        factor = min(room.width() / max(1.0, area.width()), room.height() / max(1.0, area.height()), 1.0)
        self._scale_to(factor)

    def zoom(self, by: float) -> None:
        self.fits = False
        self._scale_to(max(_LEAST, min(self.factor * by, _MOST)))

    def _scale_to(self, factor: float) -> None:
        self.setTransform(QTransform.fromScale(factor, factor))
        mode = QGraphicsView.DragMode.NoDrag if self.fits else QGraphicsView.DragMode.ScrollHandDrag
        self.setDragMode(mode)
        bars = Qt.ScrollBarPolicy.ScrollBarAlwaysOff if self.fits else Qt.ScrollBarPolicy.ScrollBarAsNeeded
        self.setHorizontalScrollBarPolicy(bars)
        self.setVerticalScrollBarPolicy(bars)

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self.fits:
            self.fit()

    def wheelEvent(self, event: QWheelEvent) -> None:
        if held(event) == Qt.KeyboardModifier.ControlModifier:
            self.zoom(_STEP ** (event.angleDelta().y() / _WHEEL_STEP))
        else:
            super().wheelEvent(event)

    def viewportEvent(self, event: QEvent) -> bool:
        pinch = Qt.NativeGestureType.ZoomNativeGesture  # with two fingers on a trackpad
        if isinstance(event, QNativeGestureEvent) and event.gestureType() == pinch:
            self.zoom(1.0 + event.value())
            return True
        return super().viewportEvent(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        event.ignore()  # all keys are the window's

    def mousePressEvent(self, event: QMouseEvent) -> None:
        self._drag_start.press(event)
        super().mousePressEvent(event)

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        if self.fits and self._drag_start.begins(event):
            self._drag()
        else:
            super().mouseMoveEvent(event)

    def _recolour(self) -> None:
        self.setBackgroundBrush(color("window"))


class ImageViewer(SideWindow):
    """`show_images` gives it the images of a message."""

    def __init__(self) -> None:
        super().__init__(strings.VIEWER_NAME, _SIZE, _MINIMUM)
        self._files: ImageFiles | None = None
        self._images: tuple[Image, ...] = ()
        self.index = 0
        self._reading: ImageReading | None = None
        self.has_preview = False  # instead of the thumbnail
        self.previous_button = IconButton("left", strings.PREVIOUS_IMAGE)
        self.next_button = IconButton("right", strings.NEXT_IMAGE)
        self.out_button = IconButton("minus", strings.ZOOM_OUT)
        self.in_button = IconButton("plus", strings.ZOOM_IN)
        self.fit_button = Button(strings.ZOOM_TO_FIT, small=True)
        self.copy_button = IconButton("copy", strings.COPY_SHOWN)
        self.save_button = IconButton("save", strings.SAVE_SHOWN)
        self.view = PictureView(self._drag_out)
        on_click(
            (self.previous_button, lambda: self.step(-1)),
            (self.next_button, lambda: self.step(1)),
            (self.out_button, lambda: self.view.zoom(1 / _STEP)),
            (self.in_button, lambda: self.view.zoom(_STEP)),
            (self.fit_button, self.view.fit),
            (self.copy_button, self._copy),
            (self.save_button, self._save),
        )
        header = self.make_header(
            (self.previous_button, self.next_button),
            (self.out_button, self.in_button, self.fit_button),
            (self.copy_button, self.save_button),
        )
        column_of(header, (self.view, 1), parent=self)

    @property
    def image(self) -> Image | None:
        """The image that is shown."""
        return self._images[self.index] if self._images else None

    def show_images(self, images: Sequence[Image], index: int, files: ImageFiles) -> None:
        """Show image `index` of a message, whose images `files` has."""
        self._stop()
        self._files, self._images, self.index = files, tuple(images), index
        self._show()

    def step(self, by: int) -> None:
        """Show the next or the previous image; there is none after the last one."""
        if 0 <= self.index + by < len(self._images):
            self.index += by
            self._show()

    def _show(self) -> None:
        image, files = self.image, self._files
        if image is None or files is None:
            return
        self._stop()
        count, size = len(self._images), QSize(image.width, image.height)
        shown = files.picture(image)
        says = strings.pixels(image.width, image.height) if shown else strings.IMAGE_MISSING
        self.setWindowTitle(image.name)
        self.setAccessibleName(strings.image_name(self.index + 1, count, image.name))
        self.view.setAccessibleName(self.accessibleName())
        self.view.setAccessibleDescription(says)
        self.titles.name.setText(image.name)
        self._say(says)
        for button in (self.previous_button, self.next_button):
            button.setVisible(count > 1)
        self.previous_button.setEnabled(self.index > 0)
        self.next_button.setEnabled(self.index + 1 < count)
        for button in (self.copy_button, self.save_button):
            button.setEnabled(shown is not None)
        self.view.fits, self.has_preview = True, False
        self.view.show_picture(shown, size)
        if shown is not None:
            self._reading = files.preview(
                image, lambda found: self._take(image, found), lambda error: self._refuse(image, error)
            )

    def _take(self, image: Image, found: QImage) -> None:
        if image is self.image:
            self.has_preview = True
            self.view.show_picture(QPixmap.fromImage(found), QSize(image.width, image.height))

    def _refuse(self, image: Image, error: RequestError) -> None:
        """The image's file cannot be read: its thumbnail stays, and cannot be copied or saved."""
        if image is self.image:
            self._say(strings.only_thumbnail(error.message))
            for button in (self.copy_button, self.save_button):
                button.setEnabled(False)

    def _say(self, says: str) -> None:
        count = len(self._images)
        self.titles.say(f"{self.index + 1} of {count} · {says}" if count > 1 else says)

    def _stop(self) -> None:
        if self._reading is not None and self._files is not None:
            self._files.stop(self._reading)
            self._reading = None

    def _copy(self) -> None:
        if self._files and self.image:
            self._files.copy(self.image)

    def _save(self) -> None:
        if self._files and self.image:
            self._files.save_as(self.image, self)

    def _drag_out(self) -> None:
        if self._files and self.image:
            drag_out(self, self._files, self.image, self._files.picture(self.image))

    def keyPressEvent(self, event: QKeyEvent) -> None:
        key, standard = event.key(), QKeySequence.StandardKey
        if event.matches(standard.Copy):
            self._copy()
        elif event.matches(standard.Save):
            self._save()
        elif key in (Qt.Key.Key_Left, Qt.Key.Key_Up):
            self.step(-1)
        elif key in (Qt.Key.Key_Right, Qt.Key.Key_Down):
            self.step(1)
        elif key in (Qt.Key.Key_Plus, Qt.Key.Key_Equal):
            self.view.zoom(_STEP)
        elif key == Qt.Key.Key_Minus:
            self.view.zoom(1 / _STEP)
        elif key == Qt.Key.Key_0:
            self.view.fit()
        elif key == Qt.Key.Key_Space:
            self.close()
        else:
            super().keyPressEvent(event)

    def hideEvent(self, event: QEvent) -> None:
        self._stop()
        super().hideEvent(event)  # type: ignore[arg-type]
