-- Events are found by id through the index that the sealer writes, too: committing an event writes to one tree
-- fewer. `by_sealer` is 1 for them. Events that were committed before have no value there, and stay in the index
-- that the table had for `UNIQUE`: its entries are theirs, so that only declarations are written
-- (https://www.sqlite.org/lang_altertable.html, section 7). It grows no more.
ALTER TABLE audit_events ADD COLUMN by_sealer INTEGER;

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'id TEXT NOT NULL UNIQUE', 'id TEXT NOT NULL')
WHERE type = 'table' AND name = 'audit_events';
UPDATE sqlite_schema SET name = 'audit_events_by_id',
    sql = 'CREATE UNIQUE INDEX audit_events_by_id ON audit_events (id) WHERE by_sealer IS NULL'
WHERE type = 'index' AND name = 'sqlite_autoindex_audit_events_1';
PRAGMA writable_schema = RESET;
