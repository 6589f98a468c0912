-- Policies that admins switched off for their org, each until a moment. One of a `forbid` counts for the version
-- that was switched off.
CREATE TABLE policy_overrides (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    policy_id TEXT COLLATE "C" NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT COLLATE "C" NOT NULL,
    set_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, policy_id)
);
SELECT portcullis_wall('policy_overrides', 'org_id');
