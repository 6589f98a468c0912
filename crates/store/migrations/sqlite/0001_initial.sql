-- Moments are microseconds since 1970 in UTC, lists and records are JSON, and an empty `org_id` is the
-- installation. SQLite has neither row-level security nor partitions: the statements themselves are the only
-- wall between orgs, and each table is one tree.

-- Orgs and who may come in -----------------------------------------------------------------------------------

-- A tenant.
CREATE TABLE orgs (
    id TEXT NOT NULL PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    plan TEXT NOT NULL,
    plan_requests INTEGER,
    plan_invocations INTEGER,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER
) STRICT;

-- What an org used of its plan on a day (UTC, in days since the epoch), as its nodes counted it: for its admins
-- to see. Limits are not decided by it.
CREATE TABLE org_usage (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    day INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    invocations INTEGER NOT NULL,
    PRIMARY KEY (org_id, day)
) STRICT;

-- A user or service account. `groups` are those that the operator put it into, besides those that logins name;
-- `provisioned_groups` are the names of its groups over SCIM, kept in step with `scim_members` by those who
-- change these.
CREATE TABLE principals (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    name TEXT NOT NULL,
    role TEXT NOT NULL,
    scopes TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    groups TEXT NOT NULL DEFAULT '[]',
    provisioned_groups TEXT NOT NULL DEFAULT '[]',
    UNIQUE (org_id, name),
    UNIQUE (org_id, id)
) STRICT;

-- A public key by which a service account proves itself at the token endpoint (RFC 7523). The thumbprint
-- (RFC 7638) names it; a token that it bought has it in `tokens.trust`.
CREATE TABLE principal_keys (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    principal_id TEXT NOT NULL,
    thumbprint TEXT NOT NULL,
    jwk TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, principal_id, thumbprint),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX principal_keys_by_principal ON principal_keys (principal_id);

-- The principal that a trusted issuer's subject is here. A person whom a provider keeps over SCIM is joined only
-- while it has no identity at all.
CREATE TABLE identities (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    issuer TEXT NOT NULL,
    claim TEXT NOT NULL,
    subject TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, issuer, claim, subject),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX identities_by_principal ON identities (org_id, principal_id);

