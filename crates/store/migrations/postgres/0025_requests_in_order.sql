-- Only SQLite changes its index of requests: here a new index over a large log would hold up
-- whoever writes to it.
SELECT 1;
