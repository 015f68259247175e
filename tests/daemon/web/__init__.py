"""Tests of the web UI. `browser/` drives a real browser."""
