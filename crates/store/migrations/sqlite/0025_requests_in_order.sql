-- Requests are numbered in the order of time, those of all orgs together: with the request in front,
-- a commit adds its entries to one page of the index, and not to a page for each org in it.
DROP INDEX audit_events_by_request;
CREATE INDEX audit_events_by_request ON audit_events (request_id, org_id, position)
    WHERE request_id IS NOT NULL;
