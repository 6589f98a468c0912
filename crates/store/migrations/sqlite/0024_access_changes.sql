-- In which order something last changed that decides about the callers of an org: nodes look it up
-- again. What is written at every use, such as when a token was last seen, is no change.
CREATE TABLE access_changes (
    org_id TEXT NOT NULL PRIMARY KEY,
    changed_in INTEGER NOT NULL
) STRICT;
CREATE INDEX access_changes_in_order ON access_changes (changed_in);

CREATE TRIGGER tokens_access
AFTER UPDATE OF id, kind, hash, org_id, principal_id, via, grant_id, scopes, label, method, trust,
    expires_at, revoked_at, allowed_cidrs, exchange_only ON tokens
BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (NEW.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
CREATE TRIGGER tokens_gone AFTER DELETE ON tokens BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (OLD.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;

CREATE TRIGGER principals_access AFTER UPDATE ON principals BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (NEW.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
CREATE TRIGGER principals_gone AFTER DELETE ON principals BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (OLD.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;

CREATE TRIGGER orgs_access AFTER UPDATE ON orgs BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (NEW.id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
CREATE TRIGGER orgs_gone AFTER DELETE ON orgs BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (OLD.id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;

CREATE TRIGGER logins_access AFTER UPDATE ON logins BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (NEW.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
CREATE TRIGGER logins_gone AFTER DELETE ON logins BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (OLD.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;

CREATE TRIGGER providers_made AFTER INSERT ON providers BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (NEW.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
CREATE TRIGGER providers_access
AFTER UPDATE OF id, org_id, owner, slug, name, auth_type, status, last_error, tools, connected_at,
    audience, scopes, expires_at, refreshable, refreshed_at, account_id, account_name, tool_list,
    revision, removed_at, missing_since ON providers
BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (NEW.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
CREATE TRIGGER providers_gone AFTER DELETE ON providers BEGIN
    INSERT INTO access_changes (org_id, changed_in)
    VALUES (OLD.org_id, (SELECT COALESCE(MAX(changed_in), 0) + 1 FROM access_changes))
    ON CONFLICT (org_id) DO UPDATE SET changed_in = excluded.changed_in;
END;
