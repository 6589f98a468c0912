-- The wall behind the statements. A transaction says whose rows it is about, by the setting
-- portcullis.org, or that it is about everybody's, by portcullis.installation; without either it
-- sees no row and writes none. Both are set for one transaction at a time. The subselects are there
-- for the planner: the settings are read once in a statement, not once for every row.
CREATE FUNCTION portcullis_wall(walled REGCLASS, org TEXT) RETURNS VOID LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('ALTER TABLE %s ENABLE ROW LEVEL SECURITY', walled);
    -- Also for the owner of the table, who is whom the gateway signs in as.
    EXECUTE format('ALTER TABLE %s FORCE ROW LEVEL SECURITY', walled);
    EXECUTE format(
        'CREATE POLICY of_one_org ON %s USING ('
        '(SELECT current_setting(''portcullis.installation'', true)) = ''on'' '
        'OR %I = (SELECT NULLIF(current_setting(''portcullis.org'', true), '''')))',
        walled, org
    );
END
$$;

SELECT portcullis_wall('orgs', 'id');

-- What has no org, an empty one, belongs to the installation.
SELECT portcullis_wall(c.oid, 'org_id')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id'
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition;
