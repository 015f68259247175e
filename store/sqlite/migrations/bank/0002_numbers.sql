-- Counting, listing and statistics read indexes and no rows: an item's row is long, and a document's
-- is as long as the document.

DROP INDEX items_by_time;
CREATE INDEX items_by_time
    ON items (kind, occurred_at, superseded_by, forgotten_at, category, source, document)
    WHERE forgotten_at IS NULL;

DROP INDEX items_by_session;
CREATE INDEX items_by_session ON items (session, id, forgotten_at, occurred_at)
    WHERE session IS NOT NULL;

CREATE INDEX documents_by_source ON documents (source, chunks, indexed_at);
