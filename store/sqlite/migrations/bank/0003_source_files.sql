-- The ledger of document sources: one row for each file that a source held when it was last compared.
-- It lies in the bank, so that a document and its entry are written in one transaction, and so that a
-- restored backup contains the ledger of its time.

CREATE TABLE source_files (
    source    TEXT NOT NULL,
    source_id TEXT NOT NULL,
    version   TEXT NOT NULL,      -- equal versions mean equal content
    digest    TEXT NOT NULL,      -- of the file's bytes
    ledger    TEXT NOT NULL,      -- the definition of the source under which the file was seen
    document  TEXT,               -- public id; NULL if the file has no document
    PRIMARY KEY (source, source_id)
) STRICT, WITHOUT ROWID;
CREATE INDEX source_files_by_document ON source_files (document) WHERE document IS NOT NULL;
