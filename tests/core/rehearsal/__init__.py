"""Tests of core.rehearsal."""
