-- Document sources by name. `definition` is JSON, or NULL if the configuration file defines the
-- source; `state` is JSON: the last run, its outcome, and deletions that were withheld.

DROP TABLE sources;
CREATE TABLE sources (
    name       TEXT PRIMARY KEY,
    definition TEXT,
    state      TEXT NOT NULL
) STRICT;
