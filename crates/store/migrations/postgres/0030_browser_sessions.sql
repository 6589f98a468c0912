-- Logins of people in browsers. Of the secret in the cookie only the SHA-256 is kept. `said` is what
-- the issuer said at the login, as in `logins`; a login by a link of the operator has none.
CREATE TABLE browser_sessions (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C",
    issuer TEXT COLLATE "C",
    said TEXT COLLATE "C",
    acr TEXT COLLATE "C",
    amr TEXT COLLATE "C" NOT NULL,
    auth_time BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX browser_sessions_by_hash ON browser_sessions (hash);
CREATE INDEX browser_sessions_by_principal ON browser_sessions (org_id, principal_id);
CREATE INDEX browser_sessions_by_end ON browser_sessions (ends_at);

-- Addresses that log a person in once. A row is deleted when it is used.
CREATE TABLE login_links (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    hash BYTEA NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, hash),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX login_links_by_hash ON login_links (hash);
CREATE INDEX login_links_by_expiry ON login_links (expires_at);
SELECT portcullis_wall('browser_sessions', 'org_id');
SELECT portcullis_wall('login_links', 'org_id');
