-- Events and their seals lie in one partition for each month. The key is the id of the event, which
-- begins with the moment it was made: so ids stay unique over all partitions without another column
-- in the key, and an event is looked up in one partition. Positions stay unique because one sequence
-- gives them out; the sequences of a log because only who moves its head inserts seals.

-- The smallest id that is made at this moment (UTC): 48 bits of milliseconds in ten letters.
CREATE FUNCTION audit_first_id(moment TIMESTAMP) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT 'evt_' || string_agg(
        substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((ms >> (5 * (9 - place))) & 31)::INT, 1),
        '' ORDER BY place
    ) || '0000000000000000'
    FROM (SELECT (extract(epoch FROM moment) * 1000)::BIGINT AS ms) AS at,
        generate_series(0, 9) AS place
$$;

-- Makes the partitions of the month that the moment lies in, unless they are there. Rows of the
-- month that came while they were not are taken along from the partition of all other ids. They are
-- made beside the log and then attached, which keeps nobody from writing.
CREATE FUNCTION audit_make_month(moment TIMESTAMP) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    month TIMESTAMP := date_trunc('month', moment);
    low TEXT := audit_first_id(month);
    high TEXT := audit_first_id(month + INTERVAL '1 month');
    log TEXT;
    part TEXT;
BEGIN
    IF to_regclass('audit_seals_' || to_char(month, 'YYYY_MM')) IS NOT NULL THEN
        RETURN;
    END IF;
    -- One at a time: two nodes may look at the same moment.
    PERFORM pg_advisory_xact_lock(5785245104);
    FOREACH log IN ARRAY ARRAY['audit_events', 'audit_seals'] LOOP
        part := log || '_' || to_char(month, 'YYYY_MM');
        CONTINUE WHEN to_regclass(part) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, log);
        EXECUTE format(
            'WITH strays AS (DELETE FROM %1$I WHERE %2$I >= %3$L AND %2$I < %4$L RETURNING *) '
            'INSERT INTO %5$I SELECT * FROM strays',
            log, CASE log WHEN 'audit_events' THEN 'id' ELSE 'event_id' END, low, high, part
        );
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', log, part, low, high
        );
        -- Nobody has to do with a partition but through the table that it is of.
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', part);
    END LOOP;
END
$$;

ALTER TABLE audit_seals RENAME TO audit_seals_before;
ALTER TABLE audit_events RENAME TO audit_events_before;
ALTER SEQUENCE audit_events_position_seq OWNED BY NONE;

CREATE TABLE audit_events (
    LIKE audit_events_before INCLUDING DEFAULTS
) PARTITION BY RANGE (id);
CREATE TABLE audit_seals (
    event_id TEXT COLLATE "C" NOT NULL,
    position BIGINT NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    leaf_hash BYTEA NOT NULL
) PARTITION BY RANGE (event_id);
CREATE TABLE audit_events_other PARTITION OF audit_events DEFAULT;
CREATE TABLE audit_seals_other PARTITION OF audit_seals DEFAULT;

SELECT audit_make_month(month) FROM (
    SELECT DISTINCT date_trunc('month', to_timestamp(occurred_at / 1000000) AT TIME ZONE 'UTC')
    FROM audit_events_before
) AS months (month);

INSERT INTO audit_events SELECT * FROM audit_events_before;
INSERT INTO audit_seals (event_id, position, org_id, sequence, recorded_at, leaf_hash)
SELECT e.id, s.position, s.org_id, s.sequence, s.recorded_at, s.leaf_hash
FROM audit_seals_before s JOIN audit_events_before e ON e.position = s.position;

DROP TABLE audit_seals_before;
DROP TABLE audit_events_before;
ALTER SEQUENCE audit_events_position_seq OWNED BY audit_events.position;

ALTER TABLE audit_events ADD PRIMARY KEY (id);
ALTER TABLE audit_events ADD FOREIGN KEY (org_id) REFERENCES orgs (id);
CREATE INDEX audit_events_by_position ON audit_events (position);
CREATE INDEX audit_events_by_org ON audit_events (org_id, position);
CREATE INDEX audit_events_by_actor ON audit_events (org_id, actor_id, position)
    WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_by_via ON audit_events (org_id, via, position) WHERE via IS NOT NULL;
CREATE INDEX audit_events_by_request ON audit_events (org_id, request_id, position)
    WHERE request_id IS NOT NULL;
CREATE INDEX audit_events_with_payload ON audit_events (org_id, payload_at)
    WHERE payload_at IS NOT NULL;

ALTER TABLE audit_seals ADD PRIMARY KEY (event_id);
CREATE INDEX audit_seals_by_position ON audit_seals (position);
CREATE INDEX audit_seals_by_sequence ON audit_seals (org_id, sequence);

SELECT portcullis_wall('audit_events', 'org_id');
SELECT portcullis_wall('audit_seals', 'org_id');
ALTER TABLE audit_events_other ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_events_other FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_seals_other ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_seals_other FORCE ROW LEVEL SECURITY;
