-- What was made from a token is found by one index for each link, first what is not revoked, in the order in which it
-- ends; `via_token_id` stands first because a foreign key asks for it alone.
DROP INDEX tokens_by_grant;
DROP INDEX tokens_by_parent;
DROP INDEX tokens_by_via_token;
CREATE INDEX tokens_by_grant ON tokens (org_id, grant_id, revoked_at, expires_at);
CREATE INDEX tokens_by_parent ON tokens (org_id, parent_id, revoked_at, expires_at) WHERE parent_id IS NOT NULL;
CREATE INDEX tokens_by_via_token ON tokens (via_token_id, org_id, revoked_at, expires_at)
    WHERE via_token_id IS NOT NULL;
-- Those by which the holder of a token acts for one principal.
CREATE INDEX tokens_acting ON tokens (via_token_id, org_id, principal_id, revoked_at, expires_at)
    WHERE via_token_id IS NOT NULL;

-- What a principal can come in by, and those who act through it.
CREATE INDEX tokens_live_of_principal ON tokens (org_id, principal_id, expires_at) WHERE revoked_at IS NULL;
CREATE INDEX tokens_live_via ON tokens (org_id, via, expires_at) WHERE revoked_at IS NULL AND via IS NOT NULL;
CREATE INDEX tokens_by_key ON tokens (org_id, principal_id, trust, issued_at) WHERE method = 'key';

-- Tokens are deleted some time after they ended.
CREATE INDEX tokens_by_end ON tokens (expires_at);

-- What ends with a person's access, and the groups of a person.
CREATE INDEX authorization_codes_by_principal ON authorization_codes (org_id, principal_id);
CREATE INDEX login_links_by_principal ON login_links (org_id, principal_id);
DROP INDEX scim_members_by_principal;
CREATE INDEX scim_members_by_principal ON scim_members (org_id, principal_id, group_id);
