-- Public keys by which service accounts prove themselves at the token endpoint (RFC 7523). The
-- thumbprint (RFC 7638) names a key; a token that it bought has it in tokens.trust.
CREATE TABLE principal_keys (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    principal_id TEXT NOT NULL,
    thumbprint TEXT NOT NULL,
    jwk TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, principal_id, thumbprint),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX principal_keys_by_principal ON principal_keys (principal_id);
