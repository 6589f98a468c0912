-- One row for each idempotency key of the last 24 hours. Key and request are kept as digests only;
-- the answer is sealed with a key that is not in the database. Until the request has ended there
-- is no answer.
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
