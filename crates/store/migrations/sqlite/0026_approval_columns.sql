-- What lists of approvals are filtered by stands in columns before what they show, so that a row that
-- is passed over costs little to read: the tool, those whose call it is and who may decide, the size.
-- The input, which may be large, has its own column behind them. A state that is no JSON stays as it
-- is: it cannot be read before or after.
ALTER TABLE approvals ADD COLUMN tool_id TEXT;
ALTER TABLE approvals ADD COLUMN audience TEXT;
ALTER TABLE approvals ADD COLUMN size INTEGER NOT NULL DEFAULT 0;
ALTER TABLE approvals ADD COLUMN input TEXT;
UPDATE approvals SET
    tool_id = json_extract(state, '$.tool.id'),
    audience = json_object(
        'actors', json_extract(state, '$.requester.actors'),
        'approvers', json_extract(state, '$.terms.approvers')
    ),
    size = length(CAST(state AS BLOB)),
    input = state -> '$.input',
    state = json_remove(state, '$.input')
WHERE json_valid(state);
