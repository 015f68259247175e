-- One bank: the source of truth for its items. Times are unix milliseconds, UTC.

-- One row. `change` is the bank's change number. It increases with every write to an item, and a new
-- item gets it as its rowid, so no rowid is ever used again. `items` and `words` count the live
-- items (not the forgotten ones) and their words, for ranking.
CREATE TABLE state (
    id     INTEGER PRIMARY KEY CHECK (id = 1),
    bank   TEXT NOT NULL,                      -- the bank's id, to detect the file of another bank
    change INTEGER NOT NULL DEFAULT 0,
    items  INTEGER NOT NULL DEFAULT 0,
    words  INTEGER NOT NULL DEFAULT 0,
    model  INTEGER REFERENCES models (id)      -- the model whose vectors are searched
) STRICT;

CREATE TABLE documents (
    id           INTEGER PRIMARY KEY,
    public_id    TEXT NOT NULL UNIQUE,
    source       TEXT NOT NULL,
    source_id    TEXT NOT NULL,
    title        TEXT NOT NULL,
    body         TEXT NOT NULL,
    author       TEXT,
    url          TEXT,
    content_type TEXT NOT NULL,
    metadata     TEXT NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL,
    indexed_at   INTEGER NOT NULL,
    run          TEXT,
    chunks       INTEGER NOT NULL,
    digest       BLOB NOT NULL,
    UNIQUE (source, source_id)
) STRICT;

CREATE TABLE items (
    id            INTEGER PRIMARY KEY,
    public_id     TEXT NOT NULL UNIQUE,
    kind          TEXT NOT NULL,
    title         TEXT NOT NULL,
    text          TEXT NOT NULL,
    context       TEXT,
    category      TEXT,
    status        TEXT,
    level         TEXT,
    confidence    REAL,
    salience      REAL,
    session       TEXT,
    document      TEXT REFERENCES documents (public_id),
    position      INTEGER,
    source        TEXT,
    user          TEXT,
    role          TEXT,
    actor         TEXT,
    event_type    TEXT,
    key           TEXT,                        -- natural key within the kind
    tags          TEXT NOT NULL,               -- JSON
    metadata      TEXT NOT NULL,               -- JSON
    details       TEXT NOT NULL,               -- JSON: fields of this kind only
    provenance    TEXT NOT NULL,               -- JSON
    occurred_at   INTEGER NOT NULL,
    created_at    INTEGER NOT NULL,
    updated_at    INTEGER NOT NULL,
    superseded_by TEXT,
    repeats       INTEGER NOT NULL,
    forgotten_at  INTEGER,
    forgotten_by  TEXT,                        -- the token for undo
    change        INTEGER NOT NULL,
    sameness      BLOB,                        -- hash over the fields that make two puts equal
    digest        BLOB NOT NULL                -- digest of the row, verified on every read
) STRICT;
CREATE UNIQUE INDEX items_once ON items (kind, sameness)
    WHERE sameness IS NOT NULL AND forgotten_at IS NULL;
CREATE UNIQUE INDEX items_by_key ON items (kind, key)
    WHERE key IS NOT NULL AND forgotten_at IS NULL;
-- Covers counting and ordering by time without reading the rows.
CREATE INDEX items_by_time ON items (kind, superseded_by, occurred_at, id, user, role)
    WHERE forgotten_at IS NULL;
CREATE INDEX items_by_session ON items (session, id) WHERE session IS NOT NULL;
CREATE INDEX items_of_session ON items (session, kind, superseded_by, occurred_at, id)
    WHERE session IS NOT NULL AND forgotten_at IS NULL;
CREATE INDEX items_by_document ON items (document, position) WHERE document IS NOT NULL;
CREATE INDEX items_forgotten ON items (forgotten_by) WHERE forgotten_by IS NOT NULL;

-- The tokens of each live item (store/ranking/tokenizer.py); rowid is the item's.
CREATE VIRTUAL TABLE words USING fts5 (
    tokens,
    tokenize = "ascii tokenchars '_./-:@+#&\'"
);

CREATE TABLE models (
    id       INTEGER PRIMARY KEY,
    name     TEXT NOT NULL,
    revision TEXT NOT NULL,
    dims     INTEGER NOT NULL,
    UNIQUE (name, revision, dims)
) STRICT;

-- One row for each live item. Without bytes the vector is pending.
CREATE TABLE vectors (
    item   INTEGER PRIMARY KEY REFERENCES items (id) ON DELETE CASCADE,
    model  INTEGER REFERENCES models (id),
    change INTEGER NOT NULL,                   -- the bank's change number when this was written
    bytes  BLOB,
    CHECK ((model IS NULL) = (bytes IS NULL))
) STRICT;
CREATE INDEX vectors_by_change ON vectors (change);
CREATE INDEX vectors_pending ON vectors (item) WHERE bytes IS NULL;

CREATE TABLE evidence (
    card    INTEGER NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    snippet TEXT NOT NULL,
    session TEXT NOT NULL DEFAULT '',
    item    TEXT,                              -- public id of the quoted item
    PRIMARY KEY (card, snippet, session)
) STRICT, WITHOUT ROWID;

CREATE TABLE profiles (
    agent_role TEXT PRIMARY KEY,
    fields     TEXT NOT NULL,                  -- JSON
    updated_at INTEGER NOT NULL,
    digest     BLOB NOT NULL
) STRICT;

-- For retries of a put: its idempotency key and a hash of its first content.
CREATE TABLE put_keys (
    key      TEXT PRIMARY KEY,
    item     INTEGER NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    sameness BLOB NOT NULL,
    put_at   INTEGER NOT NULL
) STRICT;

-- The origin of an imported item, so that an import can be repeated.
CREATE TABLE origins (
    system      TEXT NOT NULL,
    original_id TEXT NOT NULL,
    public_id   TEXT NOT NULL,
    PRIMARY KEY (system, original_id)
) STRICT, WITHOUT ROWID;

-- Erased items, without content. `finished_at` is set when every copy is deleted.
CREATE TABLE tombstones (
    public_id   TEXT PRIMARY KEY,
    kind        TEXT NOT NULL,
    erased_at   INTEGER NOT NULL,
    finished_at INTEGER,
    reason      TEXT NOT NULL
) STRICT;
CREATE INDEX tombstones_unfinished ON tombstones (public_id) WHERE finished_at IS NULL;
