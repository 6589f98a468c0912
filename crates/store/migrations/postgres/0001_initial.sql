-- Moments are microseconds since 1970 in UTC, lists and records are JSON, and an empty `org_id` is the
-- installation. Row-level security is the wall behind the statements: it is built at the end of this page.

-- Orgs and who may come in -----------------------------------------------------------------------------------

-- A tenant.
CREATE TABLE orgs (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    name TEXT COLLATE "C" NOT NULL UNIQUE,
    plan TEXT COLLATE "C" NOT NULL,
    plan_requests BIGINT,
    plan_invocations BIGINT,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT
);

-- What an org used of its plan on a day (UTC, in days since the epoch), as its nodes counted it: for its admins
-- to see. Limits are not decided by it.
CREATE TABLE org_usage (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    day BIGINT NOT NULL,
    requests BIGINT NOT NULL,
    invocations BIGINT NOT NULL,
    PRIMARY KEY (org_id, day)
);

-- A user or service account. `groups` are those that the operator put it into, besides those that logins name;
-- `provisioned_groups` are the names of its groups over SCIM, kept in step with `scim_members` by those who
-- change these.
CREATE TABLE principals (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    name TEXT COLLATE "C" NOT NULL,
    role TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    disabled_at BIGINT,
    groups TEXT NOT NULL DEFAULT '[]',
    provisioned_groups TEXT NOT NULL DEFAULT '[]',
    UNIQUE (org_id, name),
    UNIQUE (org_id, id)
);

-- A public key by which a service account proves itself at the token endpoint (RFC 7523). The thumbprint
-- (RFC 7638) names it; a token that it bought has it in `tokens.trust`.
CREATE TABLE principal_keys (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    principal_id TEXT COLLATE "C" NOT NULL,
    thumbprint TEXT COLLATE "C" NOT NULL,
    jwk TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, principal_id, thumbprint),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX principal_keys_by_principal ON principal_keys (principal_id);

-- The principal that a trusted issuer's subject is here. A person whom a provider keeps over SCIM is joined only
-- while it has no identity at all.
CREATE TABLE identities (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    issuer TEXT COLLATE "C" NOT NULL,
    claim TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, issuer, claim, subject),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX identities_by_principal ON identities (org_id, principal_id);

-- A person whom an identity provider keeps over SCIM. A deleted one stays, so that the same person gets the same
-- principal again. In the keys, ASCII letters are in lower case. `deactivated_at` is the moment at which the
-- provider ended the access, `pushed_by` the service account that pushed the person: a trust rule can take only
-- the people of one, and no other one changes them then.
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
    pushed_by TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, principal_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX scim_users_live_name ON scim_users (org_id, user_key) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX scim_users_live_id ON scim_users (org_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;
CREATE INDEX scim_users_by_name ON scim_users (org_id, user_key);
CREATE INDEX scim_users_by_external_id ON scim_users (org_id, external_id);
CREATE INDEX scim_users_by_display ON scim_users (org_id, display_key);

-- A group that an identity provider keeps over SCIM; its columns are as those of `scim_users`.
CREATE TABLE scim_groups (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    display_name TEXT COLLATE "C" NOT NULL,
    display_key TEXT COLLATE "C" NOT NULL,
    external_id TEXT COLLATE "C",
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    revision BIGINT NOT NULL,
    pushed_by TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX scim_groups_by_display ON scim_groups (org_id, display_key);
CREATE UNIQUE INDEX scim_groups_by_external_id ON scim_groups (org_id, external_id);

-- A person in a group.
CREATE TABLE scim_members (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    group_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, group_id, principal_id),
    FOREIGN KEY (org_id, group_id) REFERENCES scim_groups (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES scim_users (org_id, principal_id)
);
CREATE INDEX scim_members_by_principal ON scim_members (org_id, principal_id, group_id);

-- One text of a record as it is searched: its rest from a word on, in lower case, so that one range of the key
-- has all that begin as asked. `source` says which text: name and scim of principals, token, consent.
CREATE TABLE search_words (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    source TEXT COLLATE "C" NOT NULL,
    word TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, source, word, id)
);
CREATE INDEX search_words_by_id ON search_words (id, source, org_id);

-- Tokens and logins ------------------------------------------------------------------------------------------

-- A token, by its digest. `lineage` is what it relies on besides itself: the rules that admitted anybody in its
-- chain, everybody who acts, and who has to be let act. `dpop_jkt` is the
-- thumbprint (RFC 7638) of the key that it is bound to (DPoP, RFC 9449); without one, whoever bears it may use it.
CREATE TABLE tokens (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    kind TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL UNIQUE,
    org_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    via TEXT COLLATE "C",
    grant_id TEXT COLLATE "C" NOT NULL,
    parent_id TEXT COLLATE "C",
    scopes TEXT COLLATE "C" NOT NULL,
    label TEXT COLLATE "C",
    method TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C",
    issued_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    revoked_at BIGINT,
    last_used_at BIGINT,
    allowed_cidrs TEXT COLLATE "C",
    exchange_only BIGINT NOT NULL DEFAULT 0,
    via_token_id TEXT COLLATE "C" REFERENCES tokens (id),
    lineage TEXT COLLATE "C" NOT NULL,
    dpop_jkt TEXT COLLATE "C",
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, via) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, parent_id) REFERENCES tokens (org_id, id)
);
CREATE INDEX tokens_by_principal ON tokens (org_id, principal_id, id);
-- What was made from a token is found by one index for each link, first what is not revoked, in the order in
-- which it ends; `via_token_id` stands first because a foreign key asks for it alone.
CREATE INDEX tokens_by_grant ON tokens (org_id, grant_id, revoked_at, expires_at);
CREATE INDEX tokens_by_parent ON tokens (org_id, parent_id, revoked_at, expires_at) WHERE parent_id IS NOT NULL;
CREATE INDEX tokens_by_via_token ON tokens (via_token_id, org_id, revoked_at, expires_at)
    WHERE via_token_id IS NOT NULL;
