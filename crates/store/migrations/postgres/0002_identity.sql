ALTER TABLE tokens ADD COLUMN exchange_only BIGINT NOT NULL DEFAULT 0;
ALTER TABLE tokens ADD COLUMN via_token_id TEXT COLLATE "C" REFERENCES tokens (id);
CREATE INDEX tokens_by_via_token ON tokens (org_id, via_token_id) WHERE via_token_id IS NOT NULL;

-- One row for each refresh token, beside its row in tokens. The pair that a spent one bought is
-- kept in sealed for as long as it may be asked for again; only that token opens it.
CREATE TABLE refreshes (
    token_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tokens (id),
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    grant_id TEXT COLLATE "C" NOT NULL,
    grant_ends_at BIGINT NOT NULL,
    access_seconds BIGINT NOT NULL,
    spent_at BIGINT,
    next_access_id TEXT COLLATE "C",
    next_refresh_id TEXT COLLATE "C",
    sealed BYTEA
);
CREATE UNIQUE INDEX refreshes_unspent ON refreshes (org_id, grant_id) WHERE spent_at IS NULL;
CREATE INDEX refreshes_by_next ON refreshes (next_refresh_id) WHERE next_refresh_id IS NOT NULL;
CREATE INDEX refreshes_sealed ON refreshes (spent_at) WHERE sealed IS NOT NULL;

-- Who a trusted issuer's subject is here.
CREATE TABLE identities (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    issuer TEXT COLLATE "C" NOT NULL,
    claim TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, issuer, claim, subject),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);

-- JWTs that may be exchanged once and were; kept until they expire.
CREATE TABLE used_assertions (
    digest BYTEA NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX used_assertions_by_expiry ON used_assertions (expires_at);
