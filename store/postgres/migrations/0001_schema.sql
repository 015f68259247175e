-- The tables of all banks. The bank's number is the first column of every key, so that the tables can
-- be distributed by it. Times are unix milliseconds, UTC. Texts are ordered by their bytes, as in the
-- embedded engine.

CREATE TABLE banks (
    number      bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id          text COLLATE "C" NOT NULL UNIQUE,
    name        text COLLATE "C" NOT NULL UNIQUE,
    created_at  bigint NOT NULL,
    quota_bytes bigint
);

-- One row for each bank. It is locked by every write to the bank, so that change numbers become
-- visible in their order.
CREATE TABLE state (
    bank   bigint PRIMARY KEY REFERENCES banks (number) ON DELETE CASCADE,
    change bigint NOT NULL DEFAULT 0,
    items  bigint NOT NULL DEFAULT 0,
    words  bigint NOT NULL DEFAULT 0,
    model  bigint
) WITH (fillfactor = 50);

CREATE TABLE models (
    bank     bigint NOT NULL,
    id       bigint NOT NULL,
    name     text COLLATE "C" NOT NULL,
    revision text COLLATE "C" NOT NULL,
    dims     bigint NOT NULL,
    PRIMARY KEY (bank, id),
    UNIQUE (bank, name, revision, dims)
);

CREATE TABLE documents (
    bank         bigint NOT NULL,
    id           bigint NOT NULL,
    public_id    text COLLATE "C" NOT NULL,
    source       text COLLATE "C" NOT NULL,
    source_id    text COLLATE "C" NOT NULL,
    title        text COLLATE "C" NOT NULL,
    body         text COLLATE "C" NOT NULL,
    author       text COLLATE "C",
    url          text COLLATE "C",
    content_type text COLLATE "C" NOT NULL,
    metadata     text COLLATE "C" NOT NULL,
    created_at   bigint NOT NULL,
    updated_at   bigint NOT NULL,
    indexed_at   bigint NOT NULL,
    run          text COLLATE "C",
    chunks       bigint NOT NULL,
    digest       bytea NOT NULL,
    PRIMARY KEY (bank, id),
    UNIQUE (bank, public_id),
    UNIQUE (bank, source, source_id)
);

CREATE TABLE items (
    bank          bigint NOT NULL,
    id            bigint NOT NULL,
    public_id     text COLLATE "C" NOT NULL,
    kind          text COLLATE "C" NOT NULL,
    title         text COLLATE "C" NOT NULL,
    text          text COLLATE "C" NOT NULL,
    context       text COLLATE "C",
    category      text COLLATE "C",
    status        text COLLATE "C",
    level         text COLLATE "C",
    confidence    double precision,
    salience      double precision,
    session       text COLLATE "C",
    document      text COLLATE "C",
    position      bigint,
    source        text COLLATE "C",
    "user"        text COLLATE "C",
    role          text COLLATE "C",
    actor         text COLLATE "C",
    event_type    text COLLATE "C",
    key           text COLLATE "C",
    tags          text COLLATE "C" NOT NULL,
    metadata      text COLLATE "C" NOT NULL,
    details       text COLLATE "C" NOT NULL,
    provenance    text COLLATE "C" NOT NULL,
    occurred_at   bigint NOT NULL,
    created_at    bigint NOT NULL,
    updated_at    bigint NOT NULL,
    superseded_by text COLLATE "C",
    repeats       bigint NOT NULL,
    forgotten_at  bigint,
    forgotten_by  text COLLATE "C",
    change        bigint NOT NULL,
    sameness      bytea,
    digest        bytea NOT NULL,
    folded        text COLLATE "C" NOT NULL,   -- title and text, case-folded by Python
    PRIMARY KEY (bank, id),
    UNIQUE (bank, public_id),
    FOREIGN KEY (bank, document) REFERENCES documents (bank, public_id)
);
CREATE UNIQUE INDEX items_once ON items (bank, kind, sameness)
    WHERE sameness IS NOT NULL AND forgotten_at IS NULL;
CREATE UNIQUE INDEX items_by_key ON items (bank, kind, key)
    WHERE key IS NOT NULL AND forgotten_at IS NULL;
CREATE INDEX items_by_time ON items (bank, kind, occurred_at, id) WHERE forgotten_at IS NULL;
CREATE INDEX items_by_session ON items (bank, session, id) WHERE session IS NOT NULL;
CREATE INDEX items_by_document ON items (bank, document, position) WHERE document IS NOT NULL;
CREATE INDEX items_open ON items (bank, id)
    WHERE kind = 'event' AND status = 'open' AND forgotten_at IS NULL;
CREATE INDEX items_forgotten ON items (bank, forgotten_by) WHERE forgotten_by IS NOT NULL;

-- The tokens of each live item, and for each token its items.
CREATE TABLE words (
    bank   bigint NOT NULL,
    item   bigint NOT NULL,
    tokens text COLLATE "C" NOT NULL,
    PRIMARY KEY (bank, item)
);
CREATE TABLE postings (
    bank bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    item bigint NOT NULL,
    PRIMARY KEY (bank, term, item)
);

CREATE TABLE vectors (
    bank   bigint NOT NULL,
    item   bigint NOT NULL,
    model  bigint,
    change bigint NOT NULL,
    bytes  bytea,
    PRIMARY KEY (bank, item),
    FOREIGN KEY (bank, item) REFERENCES items (bank, id) ON DELETE CASCADE,
    CHECK ((model IS NULL) = (bytes IS NULL))
);
ALTER TABLE vectors ALTER COLUMN bytes SET STORAGE EXTERNAL;  -- half floats do not compress
CREATE INDEX vectors_by_change ON vectors (bank, change);
CREATE INDEX vectors_pending ON vectors (bank, item) WHERE bytes IS NULL;

