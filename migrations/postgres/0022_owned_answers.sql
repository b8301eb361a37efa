-- The key whose own an idempotent answer, a request record or an episode is: a later key of the same name does not have it. Rows of
-- earlier versions have none; until they are too old, they belong to whoever has the account.

ALTER TABLE answers ADD COLUMN key_id TEXT;
ALTER TABLE stories ADD COLUMN key_id TEXT;
ALTER TABLE episodes ADD COLUMN key_id TEXT;
