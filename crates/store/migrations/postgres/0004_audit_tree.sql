-- How many leaves of the log are in the stored tree; less than `size` only until the next seal of
-- an org whose log is older than this schema.
ALTER TABLE audit_heads ADD COLUMN tree_size BIGINT NOT NULL DEFAULT 0;

-- The Merkle tree of an org's log in tiles of up to 256 hashes. Depends on no event: it stays when
-- old events are removed, so that the proofs of younger ones hold.
CREATE TABLE audit_tiles (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    level BIGINT NOT NULL,
    tile BIGINT NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (org_id, level, tile)
);

-- The latest signed tree of each org (kind `signed`), and the latest that a witness signed too
-- (kind `witnessed`).
CREATE TABLE audit_checkpoints (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    kind TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    root BYTEA NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    signed_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, kind)
);
