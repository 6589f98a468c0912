-- Code over a row that waits for its seal, and over an intent, by a key that is not in the database. The sealer
-- and recovery refuse rows without it.
ALTER TABLE audit_events ADD COLUMN mac BYTEA;
ALTER TABLE audit_intents ADD COLUMN mac BYTEA;
