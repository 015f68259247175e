"""Tasks and risks.

A new task that makes the same statement as an open one is a duplicate of it. A status changes only
if a caller names the id and the new status.

An event that is open work ("TODO: …") counts as a task until it is resolved, with the id of the
event. It is not listed beside a task that makes the same statement, and it is resolved together
with that task.
"""

import re
from typing import Any, Final

import msgspec

from store.database import Connection
from store.errors import NotFound
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
from store.ranking.similarity import same_statement, same_words, statement
from store.rows.items import SELECT, find, item_of, where
from store.rows.listing import listing
from store.rows.memories import change_item, insert_row
from store.rows.prepared import prepare
from store.rows.similar import candidates
from store.rows.transaction import WriteTransaction
from store.validate import check_choice, check_text, encode_json

# Constants, not parameters: SQLite uses the partial index `items_open` only then.
_OPEN_EVENT: Final = "items.kind = 'event' AND items.status = 'open' AND items.forgotten_at IS NULL"
_COMPARED_EVENTS: Final = 200  # the newest open events are compared with the open tasks
_TITLE_CHARACTERS: Final = 160
_LABEL: Final = re.compile(
    r"\s{0,40}[-*]?\s{0,4}(?:todo|to-do|fixme|blocked)\b\s{0,4}[:\u2013-]?\s{0,40}", re.I
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?\u3002])\s|\n")


def _task_status(connection: Connection) -> str:
    """The status as a task of an open event."""
    return connection.dialect.member("items.details", "task_status")


def _order(connection: Connection) -> str:
    return (
        f"CASE WHEN items.status = 'in_progress' OR {_task_status(connection)} = 'in_progress'"
        " THEN 0 WHEN items.status IN ('pending', 'open') THEN 1 ELSE 2 END,"
        " CASE coalesce(items.level, 'medium') WHEN 'high' THEN 0 WHEN 'medium' THEN 1 ELSE 2 END,"
        " items.id DESC"
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
    """Change the given fields of a task; of an open event only status and priority."""
    item = find(transaction.connection, id)
    if item.kind == "event" and item.status == "open" and detail is None:
        return _change_event(transaction, item, now, status=status, priority=priority)
    if item.kind != "task":
        raise NotFound("task", id)
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
    if status == "completed":
        for event in candidates(transaction.connection, "event", item.title):
            if event.status == "open" and same_statement(_event_title(event), item.title):
                change_item(transaction, event, now, status="resolved")
    return task_of(change_item(transaction, item, now, **fields))


def _change_event(
    transaction: WriteTransaction,
    event: Item,
    now: int,
    *,
    status: str | None,
    priority: str | None,
) -> Task:
    fields: dict[str, str] = {}
    if status is not None:
        check_choice("status", status, TASK_STATUSES)
        is_over = status in ("completed", "superseded")
        fields["status"] = "resolved" if is_over else "open"
        fields["details"] = encode_json("details", {**event.details, "task_status": status})
    if priority is not None:
        check_choice("priority", priority, LEVELS)
        fields["level"] = priority
    return task_of(change_item(transaction, event, now, **fields))


def page(
    connection: Connection, filters: Filters, *, limit: int, offset: int
) -> tuple[list[Task], int]:
    """A page of tasks (by status, priority and age, newest first), and the number of all tasks."""
    condition, values = where(connection.dialect, filters, ("task",))
    ids = f"SELECT items.id FROM items WHERE {condition}"
    events = _open_events(connection, filters)
    if events is not None:
        ids += f" UNION ALL SELECT items.id FROM items WHERE {events[0]}"
        values = [*values, *events[1]]
    total = connection.execute(f"SELECT count(*) FROM ({ids}) AS open", values).fetchone()
    rows = connection.execute(
        f"{SELECT} WHERE items.id IN ({ids}) ORDER BY {_order(connection)} LIMIT ? OFFSET ?",
        [*values, limit, offset],
    )
    return [task_of(item_of(row)) for row in rows], total[0]


def _open_events(connection: Connection, filters: Filters) -> tuple[str, list[Any]] | None:
    """The condition for the open events that pass the filters of tasks; None if none can pass."""
    statuses = set(filters.statuses)
    if filters.levels and "medium" not in filters.levels and not _has_levels(connection):
        return None
    if statuses and not statuses & {"pending", "in_progress"}:
        return None
    rest = msgspec.structs.replace(filters, statuses=(), levels=())
    condition, values = where(connection.dialect, rest, ())
    conditions = [_OPEN_EVENT, condition]
    if statuses and "in_progress" not in statuses:
        conditions.append(f"coalesce({_task_status(connection)}, '') <> 'in_progress'")
    elif statuses and "pending" not in statuses:
        conditions.append(f"{_task_status(connection)} = 'in_progress'")
    if filters.levels:
        marks = ",".join("?" * len(filters.levels))
        conditions.append(f"coalesce(items.level, 'medium') IN ({marks})")
        values.extend(filters.levels)
    repeated = _repeated_events(connection)
    if repeated:
        conditions.append(f"items.id NOT IN ({','.join('?' * len(repeated))})")
        values.extend(repeated)
    return " AND ".join(conditions), values


def _has_levels(connection: Connection) -> bool:
    found = connection.execute(
        f"SELECT 1 FROM items WHERE {_OPEN_EVENT} AND items.level IS NOT NULL LIMIT 1"
    ).fetchone()
    return found is not None


def _repeated_events(connection: Connection) -> list[int]:
    """The open events that make the statement of an open task."""
    events = connection.execute(
        f"{SELECT} WHERE {_OPEN_EVENT} ORDER BY items.id DESC LIMIT ?", (_COMPARED_EVENTS,)
    ).fetchall()
    if not events:
        return []
    titles = connection.execute(
        "SELECT items.title FROM items WHERE items.kind = 'task' AND items.forgotten_at IS NULL"
        " AND items.status IN ('pending', 'in_progress') ORDER BY items.id DESC LIMIT ?",
        (_COMPARED_EVENTS,),
    ).fetchall()
    known = {statement(title) for (title,) in titles}
    items = map(item_of, events) if known else ()
    return [item.rowid for item in items if statement(_event_title(item)) in known]


def _event_title(event: Item) -> str:
    """The first sentence of an event, without "TODO:"."""
    text = _LABEL.sub("", event.title or event.text[: 4 * _TITLE_CHARACTERS], count=1)
    first = _SENTENCE_END.split(text.strip(), maxsplit=1)[0].strip() or event.text.strip()
    return first if len(first) <= _TITLE_CHARACTERS else first[: _TITLE_CHARACTERS - 1] + "\u2026"


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
    if item.kind == "event":
        return Task(
            id=item.id,
            title=_event_title(item),
            detail=item.text,
            priority=item.level or "medium",
            status=item.details.get("task_status") or "pending",
            context=item.context,
            effort=None,
            updated_at=item.updated_at,
            item=item,
        )
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
