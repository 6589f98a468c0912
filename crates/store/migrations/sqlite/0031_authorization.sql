-- Consents of people to what OAuth clients asked for: one for each person, client and face. `client` is the
-- client as JSON.
CREATE TABLE consents (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    face TEXT NOT NULL,
    client TEXT NOT NULL,
    scopes TEXT NOT NULL,
    returns_to TEXT NOT NULL,
    remembered INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX consents_of_client ON consents (org_id, principal_id, client_id, face);

-- Authorization codes, by their SHA-256. `asked` holds as JSON what the token request is checked against and
-- what its tokens are made of.
CREATE TABLE authorization_codes (
    hash BLOB NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    principal_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    asked TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    spent_at INTEGER,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);

-- What a client was granted, for the tokens of the grant that came of it. Tokens made from these have a copy.
CREATE TABLE client_grants (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    grant_id TEXT NOT NULL,
    consent_id TEXT,
    granted TEXT NOT NULL,
    PRIMARY KEY (org_id, grant_id)
) STRICT;
CREATE INDEX client_grants_by_consent ON client_grants (org_id, consent_id);