-- Those by which the holder of a token acts for one principal.
CREATE INDEX tokens_acting ON tokens (via_token_id, org_id, principal_id, revoked_at, expires_at)
    WHERE via_token_id IS NOT NULL;
-- What a principal can come in by, and those who act through it.
CREATE INDEX tokens_live_of_principal ON tokens (org_id, principal_id, expires_at) WHERE revoked_at IS NULL;
CREATE INDEX tokens_live_via ON tokens (org_id, via, expires_at) WHERE revoked_at IS NULL AND via IS NOT NULL;
CREATE INDEX tokens_by_key ON tokens (org_id, principal_id, trust, issued_at) WHERE method = 'key';
-- Tokens are deleted some time after they ended.
CREATE INDEX tokens_by_end ON tokens (expires_at);

-- What a refresh token has besides its row in `tokens`. The pair that a spent one bought is kept in `sealed` for
-- as long as it may be asked for again; only that token opens it.
CREATE TABLE refreshes (
    token_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES tokens (id),
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    grant_id TEXT COLLATE "C" NOT NULL,
    grant_ends_at BIGINT NOT NULL,
    access_seconds BIGINT NOT NULL,
    spent_at BIGINT,
    next_access_id TEXT COLLATE "C",
    next_refresh_id TEXT COLLATE "C",
    sealed BYTEA
);
CREATE UNIQUE INDEX refreshes_unspent ON refreshes (org_id, grant_id) WHERE spent_at IS NULL;
CREATE INDEX refreshes_by_next ON refreshes (next_refresh_id) WHERE next_refresh_id IS NOT NULL;
CREATE INDEX refreshes_sealed ON refreshes (spent_at) WHERE sealed IS NOT NULL;

-- A JWT that may be exchanged once and was; kept until it expires.
CREATE TABLE used_assertions (
    digest BYTEA NOT NULL PRIMARY KEY,
    expires_at BIGINT NOT NULL
);
CREATE INDEX used_assertions_by_expiry ON used_assertions (expires_at);

