-- The thumbprint (RFC 7638) of the key that a token is bound to (DPoP, RFC 9449); NULL for tokens that
-- whoever bears them may use.
ALTER TABLE tokens ADD COLUMN dpop_jkt TEXT;
