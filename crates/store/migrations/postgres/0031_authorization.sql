-- Consents of people to what OAuth clients asked for: one for each person, client and face. `client` is the
-- client as JSON.
CREATE TABLE consents (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    face TEXT COLLATE "C" NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    returns_to TEXT COLLATE "C" NOT NULL,
    remembered BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    renewed_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX consents_of_client ON consents (org_id, principal_id, client_id, face);
SELECT portcullis_wall('consents', 'org_id');

-- Authorization codes, by their SHA-256. `asked` holds as JSON what the token request is checked against and
-- what its tokens are made of.
CREATE TABLE authorization_codes (
    hash BYTEA NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    principal_id TEXT COLLATE "C" NOT NULL,
    grant_id TEXT COLLATE "C" NOT NULL,
    asked TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    spent_at BIGINT,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);
SELECT portcullis_wall('authorization_codes', 'org_id');

-- What a client was granted, for the tokens of the grant that came of it. Tokens made from these have a copy.
CREATE TABLE client_grants (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    grant_id TEXT COLLATE "C" NOT NULL,
    consent_id TEXT COLLATE "C",
    granted TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, grant_id)
);
CREATE INDEX client_grants_by_consent ON client_grants (org_id, consent_id);
SELECT portcullis_wall('client_grants', 'org_id');
