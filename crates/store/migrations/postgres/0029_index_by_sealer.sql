-- Only SQLite writes pages whole: there, events are indexed when they are sealed. Here an entry of an
-- index costs its own bytes whenever it is written.
SELECT 1;
