-- The writer remembers where it put each intent, so none of them needs an entry in an index.
CREATE TABLE audit_intents_by_place (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    node TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;
INSERT INTO audit_intents_by_place (id, org_id, node, opened_at, record)
SELECT id, org_id, node, opened_at, record FROM audit_intents ORDER BY id;
DROP TABLE audit_intents;
ALTER TABLE audit_intents_by_place RENAME TO audit_intents;
