-- What was asked to be exported. The file lies in the export folder of the node, named after the id.
CREATE TABLE exports (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    node TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    result TEXT,
    error TEXT,
    scanned INTEGER NOT NULL,
    total INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX exports_pending ON exports (org_id) WHERE status = 'pending';
CREATE INDEX exports_by_expiry ON exports (expires_at);

-- How far each sink has come in each log: the sequence it goes on with.
CREATE TABLE sink_cursors (
    sink TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    next_sequence INTEGER NOT NULL,
    PRIMARY KEY (sink, org_id)
) STRICT;

-- The one node that feeds a sink at a time.
CREATE TABLE sink_leases (
    sink TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    ends_at INTEGER NOT NULL
) STRICT;
