-- The service account that pushed a person or a group: a trust rule can take only the people of one, and no other one
-- changes them then. Those from before have none until a provider writes them again.
ALTER TABLE scim_users ADD COLUMN pushed_by TEXT;
ALTER TABLE scim_groups ADD COLUMN pushed_by TEXT;

-- A person whom a provider keeps is joined only while it has no identity at all.
CREATE INDEX identities_by_principal ON identities (org_id, principal_id);

-- The keys were in the lower case of Unicode, in which different characters are the same. Only ASCII letters are put in
-- lower case here, so that no two keys become one.
UPDATE scim_users SET user_key = lower(json_extract(attributes, '$.userName')),
    display_key = lower(json_extract(attributes, '$.displayName'));
UPDATE scim_groups SET display_key = lower(display_name);
