"""Calls that go on as tasks."""
