"""Tasks and risks.

A new task that makes the same statement as an open one is a duplicate of it. A status changes only
if a caller names the id and the new status.
"""

from typing import Final

from store.database import Connection
from store.model import (
    LEVELS,
    RISK_STATUSES,
    TASK_STATUSES,
    Filters,
    Item,
    NewMemory,
    NewRisk,
    NewTask,
    Put,
    Risk,
    Task,
)
from store.ranking.similarity import same_statement, same_words
from store.rows.items import SELECT, find, item_of, where
from store.rows.listing import listing
from store.rows.memories import change_item, insert_row
from store.rows.prepared import prepare
from store.rows.similar import candidates
from store.rows.transaction import WriteTransaction
from store.validate import check_choice, check_text, encode_json

_ORDER: Final = (
    "CASE items.status WHEN 'in_progress' THEN 0 WHEN 'pending' THEN 1 ELSE 2 END,"
    " CASE items.level WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END, items.id DESC"
)


def put(transaction: WriteTransaction, task: NewTask, now: int) -> Put:
    """Store a task, unless an open task makes the same statement."""
    check_text("title", task.title, empty=False)
    check_choice("status", task.status, TASK_STATUSES)
    check_choice("priority", task.priority, LEVELS)
    prepared = prepare(
        NewMemory(
            kind="task",
            title=task.title,
            text=task.detail,
            context=task.context,
            status=task.status,
            level=task.priority,
            session=task.session,
            source=task.source,
            user=task.user,
            role=task.role,
            metadata=task.metadata,
            details={"effort": task.effort} if task.effort else {},
            provenance=task.provenance,
        ),
        now,
    )
    for known in candidates(transaction.connection, "task", task.title):
        if (
            known.status != "completed"
            and known.user == task.user
            and same_statement(known.title, task.title)
        ):
            known = change_item(transaction, known, now, repeats=known.repeats + 1)
            return Put(id=known.id, rowid=known.rowid, duplicate=True, repeats=known.repeats)
    return insert_row(transaction, prepared, document=None, position=None)


def change(
    transaction: WriteTransaction,
    id: str,
    now: int,
    *,
    status: str | None = None,
    priority: str | None = None,
    detail: str | None = None,
) -> Task:
    """Change the given fields of a task."""
    item = find(transaction.connection, id, kind="task")
    fields: dict[str, str] = {}
    if status is not None:
        check_choice("status", status, TASK_STATUSES)
        fields["status"] = status
    if priority is not None:
        check_choice("priority", priority, LEVELS)
        fields["level"] = priority
    if detail is not None:
        check_text("detail", detail)
        fields["text"] = detail
    return task_of(change_item(transaction, item, now, **fields))


def page(
    connection: Connection, filters: Filters, *, limit: int, offset: int
) -> tuple[list[Task], int]:
    """A page of tasks (by status, priority and age, newest first), and the number of all tasks."""
    condition, values = where(connection.dialect, filters, ("task",))
    total = connection.execute(f"SELECT count(*) FROM items WHERE {condition}", values).fetchone()
    rows = connection.execute(
        f"{SELECT} WHERE {condition} ORDER BY {_ORDER} LIMIT ? OFFSET ?", [*values, limit, offset]
    )
    return [task_of(item_of(row)) for row in rows], total[0]


def put_risk(transaction: WriteTransaction, risk: NewRisk, now: int) -> Put:
    """Store a risk, or update the existing risk with the same title."""
    check_text("title", risk.title, empty=False)
    check_choice("status", risk.status, RISK_STATUSES)
    check_choice("level", risk.level, LEVELS)
    details = {"mitigation": risk.mitigation} if risk.mitigation else {}
    prepared = prepare(
        NewMemory(
            kind="risk",
            title=risk.title,
            text=risk.detail,
            status=risk.status,
            level=risk.level,
            session=risk.session,
            source=risk.source,
            user=risk.user,
            role=risk.role,
            metadata=risk.metadata,
            details=details,
            provenance=risk.provenance,
        ),
        now,
    )
    for known in candidates(transaction.connection, "risk", risk.title):
        if known.user == risk.user and same_words(known.title, risk.title):
            known = change_item(
                transaction,
                known,
                now,
                text=risk.detail or known.text,
                level=risk.level,
                status=risk.status,
                details=encode_json("details", {**known.details, **details}),
                repeats=known.repeats + 1,
            )
            return Put(id=known.id, rowid=known.rowid, duplicate=True, repeats=known.repeats)
    return insert_row(transaction, prepared, document=None, position=None)


def change_risk(transaction: WriteTransaction, id: str, now: int, *, status: str) -> Risk:
    check_choice("status", status, RISK_STATUSES)
    item = find(transaction.connection, id, kind="risk")
    return risk_of(change_item(transaction, item, now, status=status))


def risk_page(
    connection: Connection, filters: Filters, *, limit: int, offset: int
) -> tuple[list[Risk], int]:
    """A page of risks, newest first, and the number of all risks."""
    found = listing(
        connection, kinds=("risk",), filters=filters, limit=limit, offset=offset, by="arrival"
    )
    return [risk_of(item) for item in found.items], found.total


def task_of(item: Item) -> Task:
    return Task(
        id=item.id,
        title=item.title,
        detail=item.text,
        priority=item.level or "medium",
        status=item.status or "pending",
        context=item.context,
        effort=item.details.get("effort"),
        updated_at=item.updated_at,
        item=item,
    )


def risk_of(item: Item) -> Risk:
    return Risk(
        id=item.id,
        title=item.title,
        detail=item.text,
        level=item.level or "medium",
        mitigation=item.details.get("mitigation", ""),
        status=item.status or "active",
        item=item,
    )
