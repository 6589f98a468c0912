-- What a token relies on besides itself: the rules that admitted anybody in its chain, everybody who
-- acts, and who has to be let act. Where it stays NULL that cannot be known, and the token is refused.
ALTER TABLE tokens ADD COLUMN lineage TEXT;

-- Each token with everything it was made from, itself included.
CREATE TEMPORARY TABLE token_steps AS
WITH RECURSIVE made (id, ancestor) AS (
    SELECT id, id FROM tokens
    UNION
    SELECT m.id, u.ancestor FROM made m JOIN (
        SELECT id, parent_id AS ancestor FROM tokens WHERE parent_id IS NOT NULL
        UNION SELECT id, via_token_id FROM tokens WHERE via_token_id IS NOT NULL
    ) u ON u.id = m.ancestor
)
SELECT id, ancestor FROM made;
CREATE INDEX token_steps_by_id ON token_steps (id);

-- The rule that admitted the subject of each token.
CREATE TEMPORARY TABLE token_roots AS
WITH RECURSIVE rooted (id, rule) AS (
    SELECT id, trust FROM tokens WHERE parent_id IS NULL
    UNION ALL
    SELECT t.id, r.rule FROM tokens t JOIN rooted r ON t.parent_id = r.id
)
SELECT id, rule FROM rooted;
CREATE INDEX token_roots_by_id ON token_roots (id);

CREATE TEMPORARY TABLE token_logins AS
SELECT id, json_group_array(json_array(trust, principal_id)) AS list FROM (
    SELECT DISTINCT s.id, x.trust, x.principal_id
    FROM token_steps s JOIN tokens x ON x.id = s.ancestor WHERE x.trust IS NOT NULL
) GROUP BY id;
CREATE INDEX token_logins_by_id ON token_logins (id);

CREATE TEMPORARY TABLE token_actors AS
SELECT id, json_group_array(via) AS list FROM (
    SELECT s.id, x.via FROM token_steps s
    JOIN tokens t ON t.id = s.id JOIN tokens x ON x.id = s.ancestor
    WHERE x.via IS NOT NULL AND x.via <> t.principal_id
    GROUP BY s.id, x.via ORDER BY s.id, MAX(x.id = t.id) DESC, MAX(x.issued_at) DESC
) GROUP BY id;
CREATE INDEX token_actors_by_id ON token_actors (id);

CREATE TEMPORARY TABLE token_delegations AS
SELECT id, json_group_array(json_array(rule, via)) AS list FROM (
    SELECT DISTINCT s.id, r.rule, x.via FROM token_steps s JOIN tokens x ON x.id = s.ancestor
    JOIN token_roots r ON r.id IN (s.id, x.id) WHERE x.via IS NOT NULL AND r.rule IS NOT NULL
) GROUP BY id;
CREATE INDEX token_delegations_by_id ON token_delegations (id);

UPDATE tokens SET lineage = json_object(
    'root', (SELECT rule FROM token_roots r WHERE r.id = tokens.id),
    'logins', json(COALESCE((SELECT list FROM token_logins l WHERE l.id = tokens.id), '[]')),
    'actors', json(COALESCE((SELECT list FROM token_actors a WHERE a.id = tokens.id), '[]')),
    'delegations',
    json(COALESCE((SELECT list FROM token_delegations d WHERE d.id = tokens.id), '[]')),
    'derived', json(CASE
        WHEN parent_id IS NULL AND via IS NULL AND via_token_id IS NULL THEN 'false' ELSE 'true'
    END)
)
-- An actor that presented a JWT left nothing behind that tells by which rule.
WHERE NOT EXISTS (
    SELECT 1 FROM token_steps s JOIN tokens x ON x.id = s.ancestor
    WHERE s.id = tokens.id AND x.via IS NOT NULL AND x.via_token_id IS NULL
        AND NOT EXISTS (SELECT 1 FROM tokens p WHERE p.id = x.parent_id AND p.via = x.via)
);

DROP TABLE token_steps;
DROP TABLE token_roots;
DROP TABLE token_logins;
DROP TABLE token_actors;
DROP TABLE token_delegations;
