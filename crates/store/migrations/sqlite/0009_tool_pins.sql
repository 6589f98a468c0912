-- What was accepted of each tool, and what else its upstream says now. A row is never removed, so
-- a pin outlives the tool, its provider and the provider's next declaration. `org_id` is empty for
-- providers that every org shares.
CREATE TABLE tool_pins (
    org_id TEXT NOT NULL,
    tool_id TEXT NOT NULL,
    version TEXT,
    definition TEXT,
    pinned_at INTEGER,
    found_version TEXT,
    found_definition TEXT,
    found_at INTEGER,
    told_version TEXT,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, tool_id)
) STRICT;
CREATE INDEX tool_pins_by_change ON tool_pins (changed_at);
