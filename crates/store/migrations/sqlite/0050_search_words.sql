-- Records as they are searched: the rest of each of their texts from each word on, in lower case, so that one range of the
-- key has all that begin as asked. `source` says which texts: name and scim of principals, token, consent.
CREATE TABLE search_words (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    source TEXT NOT NULL,
    word TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (org_id, source, word, id)
) STRICT;
CREATE INDEX search_words_by_id ON search_words (id, source, org_id);
-- Sessions are searched by their people.
DROP INDEX browser_sessions_by_principal;
CREATE INDEX browser_sessions_by_principal ON browser_sessions (org_id, principal_id, id);

-- What was there before. SQLite knows the lower case of ASCII letters only: others are as they were written until the
-- record changes.
WITH RECURSIVE texts (org_id, source, id, text) AS (
    SELECT org_id, 'name', id, lower(name) FROM principals
    UNION ALL SELECT u.org_id, 'scim', u.principal_id, lower(v.value)
    FROM scim_users u, json_tree(u.attributes) v
    WHERE u.deleted_at IS NULL AND v.type = 'text'
        AND v.key IN ('userName', 'displayName', 'formatted', 'givenName', 'familyName', 'value')
    UNION ALL SELECT org_id, 'token', id, lower(label) FROM tokens WHERE label IS NOT NULL
    UNION ALL SELECT org_id, 'consent', id, lower(json_extract(client, '$.name')) FROM consents
    UNION ALL SELECT org_id, 'consent', id, lower(client_id) FROM consents
    UNION ALL SELECT org_id, 'consent', id, lower(returns_to) FROM consents
), steps (org_id, source, id, text, earlier) AS (
    SELECT org_id, source, id, text, ' ' FROM texts WHERE length(text) > 0
    UNION ALL SELECT org_id, source, id, substr(text, 2), substr(text, 1, 1) FROM steps WHERE length(text) > 1
)
INSERT OR IGNORE INTO search_words (org_id, source, word, id)
SELECT org_id, source, substr(text, 1, 64), id FROM steps
WHERE (text GLOB '[a-z0-9]*' OR substr(text, 1, 1) > '~') AND NOT (earlier GLOB '[a-z0-9]' OR earlier > '~');
