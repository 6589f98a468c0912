CREATE TABLE orgs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    plan TEXT COLLATE "C" NOT NULL,
    plan_requests BIGINT,
    plan_invocations BIGINT,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

CREATE TABLE principals (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    name TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT,
    UNIQUE (org_id, name),
    UNIQUE (org_id, id)
);

CREATE TABLE tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL UNIQUE,
    org_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    via TEXT COLLATE "C",
    grant_id TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C",
    scopes TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C",
    method TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C",
    issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    last_used_at BIGINT,
    allowed_cidrs TEXT COLLATE "C",
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, via) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, parent_id) REFERENCES tokens (org_id, id)
);
CREATE INDEX tokens_by_principal ON tokens (org_id, principal_id, id);
CREATE INDEX tokens_by_grant ON tokens (org_id, grant_id);
CREATE INDEX tokens_by_parent ON tokens (org_id, parent_id);

CREATE TABLE providers (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    owner TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    auth_type TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    last_error TEXT COLLATE "C",
    tools BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    connected_at BIGINT,
    updated_at BIGINT NOT NULL,
    UNIQUE (org_id, owner, slug)
);

CREATE TABLE tool_versions (
    org_id TEXT COLLATE "C" NOT NULL,
    tool_id TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, tool_id, version)
);

CREATE TABLE audit_intents (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    node TEXT COLLATE "C" NOT NULL,
    opened_at BIGINT NOT NULL,
    record TEXT COLLATE "C" NOT NULL
);

-- Insert-only. What is sealed of an event is in audit_seals, under the same position.
CREATE TABLE audit_events (
    position BIGSERIAL PRIMARY KEY,
    id TEXT COLLATE "C" NOT NULL UNIQUE,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    type TEXT COLLATE "C" NOT NULL,
    occurred_at BIGINT NOT NULL,
    committed_at BIGINT NOT NULL,
    actor_id TEXT COLLATE "C",
    via TEXT COLLATE "C",
    token_id TEXT COLLATE "C",
    target TEXT COLLATE "C",
    decision TEXT COLLATE "C",
    policy TEXT COLLATE "C",
    dlp_result TEXT COLLATE "C",
    outcome TEXT COLLATE "C",
    request_id TEXT COLLATE "C",
    core TEXT COLLATE "C" NOT NULL,
    detached TEXT COLLATE "C",
    salts TEXT COLLATE "C"
);
CREATE INDEX audit_events_by_org ON audit_events (org_id, position);
CREATE INDEX audit_events_by_actor ON audit_events (org_id, actor_id, position)
    WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_by_via ON audit_events (org_id, via, position) WHERE via IS NOT NULL;
CREATE INDEX audit_events_by_request ON audit_events (org_id, request_id, position)
    WHERE request_id IS NOT NULL;

CREATE TABLE audit_seals (
    position BIGINT PRIMARY KEY REFERENCES audit_events (position),
    org_id TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    leaf_hash BYTEA NOT NULL,
    UNIQUE (org_id, sequence)
);

CREATE TABLE audit_heads (
    org_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size BIGINT NOT NULL,
    last_position BIGINT NOT NULL,
    last_recorded_at BIGINT NOT NULL
);

-- One row, written to find out whether writing works.
CREATE TABLE probes (
    id BIGINT PRIMARY KEY,
    probed_at BIGINT NOT NULL
);
