-- What an issuer said of somebody at a login, as policies see it: for the tokens of the grant that
-- came of it. Tokens made from these have a copy, with the moment of the login.
CREATE TABLE logins (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    grant_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    said TEXT NOT NULL,
    said_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, grant_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX logins_by_principal ON logins (org_id, principal_id, said_at);
