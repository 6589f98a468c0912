-- One row for each request that people approve a call. `state` is the approval as it was last changed;
-- a use by a call writes only `status`, `uses_left` and `revision`, and the columns hold.
CREATE TABLE approvals (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    status TEXT NOT NULL,
    revision INTEGER NOT NULL,
    uses_left INTEGER NOT NULL CHECK (uses_left >= 0),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (org_id, id)
) STRICT;
CREATE UNIQUE INDEX approvals_open ON approvals (org_id, digest)
    WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_by_call ON approvals (org_id, digest, id);
CREATE INDEX approvals_pending ON approvals (org_id, principal_id) WHERE status = 'pending';
CREATE INDEX approvals_open_by_expiry ON approvals (expires_at)
    WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_ended_by_expiry ON approvals (expires_at)
    WHERE status NOT IN ('pending', 'approved');
