-- What a connection's credentials are for and how they fare; the credentials are in secrets.
ALTER TABLE providers ADD COLUMN audience TEXT;
ALTER TABLE providers ADD COLUMN scopes TEXT NOT NULL DEFAULT '';
ALTER TABLE providers ADD COLUMN expires_at INTEGER;
ALTER TABLE providers ADD COLUMN refreshable INTEGER NOT NULL DEFAULT 0;
ALTER TABLE providers ADD COLUMN refreshed_at INTEGER;
ALTER TABLE providers ADD COLUMN refresh_due_at INTEGER;
ALTER TABLE providers ADD COLUMN refresh_failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE providers ADD COLUMN lease_holder TEXT;
ALTER TABLE providers ADD COLUMN leased_until INTEGER;
ALTER TABLE providers ADD COLUMN account_id TEXT;
ALTER TABLE providers ADD COLUMN account_name TEXT;
ALTER TABLE providers ADD COLUMN tool_list TEXT;
-- Grows with each new credential: whoever holds an older one asks again.
ALTER TABLE providers ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
ALTER TABLE providers ADD COLUMN removed_at INTEGER;
CREATE INDEX providers_due ON providers (refresh_due_at) WHERE refresh_due_at IS NOT NULL;

-- Every secret that is kept, sealed by the vault for exactly this place. An empty org is the
-- installation.
CREATE TABLE secrets (
    org_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    row_id TEXT NOT NULL,
    field TEXT NOT NULL,
    key_id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (org_id, kind, row_id, field)
) STRICT;
CREATE INDEX secrets_by_key ON secrets (key_id, org_id, kind, row_id, field);

-- A connect that has begun and is not confirmed yet.
CREATE TABLE connect_attempts (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    provider_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    owner TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    state_hash BLOB NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL,
    called_at INTEGER,
    confirm_hash BLOB,
    tries INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX connect_attempts_by_principal ON connect_attempts (org_id, principal_id, slug, owner);
CREATE INDEX connect_attempts_by_expiry ON connect_attempts (expires_at);

-- What the gateway is called at an authorization server that it registered with by itself.
CREATE TABLE oauth_clients (
    issuer TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    method TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (issuer, redirect_uri)
) STRICT;

-- The tools that connections list, each list once in an org, by its digest.
CREATE TABLE tool_lists (
    org_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    definitions TEXT NOT NULL,
    PRIMARY KEY (org_id, digest)
) STRICT;
