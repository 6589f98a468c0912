-- What was asked to be exported. The file lies in the export folder of the node, named after the id.
CREATE TABLE exports (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C",
    error TEXT COLLATE "C",
    scanned BIGINT NOT NULL,
    total BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    beat_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX exports_pending ON exports (org_id) WHERE status = 'pending';
CREATE INDEX exports_by_expiry ON exports (expires_at);

-- How far each sink has come in each log: the sequence it goes on with.
CREATE TABLE sink_cursors (
    sink TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    next_sequence BIGINT NOT NULL,
    PRIMARY KEY (sink, org_id)
);

-- The one node that feeds a sink at a time.
CREATE TABLE sink_leases (
    sink TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node TEXT COLLATE "C" NOT NULL,
    ends_at BIGINT NOT NULL
);
