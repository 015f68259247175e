-- Turns of conversations: what the model knows about the single words of an item. Derived from the
-- item's text in the same run as its vector, and deleted together with it.
CREATE TABLE turns (
    item    INTEGER PRIMARY KEY REFERENCES vectors (item) ON DELETE CASCADE,
    speaker TEXT,                              -- the name in the label of the text, case-folded
    traits  INTEGER NOT NULL,                  -- see store/ranking/turns.py
    tokens  BLOB                               -- NULL: to be computed (store/sqlite/vectors/tokens.py)
) STRICT;
CREATE INDEX turns_by_speaker ON turns (speaker) WHERE speaker IS NOT NULL;
CREATE INDEX turns_pending ON turns (item) WHERE tokens IS NULL;

-- Items from before this version keep their vectors until the turns are computed in the background.
INSERT INTO turns (item, traits)
SELECT vectors.item, 0 FROM vectors JOIN items ON items.id = vectors.item
WHERE vectors.bytes IS NOT NULL AND items.kind IN ('memory', 'event')
  AND (items.session IS NOT NULL OR items.text LIKE '[%]%:%');
