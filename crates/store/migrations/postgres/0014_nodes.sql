-- Which processes serve from this database. Each holds its name for seconds at a time and says so
-- again; the lease tells one process from the next of the same name, the place tells that both have
-- the same data folder, which one process at a time serves from. Times are the database's.
CREATE TABLE nodes (
    name TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    lease TEXT COLLATE "C" NOT NULL UNIQUE,
    place TEXT COLLATE "C" NOT NULL,
    counts_alone BIGINT NOT NULL,
    policy_set TEXT COLLATE "C",
    started_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL
);

-- Tells nodes that listen what to read anew, by id alone. An engine that cannot push is no reason
-- to refuse a change: nodes ask again within seconds anyway.
CREATE FUNCTION portcullis_push() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('portcullis', TG_ARGV[0] || ' ' || (to_jsonb(NEW) ->> TG_ARGV[1]));
    RETURN NULL;
EXCEPTION WHEN undefined_function OR feature_not_supported THEN
    RETURN NULL;
END
$$;

CREATE TRIGGER tokens_push AFTER UPDATE OF revoked_at ON tokens
    FOR EACH ROW EXECUTE FUNCTION portcullis_push('tokens', 'org_id');
CREATE TRIGGER principals_push AFTER UPDATE ON principals
    FOR EACH ROW EXECUTE FUNCTION portcullis_push('principals', 'org_id');
CREATE TRIGGER orgs_push AFTER UPDATE ON orgs
    FOR EACH ROW EXECUTE FUNCTION portcullis_push('orgs', 'id');
CREATE TRIGGER providers_push
    AFTER UPDATE OF status, revision, removed_at, tool_list, scopes ON providers
    FOR EACH ROW EXECUTE FUNCTION portcullis_push('connections', 'org_id');
CREATE TRIGGER tool_pins_push AFTER INSERT OR UPDATE ON tool_pins
    FOR EACH ROW EXECUTE FUNCTION portcullis_push('pins', 'org_id');
