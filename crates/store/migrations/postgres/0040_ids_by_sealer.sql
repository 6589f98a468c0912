-- Only SQLite writes pages whole: there, ids are indexed when events are sealed.
SELECT 1;
