-- Counts of sealed events by minute (since the epoch, of the moment of their commit), which the sealer
-- adds to when it gives events their places. Kinds: 1 allowed, 2 denied, 3 asked, 4 undecided; 5 flagged,
-- 6 redacted, 7 blocked; 8 failed; from 20 on, allowed calls by the time that they took. Old minutes are
-- merged into the first minute of their hour, old hours into that of their day.
CREATE TABLE audit_counts (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    minute INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (org_id, minute, kind)
) STRICT;
