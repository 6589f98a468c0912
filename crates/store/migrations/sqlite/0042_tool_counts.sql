-- Calls by tool and hour (since the epoch, of the moment of their commit) of those that policies decided, which
-- the sealer adds to as it does to `audit_counts`. Hours are kept for two days.
CREATE TABLE audit_tool_counts (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    tool TEXT NOT NULL,
    hour INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (org_id, tool, hour)
) STRICT;
