-- What is rare in a log is found through the index that the sealer writes, too: events that are no calls by their
-- type (kind 7), denied ones (8), those with a finding of DLP by its result (9), and those without success by their
-- outcome (10), each below its org. Events that have their places already are in no such entry: of a log, those
-- in front of `size` are read instead.
CREATE TABLE audit_unmarked (
    org_id TEXT NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
INSERT INTO audit_unmarked (org_id, size) SELECT org_id, size FROM audit_heads WHERE size > 0;

CREATE TRIGGER audit_exceptions_gone AFTER DELETE ON audit_events BEGIN
    DELETE FROM audit_index WHERE kind = 7 AND name = OLD.org_id || ' ' || OLD.type AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 8 AND name = OLD.org_id || ' ' || OLD.decision
        AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 9 AND name = OLD.org_id || ' ' || OLD.dlp_result
        AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 10 AND name = OLD.org_id || ' ' || OLD.outcome
        AND position = OLD.position;
END;
