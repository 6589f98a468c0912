-- One row for each idempotency key of the last 24 hours. Key and request are kept as digests only;
-- the answer is sealed with a key that is not in the database. Until the request has ended there
-- is no answer.
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
