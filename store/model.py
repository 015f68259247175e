"""The engine's nouns, as values.

Everything a bank keeps and can search is an `Item` of some kind. What only one kind has (a task's
priority, a skill's steps) travels in `details`, and the typed views `Card`, `Task`, `Risk`,
`Skill` and `Narrative` give it names. Times are unix milliseconds, UTC. An item's `id` is what
callers know; its `rowid` is the bank's change number at its birth, rises with every item and is
never used again.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, get_args

from msgspec import Meta, Struct

Kind = Literal["memory", "event", "card", "task", "risk", "narrative", "skill", "chunk"]
Mode = Literal["keyword", "semantic", "hybrid"]

Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]  # the range of an INTEGER column

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

CARD_STATUSES: Final = ("open", "in_progress", "resolved", "noted", "superseded")
TASK_STATUSES: Final = ("pending", "in_progress", "completed", "superseded")
RISK_STATUSES: Final = ("active", "mitigated", "resolved", "superseded")
LEVELS: Final = ("low", "medium", "high")  # a task's priority, a risk's level

TEXT_LIMIT: Final = 1_048_576  # bytes of UTF-8 in one text; documents may be 16 times that
DOCUMENT_LIMIT: Final = 16 * TEXT_LIMIT
SHORT_LIMIT: Final = 4_096  # titles, labels, ids of others
METADATA_LIMIT: Final = 65_536  # bytes of JSON


class Provenance(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """By which door a thing came in, and who brought it."""

    dialect: str | None = None
    client: str | None = None
    transport: str | None = None
    principal: str | None = None
    explanation: str | None = None  # why the caller says it stored this


class Item(Struct, frozen=True, kw_only=True):
    """One searchable thing in a bank."""

    rowid: int
    id: str
    kind: Kind
    text: str
    title: str = ""
    context: str | None = None
    category: str | None = None  # a memory's type, a card's category, a narrative's span
    status: str | None = None
    level: str | None = None
    confidence: float | None = None
    salience: float | None = None
    session: str | None = None
    document: str | None = None
    position: int | None = None  # a chunk's place in its document
    source: str | None = None
    user: str | None = None
    role: str | None = None
    actor: str | None = None
    event_type: str | None = None
    key: str | None = None  # a natural key: a second put with it replaces
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()
    occurred_at: int
    created_at: int
    updated_at: int
    superseded_by: str | None = None
    repeats: int = 0  # how often exactly this was put again


class NewMemory(Struct, frozen=True, kw_only=True):
    """Something to be kept: a memory, an event, or (from inside the engine) any other kind."""

    text: str
    kind: Kind = "memory"
    id: str | None = None  # in a surface's own format; random when absent
    title: str = ""
    context: str | None = None
    category: str | None = None
    status: str | None = None
    level: str | None = None
    confidence: float | None = None
    salience: float | None = None
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    actor: str | None = None
    event_type: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = {}
    details: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()
    occurred_at: int | None = None
    idempotency_key: str | None = None
    allow_duplicate: bool = False


class Put(Struct, frozen=True, kw_only=True):
    """What became of a put: the item's id, and whether it was there already."""

    id: str
    rowid: int
    duplicate: bool = False
    repeats: int = 0


# --- documents --------------------------------------------------------------------------------


class NewDocument(Struct, frozen=True, kw_only=True):
    """A document to be kept and cut into chunks; `source` and `source_id` say which one it is."""

    source: str
    source_id: str
    body: str
    id: str | None = None
    title: str = ""
    author: str | None = None
    url: str | None = None
    content_type: str = "text/plain"
    metadata: Mapping[str, Any] = {}
    created_at: int | None = None
    updated_at: int | None = None
    session: str | None = None
    user: str | None = None
    role: str | None = None
    provenance: Provenance = Provenance()
    run: str | None = None  # the import run that saw it, for sweeping what it no longer saw


class DocumentHeader(Struct, frozen=True, kw_only=True):
    """A stored document without its body. `updated_at` is the document's own date.

    `indexed_at` is the time at which the engine stored this version of it.
    """

    rowid: int
    id: str
    source: str
    source_id: str
    title: str
    author: str | None
    url: str | None
    content_type: str
    metadata: Mapping[str, Any]
    created_at: int
    updated_at: int
    indexed_at: int
    chunks: int
    run: str | None = None


class Document(DocumentHeader, frozen=True, kw_only=True):
    """A stored document with its body."""

    body: str


class Upserted(Struct, frozen=True, kw_only=True):
    """What became of a document: new, changed, or as it was."""

    id: str
    outcome: Literal["created", "updated", "unchanged"]
    chunks: int
    chunks_kept: int = 0


