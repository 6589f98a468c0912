-- How many leaves of the log are in the stored tree; less than `size` only until the next seal of
-- an org whose log is older than this schema.
ALTER TABLE audit_heads ADD COLUMN tree_size INTEGER NOT NULL DEFAULT 0;

-- The Merkle tree of an org's log in tiles of up to 256 hashes. Depends on no event: it stays when
-- old events are removed, so that the proofs of younger ones hold.
CREATE TABLE audit_tiles (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    level INTEGER NOT NULL,
    tile INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (org_id, level, tile)
) STRICT;

-- The latest signed tree of each org (kind `signed`), and the latest that a witness signed too
-- (kind `witnessed`).
CREATE TABLE audit_checkpoints (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    root BLOB NOT NULL,
    note TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, kind)
) STRICT;
