-- What an org used of its plan on a day (UTC, in days since the epoch), as its nodes counted it: for its
-- admins to see. Limits are not decided by it.
CREATE TABLE org_usage (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    day BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    invocations BIGINT NOT NULL,
    PRIMARY KEY (org_id, day)
);
SELECT portcullis_wall('org_usage', 'org_id');
