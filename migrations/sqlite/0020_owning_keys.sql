-- The key whose own a response or a conversation is: a later key of the same name does not have it. Rows of earlier versions have
-- none; until they are too old, they belong to whoever has the account.

ALTER TABLE responses ADD COLUMN key_id TEXT;
ALTER TABLE conversations ADD COLUMN key_id TEXT;
