-- What a token relies on besides itself: the rules that admitted anybody in its chain, everybody who
-- acts, and who has to be let act. Where it stays NULL that cannot be known, and the token is refused.
ALTER TABLE tokens ADD COLUMN lineage TEXT COLLATE "C";

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

UPDATE tokens SET lineage = jsonb_build_object(
    'root', (SELECT rule FROM token_roots r WHERE r.id = tokens.id),
    'logins', (SELECT COALESCE(jsonb_agg(DISTINCT jsonb_build_array(x.trust, x.principal_id)), '[]')
        FROM token_steps s JOIN tokens x ON x.id = s.ancestor
        WHERE s.id = tokens.id AND x.trust IS NOT NULL
    ),
    'actors', (SELECT COALESCE(jsonb_agg(via ORDER BY own DESC, issued_at DESC), '[]') FROM (
        SELECT x.via, MAX((x.id = tokens.id)::int) AS own, MAX(x.issued_at) AS issued_at
        FROM token_steps s JOIN tokens x ON x.id = s.ancestor
        WHERE s.id = tokens.id AND x.via IS NOT NULL AND x.via <> tokens.principal_id
        GROUP BY x.via
    ) acting),
    'delegations', (SELECT COALESCE(jsonb_agg(DISTINCT jsonb_build_array(r.rule, x.via)), '[]')
        FROM token_steps s JOIN tokens x ON x.id = s.ancestor
        JOIN token_roots r ON r.id IN (s.id, x.id)
        WHERE s.id = tokens.id AND x.via IS NOT NULL AND r.rule IS NOT NULL
    ),
    'derived', NOT (parent_id IS NULL AND via IS NULL AND via_token_id IS NULL)
)::text
-- An actor that presented a JWT left nothing behind that tells by which rule.
WHERE NOT EXISTS (
    SELECT 1 FROM token_steps s JOIN tokens x ON x.id = s.ancestor
    WHERE s.id = tokens.id AND x.via IS NOT NULL AND x.via_token_id IS NULL
        AND NOT EXISTS (SELECT 1 FROM tokens p WHERE p.id = x.parent_id AND p.via = x.via)
);

DROP TABLE token_steps;
DROP TABLE token_roots;
