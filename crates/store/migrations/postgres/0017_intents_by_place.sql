-- About SQLite only: here intents are removed many at a time, by their ids.
SELECT 1;
