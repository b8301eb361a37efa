-- The API key that owns an idempotent answer, a request record or an episode. A later key of the same name does not own it. Rows of
-- earlier versions have none: until they expire, any key of the account may use them.

ALTER TABLE answers ADD COLUMN key_id TEXT;
ALTER TABLE stories ADD COLUMN key_id TEXT;
ALTER TABLE episodes ADD COLUMN key_id TEXT;
