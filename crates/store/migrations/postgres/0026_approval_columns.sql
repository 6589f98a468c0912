-- What lists of approvals are filtered by stands in columns: the tool, those whose call it is and who
-- may decide, the size. The input, which may be large, has its own. Rows of before keep their input in
-- `state`, and are read whole, until they change or are forgotten.
ALTER TABLE approvals ADD COLUMN tool_id TEXT COLLATE "C";
ALTER TABLE approvals ADD COLUMN audience TEXT;
ALTER TABLE approvals ADD COLUMN size BIGINT NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN input TEXT;
UPDATE approvals SET size = octet_length(state);
