"""Contract tests: every dialect behaves as its document says, on every transport and revision.

`tables/` holds each document's parameters, result fields and examples as data. `every_tool/` checks
every tool against those tables. `awareness/` and `dialects/` test behaviour that the tables cannot
express, and the modules here test features that the dialects share.
"""
