"""Gauges: live figures of the answer being written, painted with QPainter. Independent of the worker."""