CREATE TABLE turns (
    bank    bigint NOT NULL,
    item    bigint NOT NULL,
    speaker text COLLATE "C",
    traits  bigint NOT NULL,
    tokens  bytea,
    PRIMARY KEY (bank, item),
    FOREIGN KEY (bank, item) REFERENCES vectors (bank, item) ON DELETE CASCADE
);
CREATE INDEX turns_by_speaker ON turns (bank, speaker);
CREATE INDEX turns_pending ON turns (bank, item) WHERE tokens IS NULL;

CREATE TABLE evidence (
    bank    bigint NOT NULL,
    card    bigint NOT NULL,
    snippet text COLLATE "C" NOT NULL,
    session text COLLATE "C" NOT NULL DEFAULT '',
    item    text COLLATE "C",
    FOREIGN KEY (bank, card) REFERENCES items (bank, id) ON DELETE CASCADE
);
-- A quotation may be longer than an index entry, so its hash is the key.
CREATE UNIQUE INDEX evidence_once ON evidence (bank, card, md5(snippet), session);

CREATE TABLE profiles (
    bank       bigint NOT NULL,
    agent_role text COLLATE "C" NOT NULL,
    fields     text COLLATE "C" NOT NULL,
    updated_at bigint NOT NULL,
    digest     bytea NOT NULL,
    PRIMARY KEY (bank, agent_role)
);

CREATE TABLE put_keys (
    bank     bigint NOT NULL,
    key      text COLLATE "C" NOT NULL,
    item     bigint NOT NULL,
    sameness bytea NOT NULL,
    put_at   bigint NOT NULL,
    PRIMARY KEY (bank, key),
    FOREIGN KEY (bank, item) REFERENCES items (bank, id) ON DELETE CASCADE
);
CREATE INDEX put_keys_by_item ON put_keys (bank, item);

CREATE TABLE origins (
    bank        bigint NOT NULL,
    system      text COLLATE "C" NOT NULL,
    original_id text COLLATE "C" NOT NULL,
    public_id   text COLLATE "C" NOT NULL,
    PRIMARY KEY (bank, system, original_id)
);

CREATE TABLE tombstones (
    bank        bigint NOT NULL,
    public_id   text COLLATE "C" NOT NULL,
    kind        text COLLATE "C" NOT NULL,
    erased_at   bigint NOT NULL,
    finished_at bigint,
    reason      text COLLATE "C" NOT NULL,
    PRIMARY KEY (bank, public_id)
);

CREATE TABLE source_files (
    bank      bigint NOT NULL,
    source    text COLLATE "C" NOT NULL,
    source_id text COLLATE "C" NOT NULL,
    version   text COLLATE "C" NOT NULL,
    digest    text COLLATE "C" NOT NULL,
    ledger    text COLLATE "C" NOT NULL,
    document  text COLLATE "C",
    PRIMARY KEY (bank, source, source_id)
);
CREATE INDEX source_files_by_document ON source_files (bank, document) WHERE document IS NOT NULL;

CREATE TABLE undo_steps (
    bank    bigint NOT NULL,
    token   text COLLATE "C" NOT NULL,
    item    bigint NOT NULL,
    made_at bigint NOT NULL,
    added   text COLLATE "C",
    removed text COLLATE "C",
    PRIMARY KEY (bank, token, item),
    FOREIGN KEY (bank, item) REFERENCES items (bank, id) ON DELETE CASCADE
);
CREATE INDEX undo_steps_by_item ON undo_steps (bank, item);

-- The second fence between banks. Every statement names its bank; if one forgot to, it would still
-- see the rows of the transaction's own bank only. The tables' owner is not exempt.
DO $$
DECLARE
    name text;
BEGIN
    FOREACH name IN ARRAY ARRAY[
        'state', 'models', 'documents', 'items', 'words', 'postings', 'vectors', 'turns',
        'evidence', 'profiles', 'put_keys', 'origins', 'tombstones', 'source_files', 'undo_steps'
    ] LOOP
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', name);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', name);
        EXECUTE format(
            'CREATE POLICY own_bank ON %I USING (bank = nullif(current_setting(''recalld.bank'', true), '''')::bigint)',
            name
        );
    END LOOP;
END
$$;

-- Beside the banks: sessions of clients, their handles, and the records of document sources.
CREATE TABLE sessions (
    id             text COLLATE "C" PRIMARY KEY,
    created_at     bigint NOT NULL,
    seen_at        bigint NOT NULL,
    ended_at       bigint,
    transport      text COLLATE "C" NOT NULL,
    client_name    text COLLATE "C",
    client_version text COLLATE "C",
    bank           text COLLATE "C",
    source         text COLLATE "C",
    agent_role     text COLLATE "C",
    calls          bigint NOT NULL DEFAULT 0
);
CREATE INDEX sessions_by_seen ON sessions (seen_at);

CREATE TABLE handles (
    digest  bytea PRIMARY KEY,
    session text COLLATE "C" NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    state   text COLLATE "C" NOT NULL
);
CREATE INDEX handles_by_session ON handles (session);

CREATE TABLE sources (
    name       text COLLATE "C" PRIMARY KEY,
    definition text COLLATE "C",
    state      text COLLATE "C" NOT NULL
);
