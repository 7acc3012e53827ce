"""Reproducible measurements behind each claim of the README."""
