-- One row for each request that people approve a call. `state` is the approval as it was last changed;
-- a use by a call writes only `status`, `uses_left` and `revision`, and the columns hold.
CREATE TABLE approvals (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    uses_left BIGINT NOT NULL CHECK (uses_left >= 0),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX approvals_open ON approvals (org_id, digest)
    WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_by_call ON approvals (org_id, digest, id);
CREATE INDEX approvals_pending ON approvals (org_id, principal_id) WHERE status = 'pending';
CREATE INDEX approvals_open_by_expiry ON approvals (expires_at)
    WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_ended_by_expiry ON approvals (expires_at)
    WHERE status NOT IN ('pending', 'approved');
SELECT portcullis_wall('approvals', 'org_id');
