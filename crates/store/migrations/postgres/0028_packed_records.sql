-- The record, the erasable part and its salts of an event, in one compressed frame. The columns `core`,
-- `detached` and `salts` hold those of events that were written before, which stay as they are.
ALTER TABLE audit_events ADD COLUMN packed BYTEA;
-- What is compressed already is not compressed again.
ALTER TABLE audit_events ALTER COLUMN packed SET STORAGE EXTERNAL;

ALTER TABLE audit_intents ADD COLUMN packed BYTEA;
ALTER TABLE audit_intents ALTER COLUMN record DROP NOT NULL;
