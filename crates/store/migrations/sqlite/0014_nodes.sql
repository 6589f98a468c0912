-- Which processes serve from a database that several nodes share. An SQLite file has one: it stays
-- empty here.
CREATE TABLE nodes (
    name TEXT NOT NULL PRIMARY KEY,
    lease TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL,
    counts_alone INTEGER NOT NULL,
    policy_set TEXT,
    started_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
) STRICT;