-- A person whom an identity provider keeps over SCIM. A deleted one stays, so that the same person gets the same
-- principal again. In the keys, ASCII letters are in lower case. `deactivated_at` is the moment at which the
-- provider ended the access, `pushed_by` the service account that pushed the person: a trust rule can take only
-- the people of one, and no other one changes them then.
CREATE TABLE scim_users (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    principal_id TEXT NOT NULL,
    user_key TEXT NOT NULL,
    external_id TEXT,
    display_key TEXT,
    attributes TEXT NOT NULL,
    scim_created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    deactivated_at INTEGER,
    deleted_at INTEGER,
    revision INTEGER NOT NULL,
    pushed_by TEXT NOT NULL,
    PRIMARY KEY (org_id, principal_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX scim_users_live_name ON scim_users (org_id, user_key) WHERE deleted_at IS NULL;
CREATE UNIQUE INDEX scim_users_live_id ON scim_users (org_id, external_id)
    WHERE deleted_at IS NULL AND external_id IS NOT NULL;
CREATE INDEX scim_users_by_name ON scim_users (org_id, user_key);
CREATE INDEX scim_users_by_external_id ON scim_users (org_id, external_id);
CREATE INDEX scim_users_by_display ON scim_users (org_id, display_key);

-- A group that an identity provider keeps over SCIM; its columns are as those of `scim_users`.
CREATE TABLE scim_groups (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    display_name TEXT NOT NULL,
    display_key TEXT NOT NULL,
    external_id TEXT,
    created_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    pushed_by TEXT NOT NULL,
    PRIMARY KEY (org_id, id)
) STRICT;
CREATE UNIQUE INDEX scim_groups_by_display ON scim_groups (org_id, display_key);
CREATE UNIQUE INDEX scim_groups_by_external_id ON scim_groups (org_id, external_id);

-- A person in a group.
CREATE TABLE scim_members (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    group_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    PRIMARY KEY (org_id, group_id, principal_id),
    FOREIGN KEY (org_id, group_id) REFERENCES scim_groups (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES scim_users (org_id, principal_id)
) STRICT;
CREATE INDEX scim_members_by_principal ON scim_members (org_id, principal_id, group_id);

-- One text of a record as it is searched: its rest from a word on, in lower case, so that one range of the key
-- has all that begin as asked. `source` says which text: name and scim of principals, token, consent.
CREATE TABLE search_words (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    source TEXT NOT NULL,
    word TEXT NOT NULL,
    id TEXT NOT NULL,
    PRIMARY KEY (org_id, source, word, id)
) STRICT;
CREATE INDEX search_words_by_id ON search_words (id, source, org_id);

-- Tokens and logins ------------------------------------------------------------------------------------------

-- A token, by its digest. `lineage` is what it relies on besides itself: the rules that admitted anybody in its
-- chain, everybody who acts, and who has to be let act. `dpop_jkt` is the
-- thumbprint (RFC 7638) of the key that it is bound to (DPoP, RFC 9449); without one, whoever bears it may use it.
CREATE TABLE tokens (
    id TEXT NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    hash BLOB NOT NULL UNIQUE,
    org_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    via TEXT,
    grant_id TEXT NOT NULL,
    parent_id TEXT,
    scopes TEXT NOT NULL,
    label TEXT,
    method TEXT NOT NULL,
    trust TEXT,
    issued_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    revoked_at INTEGER,
    last_used_at INTEGER,
    allowed_cidrs TEXT,
    exchange_only INTEGER NOT NULL DEFAULT 0,
    via_token_id TEXT REFERENCES tokens (id),
    lineage TEXT NOT NULL,
    dpop_jkt TEXT,
    UNIQUE (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, via) REFERENCES principals (org_id, id),
    FOREIGN KEY (org_id, parent_id) REFERENCES tokens (org_id, id)
) STRICT;
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
    token_id TEXT NOT NULL PRIMARY KEY REFERENCES tokens (id),
    org_id TEXT NOT NULL REFERENCES orgs (id),
    grant_id TEXT NOT NULL,
    grant_ends_at INTEGER NOT NULL,
    access_seconds INTEGER NOT NULL,
    spent_at INTEGER,
    next_access_id TEXT,
    next_refresh_id TEXT,
    sealed BLOB
) STRICT;
CREATE UNIQUE INDEX refreshes_unspent ON refreshes (org_id, grant_id) WHERE spent_at IS NULL;
CREATE INDEX refreshes_by_next ON refreshes (next_refresh_id) WHERE next_refresh_id IS NOT NULL;
CREATE INDEX refreshes_sealed ON refreshes (spent_at) WHERE sealed IS NOT NULL;

-- A JWT that may be exchanged once and was; kept until it expires.
CREATE TABLE used_assertions (
    digest BLOB NOT NULL PRIMARY KEY,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX used_assertions_by_expiry ON used_assertions (expires_at);

-- What an issuer said of somebody at a login, as policies see it: for the tokens of the grant that came of it.
-- Tokens made from these have a copy, with the moment of the login.
CREATE TABLE logins (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    grant_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    said TEXT NOT NULL,
    said_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, grant_id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX logins_by_principal ON logins (org_id, principal_id, said_at);

-- A login of a person in a browser. Of the secret in the cookie only the SHA-256 is kept. `said` is what the
-- issuer said at the login, as in `logins`; a login by a link of the operator has none.
CREATE TABLE browser_sessions (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    hash BLOB NOT NULL,
    method TEXT NOT NULL,
    trust TEXT,
    issuer TEXT,
    said TEXT,
    acr TEXT,
    amr TEXT NOT NULL,
    auth_time INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL,
    ended_at INTEGER,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX browser_sessions_by_hash ON browser_sessions (hash);
CREATE INDEX browser_sessions_by_principal ON browser_sessions (org_id, principal_id, id);
CREATE INDEX browser_sessions_by_end ON browser_sessions (ends_at);

-- An address that logs a person in once. The row is deleted when it is used.
CREATE TABLE login_links (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    hash BLOB NOT NULL,
    principal_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, hash),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX login_links_by_hash ON login_links (hash);
CREATE INDEX login_links_by_expiry ON login_links (expires_at);
CREATE INDEX login_links_by_principal ON login_links (org_id, principal_id);

-- The consent of a person to what an OAuth client asked for: one for each person, client and face. `client` is
-- the client as JSON. The metadata document of a client that somebody consented to is kept and fetched apart from
-- those of others.
CREATE TABLE consents (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    face TEXT NOT NULL,
    client TEXT NOT NULL,
    scopes TEXT NOT NULL,
    returns_to TEXT NOT NULL,
    remembered INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    renewed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, id),
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE UNIQUE INDEX consents_of_client ON consents (org_id, principal_id, client_id, face);
CREATE INDEX consents_by_client ON consents (client_id);

-- An authorization code, by its SHA-256. `asked` holds as JSON what the token request is checked against and what
-- its tokens are made of.
CREATE TABLE authorization_codes (
    hash BLOB NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    principal_id TEXT NOT NULL,
    grant_id TEXT NOT NULL,
    asked TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    spent_at INTEGER,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX authorization_codes_by_expiry ON authorization_codes (expires_at);
CREATE INDEX authorization_codes_by_principal ON authorization_codes (org_id, principal_id);

-- What a client was granted, for the tokens of the grant that came of it. Tokens made from these have a copy.
CREATE TABLE client_grants (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    grant_id TEXT NOT NULL,
    consent_id TEXT,
    granted TEXT NOT NULL,
    PRIMARY KEY (org_id, grant_id)
) STRICT;
CREATE INDEX client_grants_by_consent ON client_grants (org_id, consent_id);

-- Connections and tools --------------------------------------------------------------------------------------

-- A connection to a provider: what its credentials are for and how they fare; the credentials are in `secrets`.
-- `revision` grows with each new credential: whoever holds an older one asks again. `missing_since` is the moment
-- since which no configuration has had the provider: the credentials are forgotten after a while.
CREATE TABLE providers (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    owner TEXT NOT NULL,
    slug TEXT NOT NULL,
    name TEXT NOT NULL,
    auth_type TEXT NOT NULL,
    status TEXT NOT NULL,
    last_error TEXT,
    tools INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    connected_at INTEGER,
    updated_at INTEGER NOT NULL,
    audience TEXT,
    scopes TEXT NOT NULL DEFAULT '',
    expires_at INTEGER,
    refreshable INTEGER NOT NULL DEFAULT 0,
    refreshed_at INTEGER,
    refresh_due_at INTEGER,
    refresh_failures INTEGER NOT NULL DEFAULT 0,
    lease_holder TEXT,
    leased_until INTEGER,
    account_id TEXT,
    account_name TEXT,
    tool_list TEXT,
    revision INTEGER NOT NULL DEFAULT 0,
    removed_at INTEGER,
    missing_since INTEGER,
    UNIQUE (org_id, owner, slug)
) STRICT;
CREATE INDEX providers_due ON providers (refresh_due_at) WHERE refresh_due_at IS NOT NULL;
CREATE INDEX providers_missing ON providers (missing_since) WHERE missing_since IS NOT NULL;

-- A connect that has begun and is not confirmed yet.
CREATE TABLE connect_attempts (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    provider_id TEXT NOT NULL,
    slug TEXT NOT NULL,
    owner TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    state_hash BLOB NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL,
    called_at INTEGER,
    confirm_hash BLOB,
    tries INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX connect_attempts_by_principal ON connect_attempts (org_id, principal_id, slug, owner);
CREATE INDEX connect_attempts_by_expiry ON connect_attempts (expires_at);

-- What the gateway is called at an authorization server that it registered with by itself.
CREATE TABLE oauth_clients (
    issuer TEXT NOT NULL,
    redirect_uri TEXT NOT NULL,
    id TEXT NOT NULL,
    client_id TEXT NOT NULL,
    method TEXT NOT NULL,
    registered_at INTEGER NOT NULL,
    expires_at INTEGER,
    PRIMARY KEY (issuer, redirect_uri)
) STRICT;

-- A secret that is kept, sealed by the vault for exactly this place.
CREATE TABLE secrets (
    org_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    row_id TEXT NOT NULL,
    field TEXT NOT NULL,
    key_id TEXT NOT NULL,
    sealed BLOB NOT NULL,
    PRIMARY KEY (org_id, kind, row_id, field)
) STRICT;
CREATE INDEX secrets_by_key ON secrets (key_id, org_id, kind, row_id, field);

-- A list of tools that connections of an org have, once, by its digest.
CREATE TABLE capability_lists (
    org_id TEXT NOT NULL,
    digest TEXT NOT NULL,
    definitions TEXT NOT NULL,
    PRIMARY KEY (org_id, digest)
) STRICT;

-- A version of a tool, with the moment at which an org first saw it.
CREATE TABLE capability_versions (
    org_id TEXT NOT NULL,
    capability_id TEXT NOT NULL,
    version TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, capability_id, version)
) STRICT;

-- What was accepted of a tool, and what else its upstream says now. A row is never removed, so a pin outlives the
-- tool, its provider and the provider's next declaration.
CREATE TABLE capability_pins (
    org_id TEXT NOT NULL,
    capability_id TEXT NOT NULL,
    version TEXT,
    definition TEXT,
    pinned_at INTEGER,
    found_version TEXT,
    found_definition TEXT,
    found_at INTEGER,
    told_version TEXT,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, capability_id)
) STRICT;
CREATE INDEX capability_pins_by_change ON capability_pins (changed_at);

-- How many tools a provider lists that are not remembered, because so many others are.
CREATE TABLE capability_surplus (
    org_id TEXT NOT NULL,
    provider TEXT NOT NULL,
    tools INTEGER NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, provider)
) STRICT;

-- Policies, approvals and calls ------------------------------------------------------------------------------

-- A version of a policy that was in force: what an event names can be read as long as the log is kept.
CREATE TABLE policy_versions (
    id TEXT NOT NULL,
    version TEXT NOT NULL,
    record TEXT NOT NULL,
    kept_at INTEGER NOT NULL,
    PRIMARY KEY (id, version)
) STRICT;

-- The policies that were in force together.
CREATE TABLE policy_sets (
    version TEXT NOT NULL PRIMARY KEY,
    members TEXT NOT NULL,
    files TEXT NOT NULL,
    kept_at INTEGER NOT NULL
) STRICT;

-- A policy that admins switched off for their org until a moment. One of a `forbid` counts for the version that
-- was switched off.
CREATE TABLE policy_overrides (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    policy_id TEXT NOT NULL,
    version TEXT NOT NULL,
    reason TEXT NOT NULL,
    set_by TEXT NOT NULL,
    set_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, policy_id)
) STRICT;

-- A request that people approve a call. `state` is the approval as it was last changed; a use by a call writes
-- only `status`, `uses_left` and `revision`, and the columns hold. What lists are filtered by stands in columns
-- before what they show, so that a row that is passed over costs little to read: the tool, those whose call it is
-- and who may decide (`audience`), the size. The input, which may be large, has its own column behind them.
CREATE TABLE approvals (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    id TEXT NOT NULL,
    digest TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    status TEXT NOT NULL,
    revision INTEGER NOT NULL,
    uses_left INTEGER NOT NULL CHECK (uses_left >= 0),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    state TEXT NOT NULL,
    capability_id TEXT NOT NULL,
    audience TEXT NOT NULL,
    size INTEGER NOT NULL,
    input TEXT NOT NULL,
    PRIMARY KEY (org_id, id)
) STRICT;
CREATE UNIQUE INDEX approvals_open ON approvals (org_id, digest) WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_by_call ON approvals (org_id, digest, id);
CREATE INDEX approvals_pending ON approvals (org_id, principal_id) WHERE status = 'pending';
CREATE INDEX approvals_open_by_expiry ON approvals (expires_at) WHERE status IN ('pending', 'approved');
CREATE INDEX approvals_ended_by_expiry ON approvals (expires_at) WHERE status NOT IN ('pending', 'approved');

-- An idempotency key of the last 24 hours. Key and request are kept as digests only; the answer is sealed with a
-- key that is not in the database. Until the request has ended there is no answer.
CREATE TABLE idempotency_keys (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    digest TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    subject TEXT NOT NULL,
    request_id TEXT NOT NULL,
    expires_at INTEGER NOT NULL,
    sealed BLOB,
    PRIMARY KEY (org_id, digest)
) STRICT;
CREATE UNIQUE INDEX idempotency_keys_by_subject ON idempotency_keys (org_id, subject);
CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);

-- A call that its provider goes on with, until it can no longer be asked about. Its input, the provider's id and the
-- answer that ended it are sealed with keys that are not in the database.
CREATE TABLE provider_tasks (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    event_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    ends_at INTEGER NOT NULL,
    sealed BLOB NOT NULL,
    told TEXT,
    ended BLOB,
    PRIMARY KEY (org_id, event_id)
) STRICT;
CREATE INDEX provider_tasks_by_principal ON provider_tasks (org_id, principal_id);
CREATE INDEX provider_tasks_by_end ON provider_tasks (ends_at);

-- The audit log ----------------------------------------------------------------------------------------------

-- A call that has begun and has no event yet. The writer remembers where it put each, so none of them needs an
-- entry in an index. `packed` and `mac` are as in `audit_events`.
CREATE TABLE audit_intents (
    place INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    node TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    packed BLOB,
    mac BLOB
) STRICT;

-- An event; insert-only. What is sealed of it is in `audit_seals`, under the same position. Positions count on
-- from the last row, or from `audit_floor`. `packed` holds the record, the erasable part and its salts in one
-- compressed frame. `payload_at` is the moment at which a payload was kept with the event, and empty again when it
-- was let go. `mac` is a code over a row that waits for its seal, by a key that is not in the database: the sealer
-- and recovery refuse rows without it. Committing an event writes to no tree but this one: what it is found by is in
-- `audit_index`.
CREATE TABLE audit_events (
    position INTEGER PRIMARY KEY,
    id TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    type TEXT NOT NULL,
    occurred_at INTEGER NOT NULL,
    committed_at INTEGER NOT NULL,
    actor_id TEXT,
    via TEXT,
    token_id TEXT,
    target TEXT,
    decision TEXT,
    policy TEXT,
    dlp_result TEXT,
    outcome TEXT,
    request_id TEXT,
    payload_at INTEGER,
    packed BLOB,
    mac BLOB
) STRICT;

-- The place that the sealer gave an event in the log of its org.
CREATE TABLE audit_seals (
    position INTEGER PRIMARY KEY REFERENCES audit_events (position),
    org_id TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    leaf_hash BLOB NOT NULL,
    UNIQUE (org_id, sequence)
) STRICT;

-- What an event is found by, written by the sealer. Kinds: 1 the actor, 2 on whose behalf, 3 the request, 4 the id,
-- 5 the payload by org and moment, 6 the org of an event that has waited long for its seal; and what is rare, each
-- below its org: 7 events that are no calls by their type, 8 denied ones, 9 those with a finding of DLP by its
-- result, 10 those without success by their outcome. An entry goes with its event, or with its payload.
CREATE TABLE audit_index (
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    position INTEGER NOT NULL,
    PRIMARY KEY (kind, name, position)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER audit_events_gone AFTER DELETE ON audit_events BEGIN
    DELETE FROM audit_index WHERE kind = 1 AND name = OLD.actor_id AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 2 AND name = OLD.via AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 3 AND name = OLD.request_id AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 4 AND name = OLD.id AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 5 AND name = OLD.org_id || printf(' %016d', OLD.payload_at)
        AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 6 AND name = OLD.org_id AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 7 AND name = OLD.org_id || ' ' || OLD.type AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 8 AND name = OLD.org_id || ' ' || OLD.decision
        AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 9 AND name = OLD.org_id || ' ' || OLD.dlp_result
        AND position = OLD.position;
    DELETE FROM audit_index WHERE kind = 10 AND name = OLD.org_id || ' ' || OLD.outcome
        AND position = OLD.position;
END;
CREATE TRIGGER audit_payloads_gone AFTER UPDATE OF payload_at ON audit_events
WHEN NEW.payload_at IS NOT OLD.payload_at
BEGIN
    DELETE FROM audit_index WHERE kind = 5 AND name = OLD.org_id || printf(' %016d', OLD.payload_at)
        AND position = OLD.position;
END;

-- One row: the highest position that was removed, and the position up to which every event has its seal, or has
-- waited so long that `audit_index` names it (kind 6).
CREATE TABLE audit_floor (
    position INTEGER NOT NULL,
    sealed INTEGER NOT NULL DEFAULT 0
) STRICT;
INSERT INTO audit_floor (position, sealed) VALUES (0, 0);

-- The end of an org's log; `tree_size` is how many leaves are in the stored tree: as many as `size`.
CREATE TABLE audit_heads (
    org_id TEXT NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size INTEGER NOT NULL,
    last_position INTEGER NOT NULL,
    last_recorded_at INTEGER NOT NULL,
    tree_size INTEGER NOT NULL DEFAULT 0
) STRICT;

-- Up to 256 hashes of the Merkle tree of an org's log. Depends on no event: it stays when old events are removed,
-- so that the proofs of younger ones hold.
CREATE TABLE audit_tiles (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    level INTEGER NOT NULL,
    tile INTEGER NOT NULL,
    hashes BLOB NOT NULL,
    PRIMARY KEY (org_id, level, tile)
) STRICT;

-- The latest signed tree of an org (kind `signed`), or the latest that a witness signed too (kind `witnessed`).
CREATE TABLE audit_checkpoints (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    kind TEXT NOT NULL,
    size INTEGER NOT NULL,
    root BLOB NOT NULL,
    note TEXT NOT NULL,
    signed_at INTEGER NOT NULL,
    PRIMARY KEY (org_id, kind)
) STRICT;

-- How many events were removed from the beginning of an org's log.
CREATE TABLE audit_pruned (
    org_id TEXT NOT NULL PRIMARY KEY REFERENCES orgs (id),
    size INTEGER NOT NULL
) STRICT;

-- What may be neither erased nor pruned: all events of the org that match every part given.
CREATE TABLE audit_holds (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    reason TEXT NOT NULL,
    actor_id TEXT,
    from_at INTEGER,
    to_at INTEGER,
    created_at INTEGER NOT NULL,
    released_at INTEGER
) STRICT;
CREATE INDEX audit_holds_in_force ON audit_holds (org_id) WHERE released_at IS NULL;

-- How many sealed events of a kind a minute has (since the epoch, of the moment of their commit); the sealer adds
-- to it when it gives events their places. Kinds: 1 allowed, 2 denied, 3 asked, 4 undecided; 5 flagged, 6 redacted,
-- 7 blocked; 8 failed; from 20 on, allowed calls by the time that they took. Old minutes are merged into the first
-- minute of their hour, old hours into that of their day.
CREATE TABLE audit_counts (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    minute INTEGER NOT NULL,
    kind INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (org_id, minute, kind)
) STRICT;

-- How many calls of a tool policies decided in an hour (as the minute in `audit_counts`, and added to likewise).
-- Hours are kept for two days.
CREATE TABLE audit_capability_counts (
    org_id TEXT NOT NULL REFERENCES orgs (id),
    tool TEXT NOT NULL,
    hour INTEGER NOT NULL,
    number INTEGER NOT NULL,
    PRIMARY KEY (org_id, tool, hour)
) STRICT;

-- An export that was asked for. The file, of so many bytes, lies in the export folder of the node, named after the
-- id; orgs have a quota of bytes.
CREATE TABLE exports (
    id TEXT NOT NULL PRIMARY KEY,
    org_id TEXT NOT NULL,
    principal_id TEXT NOT NULL,
    node TEXT NOT NULL,
    status TEXT NOT NULL,
    request TEXT NOT NULL,
    result TEXT,
    error TEXT,
    scanned INTEGER NOT NULL,
    total INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    beat_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL,
    bytes INTEGER NOT NULL DEFAULT 0,
    FOREIGN KEY (org_id, principal_id) REFERENCES principals (org_id, id)
) STRICT;
CREATE INDEX exports_pending ON exports (org_id) WHERE status = 'pending';
CREATE INDEX exports_by_expiry ON exports (expires_at);

-- How far a sink has come in a log: the sequence it goes on with.
CREATE TABLE sink_cursors (
    sink TEXT NOT NULL,
    org_id TEXT NOT NULL REFERENCES orgs (id),
    next_sequence INTEGER NOT NULL,
    PRIMARY KEY (sink, org_id)
) STRICT;

-- The one node that feeds a sink at a time.
CREATE TABLE sink_leases (
    sink TEXT NOT NULL PRIMARY KEY,
    node TEXT NOT NULL,
    ends_at INTEGER NOT NULL
) STRICT;

-- Nodes ------------------------------------------------------------------------------------------------------

-- One row, written to find out whether writing works.
CREATE TABLE probes (
    id INTEGER PRIMARY KEY,
    probed_at INTEGER NOT NULL
) STRICT;

-- A process that serves from a database that several nodes share. An SQLite file has one: it stays empty here.
CREATE TABLE nodes (
    name TEXT NOT NULL PRIMARY KEY,
    lease TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL,
    counts_alone INTEGER NOT NULL,
    policy_set TEXT,
    started_at INTEGER NOT NULL,
    ends_at INTEGER NOT NULL
) STRICT;

-- In which order something last changed that decides about the callers of an org: nodes look it up again. What is
-- written at every use, such as when a token was last seen, is no change.
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