-- What an issuer said of somebody at a login, as policies see it: for the tokens of the grant that came of it.
-- Tokens made from these have a copy, with the moment of the login.
CREATE TABLE logins (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    grant_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    said TEXT COLLATE "C" NOT NULL,
    said_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, grant_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX logins_by_principal ON logins (org_id, principal_id, said_at);

-- A login of a person in a browser. Of the secret in the cookie only the SHA-256 is kept. `said` is what the
-- issuer said at the login, as in `logins`; a login by a link of the operator has none.
CREATE TABLE browser_sessions (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    hash BYTEA NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    trust TEXT COLLATE "C",
    issuer TEXT COLLATE "C",
    said TEXT COLLATE "C",
    acr TEXT COLLATE "C",
    amr TEXT COLLATE "C" NOT NULL,
    auth_time BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    last_seen_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    ended_at BIGINT,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX browser_sessions_by_hash ON browser_sessions (hash);
CREATE INDEX browser_sessions_by_principal ON browser_sessions (org_id, principal_id, id);
CREATE INDEX browser_sessions_by_end ON browser_sessions (ends_at);

-- An address that logs a person in once. The row is deleted when it is used.
CREATE TABLE login_links (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    hash BYTEA NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, hash),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX login_links_by_hash ON login_links (hash);
CREATE INDEX login_links_by_expiry ON login_links (expires_at);
CREATE INDEX login_links_by_principal ON login_links (org_id, principal_id);

-- The consent of a person to what an OAuth client asked for: one for each person, client and face. `client` is
-- the client as JSON. The metadata document of a client that somebody consented to is kept and fetched apart from
-- those of others.
CREATE TABLE consents (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    face TEXT COLLATE "C" NOT NULL,
    client TEXT COLLATE "C" NOT NULL,
    scopes TEXT COLLATE "C" NOT NULL,
    returns_to TEXT COLLATE "C" NOT NULL,
    remembered BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    renewed_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE UNIQUE INDEX consents_of_client ON consents (org_id, principal_id, client_id, face);
CREATE INDEX consents_by_client ON consents (client_id);

-- An authorization code, by its SHA-256. `asked` holds as JSON what the token request is checked against and what
-- its tokens are made of.
CREATE TABLE authorization_codes (
    hash BYTEA NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    principal_id TEXT COLLATE "C" NOT NULL,
    grant_id TEXT COLLATE "C" NOT NULL,
    asked TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    spent_at BIGINT,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);
CREATE INDEX authorization_codes_by_principal ON authorization_codes (org_id, principal_id);

-- What a client was granted, for the tokens of the grant that came of it. Tokens made from these have a copy.
CREATE TABLE client_grants (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    grant_id TEXT COLLATE "C" NOT NULL,
    consent_id TEXT COLLATE "C",
    granted TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, grant_id)
);
CREATE INDEX client_grants_by_consent ON client_grants (org_id, consent_id);

-- Connections and tools --------------------------------------------------------------------------------------

-- A connection to a provider: what its credentials are for and how they fare; the credentials are in `secrets`.
-- `revision` grows with each new credential: whoever holds an older one asks again. `missing_since` is the moment
-- since which no configuration has had the provider: the credentials are forgotten after a while.
CREATE TABLE providers (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    owner TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    name TEXT COLLATE "C" NOT NULL,
    auth_type TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    last_error TEXT COLLATE "C",
    tools BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    connected_at BIGINT,
    updated_at BIGINT NOT NULL,
    audience TEXT COLLATE "C",
    scopes TEXT COLLATE "C" NOT NULL DEFAULT '',
    expires_at BIGINT,
    refreshable BIGINT NOT NULL DEFAULT 0,
    refreshed_at BIGINT,
    refresh_due_at BIGINT,
    refresh_failures BIGINT NOT NULL DEFAULT 0,
    lease_holder TEXT COLLATE "C",
    leased_until BIGINT,
    account_id TEXT COLLATE "C",
    account_name TEXT COLLATE "C",
    tool_list TEXT COLLATE "C",
    revision BIGINT NOT NULL DEFAULT 0,
    removed_at BIGINT,
    missing_since BIGINT,
    UNIQUE (org_id, owner, slug)
);
CREATE INDEX providers_due ON providers (refresh_due_at) WHERE refresh_due_at IS NOT NULL;
CREATE INDEX providers_missing ON providers (missing_since) WHERE missing_since IS NOT NULL;

-- A connect that has begun and is not confirmed yet.
CREATE TABLE connect_attempts (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    provider_id TEXT COLLATE "C" NOT NULL,
    slug TEXT COLLATE "C" NOT NULL,
    owner TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    state_hash BYTEA NOT NULL UNIQUE,
    expires_at BIGINT NOT NULL,
    called_at BIGINT,
    confirm_hash BYTEA,
    tries BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX connect_attempts_by_principal ON connect_attempts (org_id, principal_id, slug, owner);
CREATE INDEX connect_attempts_by_expiry ON connect_attempts (expires_at);

-- What the gateway is called at an authorization server that it registered with by itself.
CREATE TABLE oauth_clients (
    issuer TEXT COLLATE "C" NOT NULL,
    redirect_uri TEXT COLLATE "C" NOT NULL,
    id TEXT COLLATE "C" NOT NULL,
    client_id TEXT COLLATE "C" NOT NULL,
    method TEXT COLLATE "C" NOT NULL,
    registered_at BIGINT NOT NULL,
    expires_at BIGINT,
    PRIMARY KEY (issuer, redirect_uri)
);

-- A secret that is kept, sealed by the vault for exactly this place.
CREATE TABLE secrets (
    org_id TEXT COLLATE "C" NOT NULL,
    kind TEXT COLLATE "C" NOT NULL,
    row_id TEXT COLLATE "C" NOT NULL,
    field TEXT COLLATE "C" NOT NULL,
    key_id TEXT COLLATE "C" NOT NULL,
    sealed BYTEA NOT NULL,
    PRIMARY KEY (org_id, kind, row_id, field)
);
CREATE INDEX secrets_by_key ON secrets (key_id, org_id, kind, row_id, field);

-- A list of tools that connections of an org have, once, by its digest.
CREATE TABLE capability_lists (
    org_id TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    definitions TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (org_id, digest)
);

-- A version of a tool, with the moment at which an org first saw it.
CREATE TABLE capability_versions (
    org_id TEXT COLLATE "C" NOT NULL,
    capability_id TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    seen_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, capability_id, version)
);

-- What was accepted of a tool, and what else its upstream says now. A row is never removed, so a pin outlives the
-- tool, its provider and the provider's next declaration.
CREATE TABLE capability_pins (
    org_id TEXT COLLATE "C" NOT NULL,
    capability_id TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C",
    definition TEXT COLLATE "C",
    pinned_at BIGINT,
    found_version TEXT COLLATE "C",
    found_definition TEXT COLLATE "C",
    found_at BIGINT,
    told_version TEXT COLLATE "C",
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, capability_id)
);
CREATE INDEX capability_pins_by_change ON capability_pins (changed_at);

-- How many tools a provider lists that are not remembered, because so many others are.
CREATE TABLE capability_surplus (
    org_id TEXT COLLATE "C" NOT NULL,
    provider TEXT COLLATE "C" NOT NULL,
    tools BIGINT NOT NULL,
    noted_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, provider)
);

