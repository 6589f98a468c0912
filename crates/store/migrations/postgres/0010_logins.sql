-- What an issuer said of somebody at a login, as policies see it: for the tokens of the grant that
-- came of it. Tokens made from these have a copy, with the moment of the login.
CREATE TABLE logins (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    grant_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    said TEXT COLLATE "C" NOT NULL,
    said_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, grant_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX logins_by_principal ON logins (org_id, principal_id, said_at);
