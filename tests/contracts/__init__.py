"""The documents' promises as data, and tests that hold every dialect to them on every way in.

A dialect's module here (`hindsight.py`, `recall.py`, …) exports `DIALECT`: tables of parameters and
result fields copied from its document, and calls to try them with. `DIALECTS` below lists them; the
shared tests (`test_listing`, `test_calls`, `test_refusals`) take everything from the tables.
"""
