-- Every policy that was ever in force, in each version, and which of them stood together: what an
-- event names can be read as long as the log is kept.
CREATE TABLE policy_versions (
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    record TEXT NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (id, version)
) STRICT;

CREATE TABLE policy_sets (
    version TEXT NOT NULL PRIMARY KEY,
    members TEXT NOT NULL,
    files TEXT NOT NULL,
    kept_at INTEGER NOT NULL
) STRICT;
