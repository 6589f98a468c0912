-- What a connection's credentials are for and how they fare; the credentials are in secrets.
ALTER TABLE providers ADD COLUMN audience TEXT COLLATE "C";
ALTER TABLE providers ADD COLUMN scopes TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN expires_at BIGINT;
ALTER TABLE providers ADD COLUMN refreshable BIGINT NOT NULL DEFAULT 0;
ALTER TABLE providers ADD COLUMN refreshed_at BIGINT;
ALTER TABLE providers ADD COLUMN refresh_due_at BIGINT;
ALTER TABLE providers ADD COLUMN refresh_failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE providers ADD COLUMN lease_holder TEXT COLLATE "C";
ALTER TABLE providers ADD COLUMN leased_until BIGINT;
ALTER TABLE providers ADD COLUMN account_id TEXT COLLATE "C";
ALTER TABLE providers ADD COLUMN account_name TEXT COLLATE "C";
ALTER TABLE providers ADD COLUMN tool_list TEXT COLLATE "C";
-- Grows with each new credential: whoever holds an older one asks again.
ALTER TABLE providers ADD COLUMN revision BIGINT NOT NULL DEFAULT 0;
ALTER TABLE providers ADD COLUMN removed_at BIGINT;
CREATE INDEX providers_due ON providers (refresh_due_at) WHERE refresh_due_at IS NOT NULL;

-- Every secret that is kept, sealed by the vault for exactly this place. An empty org is the
-- installation.
CREATE TABLE secrets (
    org_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    row_id TEXT COLLATE "C" NOT NULL,
    field TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    sealed BYTEA NOT NULL,
    PRIMARY KEY (org_id, kind, row_id, field)
);
CREATE INDEX secrets_by_key ON secrets (key_id, org_id, kind, row_id, field);

-- A connect that has begun and is not confirmed yet.
CREATE TABLE connect_attempts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    provider_id TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    state_hash BYTEA NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL,
    called_at BIGINT,
    confirm_hash BYTEA,
    tries BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX connect_attempts_by_principal ON connect_attempts (org_id, principal_id, slug, owner);
CREATE INDEX connect_attempts_by_expiry ON connect_attempts (expires_at);

-- What the gateway is called at an authorization server that it registered with by itself.
CREATE TABLE oauth_clients (
    issuer TEXT COLLATE "C" NOT NULL,
    redirect_uri TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    registered_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (issuer, redirect_uri)
);

-- The tools that connections list, each list once in an org, by its digest.
CREATE TABLE tool_lists (
    org_id TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    definitions TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, digest)
);