-- Policies, approvals and calls ------------------------------------------------------------------------------

-- A version of a policy that was in force: what an event names can be read as long as the log is kept.
CREATE TABLE policy_versions (
    id TEXT COLLATE "C" NOT NULL,
    version TEXT COLLATE "C" NOT NULL,
    record TEXT COLLATE "C" NOT NULL,
    kept_at BIGINT NOT NULL,
    PRIMARY KEY (id, version)
);

-- The policies that were in force together.
CREATE TABLE policy_sets (
    version TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    members TEXT COLLATE "C" NOT NULL,
    files TEXT COLLATE "C" NOT NULL,
    kept_at BIGINT NOT NULL
);

-- A policy that admins switched off for their org until a moment. One of a `forbid` counts for the version that
-- was switched off.
CREATE TABLE policy_overrides (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    policy_id TEXT COLLATE "C" NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT COLLATE "C" NOT NULL,
    set_at BIGINT NOT NULL,
    until_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, policy_id)
);

-- A request that people approve a call. `state` is the approval as it was last changed; a use by a call writes
-- only `status`, `uses_left` and `revision`, and the columns hold. What lists are filtered by stands in columns:
-- the tool, those whose call it is and who may decide (`audience`), the size. The input, which may be large, has
-- its own.
CREATE TABLE approvals (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    id TEXT COLLATE "C" NOT NULL,
    digest TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    revision BIGINT NOT NULL,
    uses_left BIGINT NOT NULL CHECK (uses_left >= 0),
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    state TEXT NOT NULL,
    capability_id TEXT COLLATE "C" NOT NULL,
    audience TEXT NOT NULL,
    size BIGINT NOT NULL,
    input TEXT NOT NULL,
    PRIMARY KEY (org_id, id)
);
CREATE UNIQUE INDEX approvals_open ON approvals (org_id, digest) WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_by_call ON approvals (org_id, digest, id);
CREATE INDEX approvals_pending ON approvals (org_id, principal_id) WHERE status = 'pending';
CREATE INDEX approvals_open_by_expiry ON approvals (expires_at) WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_ended_by_expiry ON approvals (expires_at) WHERE status NOT IN ('pending', 'approved');

