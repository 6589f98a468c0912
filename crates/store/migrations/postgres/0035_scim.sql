-- The names of the groups that an identity provider put a principal into over SCIM: a JSON array, kept in step with
-- scim_members by those who change these.
ALTER TABLE principals ADD COLUMN provisioned_groups TEXT NOT NULL DEFAULT '[]';

-- People whom an identity provider keeps over SCIM. A deleted one stays, so that the same person gets the same
-- principal again. The keys are in lower case. `deactivated_at` is the moment at which the provider ended the access.
CREATE TABLE scim_users (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    principal_id TEXT COLLATE "C" NOT NULL,
    user_key TEXT COLLATE "C" NOT NULL,
    external_id TEXT COLLATE "C",
    display_key TEXT COLLATE "C",
    attributes TEXT COLLATE "C" NOT NULL,
    scim_created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    deactivated_at BIGINT,
    deleted_at BIGINT,
    revision BIGINT NOT NULL,
    PRIMARY KEY (org_id, principal_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX scim_users_live_name ON scim_users (org_id, user_key) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX scim_users_live_id ON scim_users (org_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;
CREATE INDEX scim_users_by_name ON scim_users (org_id, user_key);
CREATE INDEX scim_users_by_external_id ON scim_users (org_id, external_id);
CREATE INDEX scim_users_by_display ON scim_users (org_id, display_key);

CREATE TABLE scim_groups (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    display_name TEXT COLLATE "C" NOT NULL,
    display_key TEXT COLLATE "C" NOT NULL,
    external_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX scim_groups_by_display ON scim_groups (org_id, display_key);
CREATE UNIQUE INDEX scim_groups_by_external_id ON scim_groups (org_id, external_id);

CREATE TABLE scim_members (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    group_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, group_id, principal_id),
    FOREIGN KEY (org_id, group_id) REFERENCES scim_groups (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES scim_users (org_id, principal_id)
);
CREATE INDEX scim_members_by_principal ON scim_members (org_id, principal_id);
SELECT portcullis_wall('scim_users', 'org_id');
SELECT portcullis_wall('scim_groups', 'org_id');
SELECT portcullis_wall('scim_members', 'org_id');
