-- Public keys by which service accounts prove themselves at the token endpoint (RFC 7523). The
-- thumbprint (RFC 7638) names a key; a token that it bought has it in tokens.trust.
CREATE TABLE principal_keys (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    principal_id TEXT COLLATE "C" NOT NULL,
    thumbprint TEXT COLLATE "C" NOT NULL,
    jwk TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, principal_id, thumbprint),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX principal_keys_by_principal ON principal_keys (principal_id);
SELECT portcullis_wall('principal_keys', 'org_id');
