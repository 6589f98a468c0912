-- Logins of people in browsers. Of the secret in the cookie only the SHA-256 is kept. `said` is what
-- the issuer said at the login, as in `logins`; a login by a link of the operator has none.
CREATE TABLE browser_sessions (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    hash BLOB NOT NULL,
    method TEXT NOT NULL,
    trust TEXT,
    issuer TEXT,
    said TEXT,
    acr TEXT,
    amr TEXT NOT NULL,
    auth_time INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX browser_sessions_by_hash ON browser_sessions (hash);
CREATE INDEX browser_sessions_by_principal ON browser_sessions (org_id, principal_id);
CREATE INDEX browser_sessions_by_end ON browser_sessions (ends_at);

-- Addresses that log a person in once. A row is deleted when it is used.
CREATE TABLE login_links (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    hash BLOB NOT NULL,
    principal_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, hash),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX login_links_by_hash ON login_links (hash);
CREATE INDEX login_links_by_expiry ON login_links (expires_at);
