-- The bank's name and settings, so that the catalogue can be rebuilt from the banks. One row. The
-- catalogue is the source of truth, and this table follows it.

CREATE TABLE identity (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    name        TEXT NOT NULL,
    created_at  INTEGER NOT NULL,
    quota_bytes INTEGER
) STRICT;
