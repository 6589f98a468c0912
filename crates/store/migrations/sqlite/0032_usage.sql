-- What an org used of its plan on a day (UTC, in days since the epoch), as its nodes counted it: for its
-- admins to see. Limits are not decided by it.
CREATE TABLE org_usage (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    day INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    invocations INTEGER NOT NULL,
    PRIMARY KEY (org_id, day)
) STRICT;
