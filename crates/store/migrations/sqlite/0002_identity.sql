ALTER TABLE tokens ADD COLUMN exchange_only INTEGER NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN via_token_id TEXT REFERENCES tokens (id);
CREATE INDEX tokens_by_via_token ON tokens (org_id, via_token_id) WHERE via_token_id IS NOT NULL;

-- One row for each refresh token, beside its row in tokens. The pair that a spent one bought is
-- kept in sealed for as long as it may be asked for again; only that token opens it.
CREATE TABLE refreshes (
    token_id TEXT NOT NULL PRIMARY KEY REFERENCES tokens (id),
    org_id TEXT NOT NULL REFERENCES orgs (id),
    grant_id TEXT NOT NULL,
    grant_ends_at INTEGER NOT NULL,
    access_seconds INTEGER NOT NULL,
    spent_at INTEGER,
    next_access_id TEXT,
    next_refresh_id TEXT,
    sealed BLOB
) STRICT;
CREATE UNIQUE INDEX refreshes_unspent ON refreshes (org_id, grant_id) WHERE spent_at IS NULL;
CREATE INDEX refreshes_by_next ON refreshes (next_refresh_id) WHERE next_refresh_id IS NOT NULL;
CREATE INDEX refreshes_sealed ON refreshes (spent_at) WHERE sealed IS NOT NULL;

-- Who a trusted issuer's subject is here.
CREATE TABLE identities (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    issuer TEXT NOT NULL,
    claim TEXT NOT NULL,
    subject TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, issuer, claim, subject),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;

-- JWTs that may be exchanged once and were; kept until they expire.
CREATE TABLE used_assertions (
    digest BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX used_assertions_by_expiry ON used_assertions (expires_at);
