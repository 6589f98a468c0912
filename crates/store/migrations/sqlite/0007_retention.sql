-- When a payload was kept with the event; empty again when it was let go.
ALTER TABLE audit_events ADD COLUMN payload_at INTEGER;
CREATE INDEX audit_events_with_payload ON audit_events (org_id, payload_at)
    WHERE payload_at IS NOT NULL;

-- What may be neither erased nor pruned: all events of the org that match every part given.
CREATE TABLE audit_holds (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    reason TEXT NOT NULL,
    actor_id TEXT,
    from_at INTEGER,
    to_at INTEGER,
    created_at INTEGER NOT NULL,
    released_at INTEGER
) STRICT;
CREATE INDEX audit_holds_in_force ON audit_holds (org_id) WHERE released_at IS NULL;

-- How many events were removed from the beginning of an org's log.
CREATE TABLE audit_pruned (
    org_id TEXT NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size INTEGER NOT NULL
) STRICT;
