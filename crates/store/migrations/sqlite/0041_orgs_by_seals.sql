-- The events of an org are found through its seals, and those without a seal among the last rows of the table:
-- every event up to `sealed` has its place, or has waited so long that `audit_index` names it (kind 6). Committing
-- an event writes to the tree of the events alone.
ALTER TABLE audit_floor ADD COLUMN sealed INTEGER NOT NULL DEFAULT 0;
UPDATE audit_floor SET sealed = COALESCE(
    (SELECT MIN((SELECT MIN(e.position) FROM audit_events e
        WHERE e.org_id = h.org_id AND e.position > h.last_position)) - 1 FROM audit_heads h),
    (SELECT MAX(position) FROM audit_events), 0);
DROP INDEX audit_events_by_org;

-- Payloads are found by org and moment through the index that the sealer writes, too (kind 5). `by_sealer` is 2
-- for their events. The index of those from before keeps its entries, and grows no more
-- (https://www.sqlite.org/lang_altertable.html, section 7).
PRAGMA writable_schema = ON;
UPDATE sqlite_schema SET sql = sql || ' AND by_sealer IS NOT 2'
WHERE type = 'index' AND name = 'audit_events_with_payload';
PRAGMA writable_schema = RESET;

-- An entry goes with its event, or with its payload.
CREATE TRIGGER audit_events_gone AFTER DELETE ON audit_events BEGIN
    DELETE FROM audit_index WHERE kind = 1 AND name = OLD.actor AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 2 AND name = OLD.behalf AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 3 AND name = OLD.request AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 4 AND name = OLD.id AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 5 AND name = OLD.org_id || printf(' %016d', OLD.payload_at)
        AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 6 AND name = OLD.org_id AND position = OLD.position;
END;
CREATE TRIGGER audit_payloads_gone AFTER UPDATE OF payload_at ON audit_events
WHEN NEW.payload_at IS NOT OLD.payload_at
BEGIN
    DELETE FROM audit_index WHERE kind = 5 AND name = OLD.org_id || printf(' %016d', OLD.payload_at)
        AND position = OLD.position;
END;
