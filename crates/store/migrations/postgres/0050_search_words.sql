-- Records as they are searched: the rest of each of their texts from each word on, in lower case, so that one range of the
-- key has all that begin as asked. `source` says which texts: name and scim of principals, token, consent.
CREATE TABLE search_words (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    source TEXT COLLATE "C" NOT NULL,
    word TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, source, word, id)
);
CREATE INDEX search_words_by_id ON search_words (id, source, org_id);
-- Sessions are searched by their people.
DROP INDEX browser_sessions_by_principal;
CREATE INDEX browser_sessions_by_principal ON browser_sessions (org_id, principal_id, id);
SELECT portcullis_wall('search_words', 'org_id');

-- What was there before.
WITH texts (org_id, source, id, text) AS (
    SELECT org_id, 'name', id, name FROM principals
    UNION ALL SELECT u.org_id, 'scim', u.principal_id, v.value
    FROM scim_users u CROSS JOIN LATERAL (
        SELECT p.value FROM jsonb_each_text(u.attributes::jsonb) p WHERE p.key IN ('userName', 'displayName')
        UNION ALL SELECT n.value FROM jsonb_each_text(COALESCE(u.attributes::jsonb -> 'name', '{}')) n
        WHERE n.key IN ('formatted', 'givenName', 'familyName')
        UNION ALL SELECT e.value ->> 'value' FROM jsonb_array_elements(COALESCE(u.attributes::jsonb -> 'emails', '[]')) e
    ) v WHERE u.deleted_at IS NULL
    UNION ALL SELECT org_id, 'token', id, label FROM tokens WHERE label IS NOT NULL
    UNION ALL SELECT org_id, 'consent', id, client::jsonb ->> 'name' FROM consents
    UNION ALL SELECT org_id, 'consent', id, client_id FROM consents
    UNION ALL SELECT org_id, 'consent', id, returns_to FROM consents
), letters (org_id, source, id, text, place, letter, earlier) AS (
    SELECT org_id, source, id, low.text, place,
        substr(low.text, place, 1) COLLATE "C", substr(' ' || low.text, place, 1) COLLATE "C"
    FROM texts t CROSS JOIN LATERAL (SELECT lower(t.text COLLATE "default") AS text) low
        CROSS JOIN LATERAL generate_series(1, length(low.text)) place
)
INSERT INTO search_words (org_id, source, word, id)
SELECT DISTINCT org_id, source, substr(text, place, 64) COLLATE "C", id FROM letters
WHERE (letter ~ '[a-z0-9]' OR letter > '~') AND NOT (earlier ~ '[a-z0-9]' OR earlier > '~');
