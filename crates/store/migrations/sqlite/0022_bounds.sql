-- How many bytes the file of an export has: orgs have a quota. Those made before count nothing, for
-- the day that they are kept.
ALTER TABLE exports ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;

-- How many tools a provider lists that are not remembered, because so many others are. `org_id` is
-- empty for providers that every org shares.
CREATE TABLE tool_surplus (
    org_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    tools INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, provider)
) STRICT;
