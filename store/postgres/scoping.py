"""Statements of the storage port, rewritten for tables that hold all banks.

A statement of the port concerns one bank and does not name it (`store/database.py`). Here every
table of a bank is replaced by the part of it that belongs to the bank, in sub-selects too, so no
statement can forget the bank:

    SELECT id FROM items WHERE kind = ?
    SELECT id FROM (SELECT * FROM items WHERE bank = $1) AS items WHERE kind = $2

The server merges such a sub-select into the statement around it, so the plan is the same as for a
condition written by hand. Row-level security is the second fence, not this one.

The rewriting understands the port's subset of SQL and refuses other statements. It happens once for
each text.
"""

import re
from functools import lru_cache
from typing import Final, NamedTuple

#: The tables that hold rows of banks.
BANK_TABLES: Final = (
    "state", "models", "documents", "items", "words", "postings", "vectors", "turns", "evidence",
    "profiles", "put_keys", "origins", "tombstones", "source_files", "undo_steps",
)  # fmt: skip

_TABLES: Final = frozenset(BANK_TABLES)
_TOKEN: Final = re.compile(
    r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|\s+|\|\||::|<>|<=|>=|!=|->>|->|.", re.DOTALL
)
_OWN: Final = "bank = $1"
_BANK: Final = re.compile(r"\$1(?!\d)")
_VERBS: Final = frozenset(("SELECT", "INSERT", "UPDATE", "DELETE"))


class Scoped(NamedTuple):
    """A statement as the server gets it."""

    sql: str
    names_bank: bool  # whether $1 is the bank's number


class ScopingRefused(Exception):
    """The statement is outside the port's subset of SQL."""


@lru_cache(maxsize=8_192)
def scoped(sql: str) -> Scoped:
    """The statement with numbered parameters, limited to the rows of the bank `$1`."""
    tokens = [token for token in _TOKEN.findall(sql) if not token.isspace()]
    rewritten = _Rewriting(tokens, first=2).run()
    if _BANK.search(rewritten) is not None:
        return Scoped(rewritten, names_bank=True)
    return Scoped(_Rewriting(tokens, first=1).run(), names_bank=False)


class _Rewriting:
    """One pass over the tokens of a statement."""

    def __init__(self, tokens: list[str], *, first: int) -> None:
        self._tokens = tokens
        self._at = 0
        self._next = first
        self._out: list[str] = []

    def run(self) -> str:
        verb = self._peek().upper()
        if verb not in _VERBS:
            raise ScopingRefused(f"{verb} is not in the port's subset")
        if verb == "INSERT":
            self._insert()
        elif verb == "UPDATE":
            self._take()
            self._change(self._table())
        elif verb == "DELETE":
            self._take()
            self._take()
            self._change(self._table())
        else:
            self._copy()
        return " ".join(self._out)

    # --- statements -----------------------------------------------------------------------

    def _insert(self) -> None:
        """INSERT INTO table (columns) VALUES (…) | SELECT …"""
        self._take()
        self._take()
        table = self._table()
        if table is None:
            self._copy()
            return
        if self._peek() != "(":
            raise ScopingRefused("INSERT must name its columns")
        self._take()
        self._out.append("bank,")
        while self._peek().upper() not in ("VALUES", "SELECT"):
            self._one()
        if self._take().upper() == "VALUES":
            self._take()  # the parenthesis
            self._out.append("$1,")
        else:
            self._out.append("$1::bigint,")
        while self._at < len(self._tokens):
            if self._peek().upper() == "CONFLICT":
                self._take()
                if self._peek() == "(":
                    self._take()
                    self._out.append("bank,")
            else:
                self._one()

    def _change(self, table: str | None) -> None:
        """The rest of an UPDATE or DELETE: its outermost WHERE gets the bank."""
        if table is None:
            self._copy()
            return
        depth = 0
        is_limited = False
        while self._at < len(self._tokens):
            word = self._peek().upper()
            if depth == 0 and word == "WHERE":
                self._take()
                self._out.append(f"{table}.{_OWN} AND (")
                is_limited = True
            elif depth == 0 and word == "RETURNING":
                self._out.append(")" if is_limited else f"WHERE {table}.{_OWN}")
                self._copy()
                return
            else:
                depth += {"(": 1, ")": -1}.get(word, 0)
                self._one()
        self._out.append(")" if is_limited else f"WHERE {table}.{_OWN}")

    def _copy(self) -> None:
        while self._at < len(self._tokens):
            self._one()

    # --- tokens ---------------------------------------------------------------------------

    def _one(self) -> None:
        """Copy one token; a parameter gets its number, and FROM and JOIN a part of their table."""
        token = self._take()
        if token == "?":
            self._out[-1] = f"${self._next}"
            self._next += 1
        elif token == "user":
            self._out[-1] = '"user"'  # a column of ours; bare it is the database user
        elif token == "(" and self._peek() == ")" and self._out[-2].upper() == "IN":
            self._out.append("NULL")  # an empty list, which PostgreSQL does not know
        elif token.upper() in ("FROM", "JOIN") and self._peek() in _TABLES:
            self._part()

    def _part(self) -> None:
        table = self._tokens[self._at]
        self._at += 1
        name = table
        if self._peek().upper() == "AS":
            name = self._tokens[self._at + 1]
            self._at += 2
        if self._peek().upper() == "INDEXED":  # a hint for SQLite: INDEXED BY name
            self._at += 3
        if self._peek() == ",":
            raise ScopingRefused("tables are joined with JOIN")
        self._out.append(f"(SELECT * FROM {table} WHERE {_OWN}) AS {name}")

    def _table(self) -> str | None:
        """The table that the statement changes; None if it does not belong to a bank."""
        table = self._take()
        return table if table in _TABLES else None

    def _take(self) -> str:
        token = self._tokens[self._at]
        self._at += 1
        self._out.append(token)
        return token

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""
