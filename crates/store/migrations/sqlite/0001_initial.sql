CREATE TABLE orgs (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    plan_requests INTEGER,
    plan_invocations INTEGER,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;

CREATE TABLE principals (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    UNIQUE (org_id, name),
    UNIQUE (org_id, id)
) STRICT;

CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    org_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    via TEXT,
    grant_id TEXT NOT NULL,
    parent_id TEXT,
    scopes TEXT NOT NULL,
    label TEXT,
    method TEXT NOT NULL,
    trust TEXT,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    last_used_at INTEGER,
    allowed_cidrs TEXT,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, via) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, parent_id) REFERENCES tokens (org_id, id)
) STRICT;
CREATE INDEX tokens_by_principal ON tokens (org_id, principal_id, id);
CREATE INDEX tokens_by_grant ON tokens (org_id, grant_id);
CREATE INDEX tokens_by_parent ON tokens (org_id, parent_id);

CREATE TABLE providers (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    owner TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    auth_type TEXT NOT NULL,
    status TEXT NOT NULL,
    last_error TEXT,
    tools INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    connected_at INTEGER,
    updated_at INTEGER NOT NULL,
    UNIQUE (org_id, owner, slug)
) STRICT;

CREATE TABLE tool_versions (
    org_id TEXT NOT NULL,
    tool_id TEXT NOT NULL,
    version TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, tool_id, version)
) STRICT;

CREATE TABLE audit_intents (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    node TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    record TEXT NOT NULL
) STRICT;

-- Insert-only. What is sealed of an event is in audit_seals, under the same position.
CREATE TABLE audit_events (
    position INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    type TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    committed_at INTEGER NOT NULL,
    actor_id TEXT,
    via TEXT,
    token_id TEXT,
    target TEXT,
    decision TEXT,
    policy TEXT,
    dlp_result TEXT,
    outcome TEXT,
    request_id TEXT,
    core TEXT NOT NULL,
    detached TEXT,
    salts TEXT
) STRICT;
CREATE INDEX audit_events_by_org ON audit_events (org_id, position);
CREATE INDEX audit_events_by_actor ON audit_events (org_id, actor_id, position)
    WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_by_via ON audit_events (org_id, via, position) WHERE via IS NOT NULL;
CREATE INDEX audit_events_by_request ON audit_events (org_id, request_id, position)
    WHERE request_id IS NOT NULL;

CREATE TABLE audit_seals (
    position INTEGER PRIMARY KEY REFERENCES audit_events (position),
    org_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    leaf_hash BLOB NOT NULL,
    UNIQUE (org_id, sequence)
) STRICT;

CREATE TABLE audit_heads (
    org_id TEXT NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    last_recorded_at INTEGER NOT NULL
) STRICT;

-- One row, written to find out whether writing works.
CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    probed_at INTEGER NOT NULL
) STRICT;
