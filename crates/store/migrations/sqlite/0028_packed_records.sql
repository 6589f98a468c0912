-- The record, the erasable part and its salts of an event, in one compressed frame. The columns `core`,
-- `detached` and `salts` hold those of events that were written before, which stay as they are.
ALTER TABLE audit_events ADD COLUMN packed BLOB;

-- Intents that are open are few: they are taken along as they are.
CREATE TABLE audit_intents_packed (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    node TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    record TEXT,
    packed BLOB
) STRICT;
INSERT INTO audit_intents_packed (id, org_id, node, opened_at, record)
SELECT id, org_id, node, opened_at, record FROM audit_intents ORDER BY id;
DROP TABLE audit_intents;
ALTER TABLE audit_intents_packed RENAME TO audit_intents;
