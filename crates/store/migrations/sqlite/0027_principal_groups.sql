-- The groups that the operator put a principal into, besides those that logins name: a JSON array.
ALTER TABLE principals ADD COLUMN groups TEXT NOT NULL DEFAULT '[]';
