-- Events are found by actor, by whom they were done for and by request through an index that is
-- written when they are sealed: committing an event writes to no tree but its own. Events that were
-- committed before have these values in columns with indexes, which stay as they are and grow no more.
ALTER TABLE audit_events RENAME COLUMN actor_id TO actor_before;
ALTER TABLE audit_events RENAME COLUMN via TO via_before;
ALTER TABLE audit_events RENAME COLUMN request_id TO request_before;
ALTER TABLE audit_events ADD COLUMN actor TEXT;
ALTER TABLE audit_events ADD COLUMN behalf TEXT;
ALTER TABLE audit_events ADD COLUMN request TEXT;
ALTER TABLE audit_events ADD COLUMN actor_id TEXT
    GENERATED ALWAYS AS (COALESCE(actor, actor_before)) VIRTUAL;
ALTER TABLE audit_events ADD COLUMN via TEXT
    GENERATED ALWAYS AS (COALESCE(behalf, via_before)) VIRTUAL;
ALTER TABLE audit_events ADD COLUMN request_id TEXT
    GENERATED ALWAYS AS (COALESCE(request, request_before)) VIRTUAL;

-- Kinds: 1 the actor, 2 on whose behalf, 3 the request.
CREATE TABLE audit_index (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (kind, name, position)
) STRICT, WITHOUT ROWID;
