-- Whether anybody consented to a client, whose metadata document is then kept and fetched apart from those of others.
CREATE INDEX consents_by_client ON consents (client_id);
