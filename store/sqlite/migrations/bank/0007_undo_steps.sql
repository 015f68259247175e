-- How to undo bulk operations that are no forget: the tags that one added to an item and removed from
-- it, or, without both, that the item arrived by a move from another bank.

CREATE TABLE undo_steps (
    token   TEXT NOT NULL,
    item    INTEGER NOT NULL REFERENCES items (id) ON DELETE CASCADE,
    made_at INTEGER NOT NULL,
    added   TEXT,                              -- JSON
    removed TEXT,                              -- JSON
    PRIMARY KEY (token, item)
) STRICT, WITHOUT ROWID;
CREATE INDEX undo_steps_by_item ON undo_steps (item);
