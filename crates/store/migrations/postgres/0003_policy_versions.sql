-- Every policy that was ever in force, in each version, and which of them stood together: what an
-- event names can be read as long as the log is kept.
CREATE TABLE policy_versions (
    id TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    record TEXT COLLATE "C" NOT NULL,
    kept_at BIGINT NOT NULL,
    PRIMARY KEY (id, version)
);

CREATE TABLE policy_sets (
    version TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    members TEXT COLLATE "C" NOT NULL,
    files TEXT COLLATE "C" NOT NULL,
    kept_at BIGINT NOT NULL
);
