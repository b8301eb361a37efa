-- How fast a request takes money at most, as it was known at its dispatch: what it is charged if nobody settles it.
-- In nano-dollars and thinking tokens for a second; `rate_read` is what reading the prompt costs. Absent in older rows.
ALTER TABLE reservations ADD COLUMN rate_read     BIGINT CHECK (rate_read >= 0);
ALTER TABLE reservations ADD COLUMN rate_money    BIGINT CHECK (rate_money >= 0);
ALTER TABLE reservations ADD COLUMN rate_thinking BIGINT CHECK (rate_thinking >= 0);

-- When it was metered, in milliseconds since 1970; absent in older rows.
ALTER TABLE meterings ADD COLUMN metered_at BIGINT;