-- An idempotency key of the last 24 hours. Key and request are kept as digests only; the answer is sealed with a
-- key that is not in the database. Until the request has ended there is no answer.
CREATE TABLE idempotency_keys (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    digest TEXT COLLATE "C" NOT NULL,
    fingerprint TEXT COLLATE "C" NOT NULL,
    subject TEXT COLLATE "C" NOT NULL,
    request_id TEXT COLLATE "C" NOT NULL,
    expires_at BIGINT NOT NULL,
    sealed BYTEA,
    PRIMARY KEY (org_id, digest)
);
CREATE UNIQUE INDEX idempotency_keys_by_subject ON idempotency_keys (org_id, subject);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- A call that its provider goes on with, until it can no longer be asked about. Its input, the provider's id and the
-- answer that ended it are sealed with keys that are not in the database.
CREATE TABLE provider_tasks (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    event_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    ends_at BIGINT NOT NULL,
    sealed BYTEA NOT NULL,
    told TEXT COLLATE "C",
    ended BYTEA,
    PRIMARY KEY (org_id, event_id)
);
CREATE INDEX provider_tasks_by_principal ON provider_tasks (org_id, principal_id);
CREATE INDEX provider_tasks_by_end ON provider_tasks (ends_at);

-- The audit log ----------------------------------------------------------------------------------------------

-- A call that has begun and has no event yet. `packed` and `mac` are as in `audit_events`.
CREATE TABLE audit_intents (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    node TEXT COLLATE "C" NOT NULL,
    opened_at BIGINT NOT NULL,
    packed BYTEA,
    mac BYTEA
);

-- Events and their seals lie in one partition for each month. The key is the id of the event, which begins with the
-- moment it was made: so ids stay unique over all partitions without another column in the key, and an event is
-- looked up in one partition. Positions stay unique because one sequence gives them out; the sequences of a log
-- because only who moves its head inserts seals.

-- An event; insert-only. What is sealed of it is in `audit_seals`. `packed` holds the record, the erasable part and
-- its salts in one compressed frame. `payload_at` is the moment at which a payload was kept with the event, and empty
-- again when it was let go. `mac` is a code over a row that waits for its seal, by a key that is not in the database:
-- the sealer and recovery refuse rows without it.
CREATE TABLE audit_events (
    position BIGSERIAL,
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    type TEXT COLLATE "C" NOT NULL,
    occurred_at BIGINT NOT NULL,
    committed_at BIGINT NOT NULL,
    actor_id TEXT COLLATE "C",
    via TEXT COLLATE "C",
    token_id TEXT COLLATE "C",
    target TEXT COLLATE "C",
    decision TEXT COLLATE "C",
    policy TEXT COLLATE "C",
    dlp_result TEXT COLLATE "C",
    outcome TEXT COLLATE "C",
    request_id TEXT COLLATE "C",
    payload_at BIGINT,
    packed BYTEA,
    mac BYTEA
) PARTITION BY RANGE (id);
-- What is compressed already is not compressed again.
ALTER TABLE audit_events ALTER COLUMN packed SET STORAGE EXTERNAL;
CREATE INDEX audit_events_by_position ON audit_events (position);
CREATE INDEX audit_events_by_org ON audit_events (org_id, position);
CREATE INDEX audit_events_by_actor ON audit_events (org_id, actor_id, position) WHERE actor_id IS NOT NULL;
CREATE INDEX audit_events_by_via ON audit_events (org_id, via, position) WHERE via IS NOT NULL;
CREATE INDEX audit_events_by_request ON audit_events (org_id, request_id, position) WHERE request_id IS NOT NULL;
CREATE INDEX audit_events_with_payload ON audit_events (org_id, payload_at) WHERE payload_at IS NOT NULL;
-- What is rare in a log: events that are no calls, denied ones, those with a finding of DLP, and those without success.
CREATE INDEX audit_events_by_type ON audit_events (org_id, type, position) WHERE type <> 'mcp.invocation';
CREATE INDEX audit_events_by_decision ON audit_events (org_id, decision, position) WHERE decision <> 'allow';
CREATE INDEX audit_events_by_dlp_result ON audit_events (org_id, dlp_result, position)
    WHERE dlp_result NOT IN ('passed', 'skipped');
