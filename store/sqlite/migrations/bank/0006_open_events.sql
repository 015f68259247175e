-- Events that are open work are listed with the tasks, so they must be found without reading all events.

CREATE INDEX items_open ON items (id)
    WHERE kind = 'event' AND status = 'open' AND forgotten_at IS NULL;
