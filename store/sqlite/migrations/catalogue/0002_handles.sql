-- Handles: by which a client that holds no connection comes back to its session. Whoever has one is
-- taken for that client, so only its digest is kept. `state` is what was agreed, as its owner wrote it.

CREATE TABLE handles (
    digest  BLOB PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    state   TEXT NOT NULL
) STRICT;
CREATE INDEX handles_by_session ON handles (session);
