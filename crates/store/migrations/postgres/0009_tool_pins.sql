-- What was accepted of each tool, and what else its upstream says now. A row is never removed, so
-- a pin outlives the tool, its provider and the provider's next declaration. `org_id` is empty for
-- providers that every org shares.
CREATE TABLE tool_pins (
    org_id TEXT COLLATE "C" NOT NULL,
    tool_id TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C",
    definition TEXT COLLATE "C",
    pinned_at BIGINT,
    found_version TEXT COLLATE "C",
    found_definition TEXT COLLATE "C",
    found_at BIGINT,
    told_version TEXT COLLATE "C",
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, tool_id)
);
CREATE INDEX tool_pins_by_change ON tool_pins (changed_at);
