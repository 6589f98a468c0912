-- Only SQLite writes pages whole: there, orgs and payloads are indexed when events are sealed.
SELECT 1;