CREATE INDEX audit_events_by_outcome ON audit_events (org_id, outcome, position) WHERE outcome <> 'success';

-- The place that the sealer gave an event in the log of its org.
CREATE TABLE audit_seals (
    event_id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    sequence BIGINT NOT NULL,
    recorded_at BIGINT NOT NULL,
    leaf_hash BYTEA NOT NULL
) PARTITION BY RANGE (event_id);
CREATE INDEX audit_seals_by_sequence ON audit_seals (org_id, sequence);

-- The partitions of all ids whose month has none. Nobody has to do with a partition but through its table.
CREATE TABLE audit_events_other PARTITION OF audit_events DEFAULT;
CREATE TABLE audit_seals_other PARTITION OF audit_seals DEFAULT;
ALTER TABLE audit_events_other ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_events_other FORCE ROW LEVEL SECURITY;
ALTER TABLE audit_seals_other ENABLE ROW LEVEL SECURITY;
ALTER TABLE audit_seals_other FORCE ROW LEVEL SECURITY;

-- The smallest id that is made at this moment (UTC): 48 bits of milliseconds in ten letters.
CREATE FUNCTION audit_first_id(moment TIMESTAMP) RETURNS TEXT LANGUAGE sql IMMUTABLE STRICT AS $$
    SELECT 'evt_' || string_agg(
        substr('0123456789ABCDEFGHJKMNPQRSTVWXYZ', 1 + ((ms >> (5 * (9 - place))) & 31)::INT, 1),
        '' ORDER BY place
    ) || '0000000000000000'
    FROM (SELECT (extract(epoch FROM moment) * 1000)::BIGINT AS ms) AS at,
        generate_series(0, 9) AS place
$$;

-- Makes the partitions of the month that the moment lies in, unless they are there. Rows of the
-- month that came while they were not are taken along from the partition of all other ids. They are
-- made beside the log and then attached, which keeps nobody from writing.
CREATE FUNCTION audit_make_month(moment TIMESTAMP) RETURNS VOID LANGUAGE plpgsql AS $$
DECLARE
    month TIMESTAMP := date_trunc('month', moment);
    low TEXT := audit_first_id(month);
    high TEXT := audit_first_id(month + INTERVAL '1 month');
    log TEXT;
    part TEXT;
BEGIN
    IF to_regclass('audit_seals_' || to_char(month, 'YYYY_MM')) IS NOT NULL THEN
        RETURN;
    END IF;
    -- One at a time: two nodes may look at the same moment.
    PERFORM pg_advisory_xact_lock(5785245104);
    FOREACH log IN ARRAY ARRAY['audit_events', 'audit_seals'] LOOP
        part := log || '_' || to_char(month, 'YYYY_MM');
        CONTINUE WHEN to_regclass(part) IS NOT NULL;
        EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING ALL)', part, log);
        EXECUTE format(
            'WITH strays AS (DELETE FROM %1$I WHERE %2$I >= %3$L AND %2$I < %4$L RETURNING *) '
            'INSERT INTO %5$I SELECT * FROM strays',
            log, CASE log WHEN 'audit_events' THEN 'id' ELSE 'event_id' END, low, high, part
        );
        EXECUTE format(
            'ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', log, part, low, high
        );
        -- Nobody has to do with a partition but through the table that it is of.
        EXECUTE format('ALTER TABLE %I ENABLE ROW LEVEL SECURITY', part);
        EXECUTE format('ALTER TABLE %I FORCE ROW LEVEL SECURITY', part);
    END LOOP;
END
$$;
-- The end of an org's log; `tree_size` is how many leaves are in the stored tree: as many as `size`.
CREATE TABLE audit_heads (
    org_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size BIGINT NOT NULL,
    last_position BIGINT NOT NULL,
    last_recorded_at BIGINT NOT NULL,
    tree_size BIGINT NOT NULL DEFAULT 0
);

-- Up to 256 hashes of the Merkle tree of an org's log. Depends on no event: it stays when old events are removed,
-- so that the proofs of younger ones hold.
CREATE TABLE audit_tiles (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    level BIGINT NOT NULL,
    tile BIGINT NOT NULL,
    hashes BYTEA NOT NULL,
    PRIMARY KEY (org_id, level, tile)
);

