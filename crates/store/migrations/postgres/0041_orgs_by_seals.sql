-- Only SQLite writes pages whole: there, orgs and payloads are indexed when events are sealed. On both, records are
-- kept with the seed of their salts from here on, which binaries of earlier schemas do not read.
SELECT 1;
