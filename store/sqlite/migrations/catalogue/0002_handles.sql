-- Handles: secrets with which a client that keeps no connection returns to its session. Only their
-- digests are stored. `state` is the negotiated state of the client, in the caller's own format.

CREATE TABLE handles (
    digest  BLOB PRIMARY KEY,
    session TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    state   TEXT NOT NULL
) STRICT;
CREATE INDEX handles_by_session ON handles (session);
