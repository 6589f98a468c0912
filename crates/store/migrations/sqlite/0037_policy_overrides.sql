-- Policies that admins switched off for their org, each until a moment. One of a `forbid` counts for the version
-- that was switched off.
CREATE TABLE policy_overrides (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    policy_id TEXT NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, policy_id)
) STRICT;
