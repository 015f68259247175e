-- The catalogue: banks, sessions, sources of documents, and bearer tokens with their banks.
-- It holds no memory text. Times are unix milliseconds, UTC.

CREATE TABLE banks (
    id          TEXT PRIMARY KEY,              -- random, also the directory's name; never reused
    name        TEXT NOT NULL UNIQUE,          -- NFC, as the caller spelt it; never a path
    created_at  INTEGER NOT NULL,
    quota_bytes INTEGER,                       -- NULL: no quota
    CHECK (length(id) = 32)
) STRICT;

-- Banks that are being deleted: the row is inserted first, then the files and the row are deleted.
CREATE TABLE banks_leaving (
    id         TEXT PRIMARY KEY,
    removed_at INTEGER NOT NULL
) STRICT;

-- Banks with an erase in progress: an interrupted erase is finished at the next start.
CREATE TABLE banks_erasing (
    id    TEXT PRIMARY KEY REFERENCES banks (id) ON DELETE CASCADE,
    since INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id             TEXT PRIMARY KEY,
    created_at     INTEGER NOT NULL,
    seen_at        INTEGER NOT NULL,
    ended_at       INTEGER,
    transport      TEXT NOT NULL,
    client_name    TEXT,
    client_version TEXT,
    bank           TEXT,                       -- the name of the session's bank; grants no access
    source         TEXT,                       -- the program or editor of the client
    agent_role     TEXT,
    calls          INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX sessions_by_seen ON sessions (seen_at);

CREATE TABLE sources (
    bank       TEXT NOT NULL REFERENCES banks (id) ON DELETE CASCADE,
    name       TEXT NOT NULL,
    type       TEXT NOT NULL,
    config     TEXT NOT NULL DEFAULT '{}',
    healthy    INTEGER NOT NULL DEFAULT 1,
    last_run   INTEGER,
    cursor     TEXT,
    last_error TEXT,
    PRIMARY KEY (bank, name)
) STRICT;

CREATE TABLE tokens (
    id         TEXT PRIMARY KEY,
    name       TEXT NOT NULL,
    digest     BLOB NOT NULL UNIQUE,           -- of the token; the token itself is shown once
    banks      TEXT NOT NULL,                  -- JSON array of bank names, or ["*"]
    can_write  INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER,
    expires_at INTEGER
) STRICT;