class SourceCount(Struct, frozen=True, kw_only=True):
    source: str
    documents: int
    chunks: int
    indexed_at: int


# --- what agents write down -------------------------------------------------------------------


class Evidence(Struct, frozen=True, kw_only=True):
    """Something that speaks for a card: a quotation, and where it was said."""

    snippet: str
    session: str | None = None
    item: str | None = None  # the stored item that says it, when one does


class NewCard(Struct, frozen=True, kw_only=True):
    category: str
    title: str
    summary: str
    tags: tuple[str, ...] = ()
    status: str = "noted"
    confidence: float | None = None
    salience: float | None = None
    methods: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    supersedes: str | None = None  # the id of the card this one takes the place of
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Card(Struct, frozen=True, kw_only=True):
    """A piece of knowledge. Verified when what was stored bears it out."""

    id: str
    category: str
    title: str
    summary: str
    tags: tuple[str, ...]
    status: str
    confidence: float | None
    salience: float | None
    methods: tuple[str, ...]
    evidence: tuple[Evidence, ...]
    is_verified: bool
    superseded_by: str | None
    supersedes: str | None
    item: Item


class CardOutcome(Struct, frozen=True, kw_only=True):
    """What became of a card: kept, known already, or in the place of an older one."""

    id: str
    outcome: Literal["created", "duplicate", "superseded"]
    other: str | None = None  # the card it equals, or the one it replaced


