-- Calls by tool and hour (since the epoch, of the moment of their commit) of those that policies decided, which
-- the sealer adds to as it does to `audit_counts`. Hours are kept for two days.
CREATE TABLE audit_tool_counts (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    tool TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (org_id, tool, hour)
);
SELECT portcullis_wall('audit_tool_counts', 'org_id');
