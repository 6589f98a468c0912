-- `AUTOINCREMENT` writes a page of a table of its own with every commit of events. Positions are counted on
-- from the last row instead, and here from the last one that was removed. What SQLite stores of the table is
-- the same with the word and without it, so that only its declaration is written
-- (https://www.sqlite.org/lang_altertable.html, section 7).
CREATE TABLE audit_floor (
    position INTEGER NOT NULL
) STRICT;
INSERT INTO audit_floor SELECT COALESCE(MAX(seq), 0) FROM sqlite_sequence WHERE name = 'audit_events';

PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = replace(sql, 'PRIMARY KEY AUTOINCREMENT', 'PRIMARY KEY')
WHERE type = 'table' AND name = 'audit_events';
PRAGMA writable_schema = RESET;
