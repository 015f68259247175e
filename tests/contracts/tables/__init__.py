"""The dialects' documents as data: parameters, result fields and example calls of every tool.

Each dialect has a module that exports `DIALECT`; `dialects.py` lists them.
"""
