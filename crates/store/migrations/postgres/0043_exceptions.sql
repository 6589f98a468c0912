-- What is rare in a log is found by indexes that have entries of it alone: events that are no calls, denied ones,
-- those with a finding of DLP, and those without success.
CREATE INDEX audit_events_by_type ON audit_events (org_id, type, position) WHERE type <> 'mcp.invocation';
CREATE INDEX audit_events_by_decision ON audit_events (org_id, decision, position) WHERE decision <> 'allow';
CREATE INDEX audit_events_by_dlp_result ON audit_events (org_id, dlp_result, position)
    WHERE dlp_result NOT IN ('passed', 'skipped');
CREATE INDEX audit_events_by_outcome ON audit_events (org_id, outcome, position) WHERE outcome <> 'success';
