-- Seals are found by their event and by their sequence, the last position by the heads. Only SQLite gives
-- positions out anew: here a sequence does, which writes nothing of its own for most of them.
DROP INDEX audit_seals_by_position;