class NewTask(Struct, frozen=True, kw_only=True):
    title: str
    detail: str = ""
    priority: str = "medium"
    status: str = "pending"
    context: str | None = None
    effort: str | None = None
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Task(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    detail: str
    priority: str
    status: str
    context: str | None
    effort: str | None
    updated_at: int
    item: Item


class NewRisk(Struct, frozen=True, kw_only=True):
    title: str
    detail: str = ""
    level: str = "medium"
    mitigation: str = ""
    status: str = "active"
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Risk(Struct, frozen=True, kw_only=True):
    id: str
    title: str
    detail: str
    level: str
    mitigation: str
    status: str
    item: Item


class NewSkill(Struct, frozen=True, kw_only=True):
    """A procedure worth repeating; a second one with the same name takes the place of the first."""

    name: str
    summary: str
    methods: tuple[str, ...] = ()
    triggers: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    session: str | None = None
    source: str | None = None
    user: str | None = None
    role: str | None = None
    metadata: Mapping[str, Any] = {}
    provenance: Provenance = Provenance()


class Skill(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    summary: str
    methods: tuple[str, ...]
    triggers: tuple[str, ...]
    tags: tuple[str, ...]
    item: Item


class NewNarrative(Struct, frozen=True, kw_only=True):
    """What happened in a span (a "day" such as 2026-11-16, or a "session"), in a few lines."""

    span: str
    name: str
    text: str
    count: int = 0
    session: str | None = None
    user: str | None = None
    role: str | None = None
    provenance: Provenance = Provenance()


class Narrative(Struct, frozen=True, kw_only=True):
    id: str
    span: str
    name: str
    text: str
    count: int
    item: Item


class Day(Struct, frozen=True, kw_only=True):
    """A day (UTC, such as 2026-11-16) on which something happened: how much, and the latest."""

    date: str
    count: int
    items: tuple[Item, ...]


class AgentProfile(Struct, frozen=True, kw_only=True):
    """What an agent of a role is and how it works; prompts are made of it by a surface."""

    agent_role: str
    title: str = ""
    kind: str = "agent"
    responsibility: str = ""
    when_to_use: str = ""
    identity: str = ""
    critical_rules: tuple[str, ...] = ()
    workflow: str = ""
    communication_style: str = ""
    success_metrics: str = ""
    ingest_pattern: str = ""
    recall_pattern: str = ""
    system_prompt: str = ""
    activation_prompt: str = ""


class NewNotes(Struct, frozen=True, kw_only=True):
    """What an agent drew from its work, to be kept all together or not at all."""

    cards: tuple[NewCard, ...] = ()
    tasks: tuple[NewTask, ...] = ()
    risks: tuple[NewRisk, ...] = ()
    events: tuple[NewMemory, ...] = ()
    profiles: tuple[AgentProfile, ...] = ()
    task_statuses: tuple[tuple[str, str], ...] = ()  # (a task's id, its new status)


class NotesKept(Struct, frozen=True, kw_only=True):
    """What became of notes, in the order they were given."""

    cards: tuple[CardOutcome, ...] = ()
    tasks: tuple[Put, ...] = ()
    risks: tuple[Put, ...] = ()
    events: tuple[Put, ...] = ()
    changed: tuple[Task, ...] = ()


# --- asking -----------------------------------------------------------------------------------


class Filters(Struct, frozen=True, kw_only=True):
    """Which items may answer. Empty means any; several mean all of them at once."""

    session: str | None = None
    sources: tuple[str, ...] = ()
    user: str | None = None
    role: str | None = None
    document: str | None = None
    categories: tuple[str, ...] = ()
    statuses: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    actor: str | None = None
    event_type: str | None = None
    since: Integer | None = None  # occurred_at, inclusive
    until: Integer | None = None  # occurred_at, exclusive
    min_confidence: float | None = None
    metadata: Mapping[str, Any] = {}  # each named member equals this
    contains: str | None = None  # each word of it, case-insensitive, in title or text
    include_superseded: bool = False


class Query(Struct, frozen=True, kw_only=True):
    """A question to one bank."""

    bank: str
    text: str
    keywords: str | None = None  # for the keyword side; the text when absent
    mode: Mode = "hybrid"
    limit: int = 10
    kinds: tuple[Kind, ...] = ()
    filters: Filters = Filters()
    keyword_weight: float | None = None
    vector_weight: float | None = None
    min_score: float = 0.0
    explain: bool = False


class Hit(Struct, frozen=True, kw_only=True):
    """An answer. `score` is calibrated: 0 to 1, absolute, 0.7 is about "relevant"."""

    item: Item
    score: float
    snippet: str = ""
    matches: tuple[tuple[int, int], ...] = ()  # places in the snippet that matched
    parts: Mapping[str, float] | None = None  # with `explain`: what the score is made of


class Found(Struct, frozen=True, kw_only=True):
    """All answers to a query, best first."""

    hits: tuple[Hit, ...] = ()
    below: int = 0  # how many answers fell below `min_score`
    mode: Mode = "hybrid"  # what was done, which is less than was asked when something is degraded
    degraded: tuple[str, ...] = ()


class Page(Struct, frozen=True, kw_only=True):
    """A slice of a list, how long the whole list is, and where the next slice begins."""

    items: tuple[Item, ...]
    total: int
    next: int | None = None


# --- banks, numbers, health -------------------------------------------------------------------


class Bank(Struct, frozen=True, kw_only=True):
    id: str
    name: str
    created_at: int
    quota_bytes: int | None = None


class SessionActivity(Struct, frozen=True, kw_only=True):
    """What a bank holds of one session."""

    id: str
    items: int
    first_at: int
    last_at: int


class Stats(Struct, frozen=True, kw_only=True):
    """True numbers about one bank."""

    bank: str
    items: int
    by_kind: Mapping[str, int]
    by_category: Mapping[str, int]  # of memories; "general" stands for none
    by_source: tuple[SourceCount, ...]
    by_label: Mapping[str, int]  # items that are not of a document, by their source
    sessions: int
    documents: int
    forgotten: int
    pending_vectors: int
    oldest_at: int | None
    newest_at: int | None
    disk_bytes: int
    model: str | None = None


class Problem(Struct, frozen=True, kw_only=True):
    """Something `check` found: a stable name, which part, how many, and what mends it."""

    name: str
    part: str
    count: int = 1
    remedy: Literal["none", "repair", "rebuild", "restore"] = "repair"


class Checked(Struct, frozen=True, kw_only=True):
    """What `check` looked at and what it found."""

    bank: str
    items: int
    words: int
    vectors: int
    documents: int
    problems: tuple[Problem, ...] = ()


class Stage(Struct, frozen=True, kw_only=True):
    """How far the work behind a bank is: `done` of `total` in this phase."""

    phase: Literal["embedding", "loading", "building", "checking", "extending", "saving"]
    done: int
    total: int


class EngineHealth(Struct, frozen=True, kw_only=True):
    """Whether the engine works, and by name what of it works less well than it should."""

    is_ready: bool
    degraded: tuple[str, ...] = ()
    banks: int = 0
    open_banks: int = 0
    sqlite: str = ""
    embedder: str | None = None


class Forgotten(Struct, frozen=True, kw_only=True):
    """A forget that can be undone until `undo_until`."""

    token: str | None
    count: int
    undo_until: int


class Erased(Struct, frozen=True, kw_only=True):
    """An erase that was shown to be complete."""

    items: int
    documents: int = 0
    copies_removed: int = 0  # backups and snapshots that held copies and are gone


class Exported(Struct, frozen=True, kw_only=True):
    bank: str
    records: int
    digest: str


class Imported(Struct, frozen=True, kw_only=True):
    """What an import did: records that were new, and those the bank had already."""

    bank: str
    created: int
    known: int


class BackedUp(Struct, frozen=True, kw_only=True):
    bank: str
    name: str
    bytes: int
    items: int
    made_at: int