-- The latest signed tree of an org (kind `signed`), or the latest that a witness signed too (kind `witnessed`).
CREATE TABLE audit_checkpoints (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    kind TEXT COLLATE "C" NOT NULL,
    size BIGINT NOT NULL,
    root BYTEA NOT NULL,
    note TEXT COLLATE "C" NOT NULL,
    signed_at BIGINT NOT NULL,
    PRIMARY KEY (org_id, kind)
);

-- How many events were removed from the beginning of an org's log.
CREATE TABLE audit_pruned (
    org_id TEXT COLLATE "C" NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size BIGINT NOT NULL
);

-- What may be neither erased nor pruned: all events of the org that match every part given.
CREATE TABLE audit_holds (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    reason TEXT COLLATE "C" NOT NULL,
    actor_id TEXT COLLATE "C",
    from_at BIGINT,
    to_at BIGINT,
    created_at BIGINT NOT NULL,
    released_at BIGINT
);
CREATE INDEX audit_holds_in_force ON audit_holds (org_id) WHERE released_at IS NULL;

-- How many sealed events of a kind a minute has (since the epoch, of the moment of their commit); the sealer adds
-- to it when it gives events their places. Kinds: 1 allowed, 2 denied, 3 asked, 4 undecided; 5 flagged, 6 redacted,
-- 7 blocked; 8 failed; from 20 on, allowed calls by the time that they took. Old minutes are merged into the first
-- minute of their hour, old hours into that of their day.
CREATE TABLE audit_counts (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    minute BIGINT NOT NULL,
    kind BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (org_id, minute, kind)
);

-- How many calls of a tool policies decided in an hour (as the minute in `audit_counts`, and added to likewise).
-- Hours are kept for two days.
CREATE TABLE audit_capability_counts (
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    tool TEXT COLLATE "C" NOT NULL,
    hour BIGINT NOT NULL,
    number BIGINT NOT NULL,
    PRIMARY KEY (org_id, tool, hour)
);

-- An export that was asked for. The file, of so many bytes, lies in the export folder of the node, named after the
-- id; orgs have a quota of bytes.
CREATE TABLE exports (
    id TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    org_id TEXT COLLATE "C" NOT NULL,
    principal_id TEXT COLLATE "C" NOT NULL,
    node TEXT COLLATE "C" NOT NULL,
    status TEXT COLLATE "C" NOT NULL,
    request TEXT COLLATE "C" NOT NULL,
    result TEXT COLLATE "C",
    error TEXT COLLATE "C",
    scanned BIGINT NOT NULL,
    total BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    beat_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    bytes BIGINT NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
);
CREATE INDEX exports_pending ON exports (org_id) WHERE status = 'pending';
CREATE INDEX exports_by_expiry ON exports (expires_at);

-- How far a sink has come in a log: the sequence it goes on with.
CREATE TABLE sink_cursors (
    sink TEXT COLLATE "C" NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL REFERENCES orgs (id),
    next_sequence BIGINT NOT NULL,
    PRIMARY KEY (sink, org_id)
);

-- The one node that feeds a sink at a time.
CREATE TABLE sink_leases (
    sink TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    node TEXT COLLATE "C" NOT NULL,
    ends_at BIGINT NOT NULL
);

-- Nodes ------------------------------------------------------------------------------------------------------

-- One row, written to find out whether writing works.
CREATE TABLE probes (
    id BIGINT PRIMARY KEY,
    probed_at BIGINT NOT NULL
);

-- A process that serves from this database. Each holds its name for seconds at a time and says so again; the lease
-- tells one process from the next of the same name, the place tells that both have the same data folder, which one
-- process at a time serves from. Times are the database's.
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
CREATE TRIGGER capability_pins_push AFTER INSERT OR UPDATE ON capability_pins
    FOR EACH ROW EXECUTE FUNCTION portcullis_push('pins', 'org_id');

-- In which transaction something changed that decides about the callers of an org: nodes look it up again. What is
-- written at every use, such as when a token was last seen, is no change. A row for each transaction and org, so
-- that no two transactions wait for each other; rows are removed after an hour.
CREATE TABLE access_changes (
    changed_in BIGINT NOT NULL,
    org_id TEXT COLLATE "C" NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (changed_in, org_id)
);
CREATE INDEX access_changes_by_age ON access_changes (changed_at);

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

-- The wall between orgs --------------------------------------------------------------------------------------

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
SELECT portcullis_wall(c.oid, 'org_id')
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'org_id'
WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition;
