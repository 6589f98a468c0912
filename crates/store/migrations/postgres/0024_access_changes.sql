-- In which transaction something changed that decides about the callers of an org: nodes look it up
-- again. What is written at every use, such as when a token was last seen, is no change. A row for
-- each transaction and org, so that no two transactions wait for each other; rows are removed after
-- an hour.
CREATE TABLE access_changes (
    changed_in BIGINT NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (changed_in, org_id)
);
CREATE INDEX access_changes_by_age ON access_changes (changed_at);
SELECT portcullis_wall('access_changes', 'org_id');

CREATE FUNCTION portcullis_access_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO access_changes (changed_in, org_id, changed_at)
    SELECT pg_current_xact_id()::text::bigint,
        to_jsonb(CASE TG_OP WHEN 'DELETE' THEN OLD ELSE NEW END) ->> TG_ARGV[0],
        (EXTRACT(EPOCH FROM clock_timestamp()) * 1000000)::bigint
    ON CONFLICT DO NOTHING;
    RETURN NULL;
END
$$;

CREATE TRIGGER tokens_access
    AFTER UPDATE OF id, kind, hash, org_id, principal_id, via, grant_id, scopes, label, method, trust,
    expires_at, revoked_at, allowed_cidrs, exchange_only OR DELETE ON tokens
    FOR EACH ROW EXECUTE FUNCTION portcullis_access_changed('org_id');
CREATE TRIGGER principals_access AFTER UPDATE OR DELETE ON principals
    FOR EACH ROW EXECUTE FUNCTION portcullis_access_changed('org_id');
CREATE TRIGGER orgs_access AFTER UPDATE OR DELETE ON orgs
    FOR EACH ROW EXECUTE FUNCTION portcullis_access_changed('id');
CREATE TRIGGER logins_access AFTER UPDATE OR DELETE ON logins
    FOR EACH ROW EXECUTE FUNCTION portcullis_access_changed('org_id');
CREATE TRIGGER providers_access
    AFTER INSERT OR DELETE OR UPDATE OF id, org_id, owner, slug, name, auth_type, status, last_error,
    tools, connected_at, audience, scopes, expires_at, refreshable, refreshed_at, account_id,
    account_name, tool_list, revision, removed_at, missing_since ON providers
    FOR EACH ROW EXECUTE FUNCTION portcullis_access_changed('org_id');
