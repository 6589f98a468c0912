-- Since when no configuration has had the provider of a connection: its credentials are forgotten
-- after a while.
ALTER TABLE providers ADD COLUMN missing_since INTEGER;
CREATE INDEX providers_missing ON providers (missing_since) WHERE missing_since IS NOT NULL;
