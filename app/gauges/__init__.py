"""Gauges: live figures of the answer being written, painted with QPainter. Knows no worker."""
