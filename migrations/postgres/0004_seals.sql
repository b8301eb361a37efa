-- Seals, the sums that they vouch for, and what keeps entries as they were written.

-- A seal covers the resolutions after the last seal's `through` up to its own. Numbers are handed out when a row is
-- written, in whatever order transactions are committed, and a lower number may still be on its way when a higher one can
-- be seen, whatever their transactions' ids (the comment on `resolutions.number` promised too much). So whoever seals
-- looks for the highest number first, waits until every transaction has ended that wrote resolutions then (pg_locks
-- shows them), and covers what can be seen up to that number after that. No lower one can come any more.
CREATE TABLE seals (
    -- 1, 2, 3, …
    number      BIGINT NOT NULL PRIMARY KEY CHECK (number >= 1),
    -- The number of the last resolution that it covers.
    through     BIGINT NOT NULL UNIQUE,
    resolutions BIGINT NOT NULL CHECK (resolutions >= 1),
    sealed_at   BIGINT NOT NULL,
    -- SHA-256 over the last seal's hash and all that it covers; src/ledger/seal.rs has the format.
    hash        BYTEA  NOT NULL CHECK (octet_length(hash) = 32)
);

-- What a seal's requests were charged, summed up thrice: by the quarter of an hour of their admission, by the day of
-- UTC, and over all time.
CREATE TABLE rollups (
    seal          BIGINT NOT NULL REFERENCES seals (number),
    line          BIGINT NOT NULL,
    -- How long it is, in milliseconds; 0 for all time.
    span          BIGINT NOT NULL CHECK (span IN (900000, 86400000, 0)),
    -- When it began; 0 for all time.
    start         BIGINT NOT NULL,
    account       TEXT   COLLATE "C" NOT NULL,
    model         TEXT   COLLATE "C",
    end_user      TEXT   COLLATE "C",
    tag           TEXT   COLLATE "C",
    money         BIGINT NOT NULL,
    thinking      BIGINT NOT NULL,
    tool_calls    BIGINT NOT NULL,
    -- All but those that were voided.
    requests      BIGINT NOT NULL,
    overrun_money BIGINT NOT NULL,
    settled       BIGINT NOT NULL,
    prompt        BIGINT NOT NULL,
    overhead      BIGINT NOT NULL,
    solution      BIGINT NOT NULL,
    other         BIGINT NOT NULL,
    PRIMARY KEY (seal, line)
);
CREATE INDEX rollups_by_time ON rollups (span, start);

-- Whoever wants to change what was written must at least mean it.
CREATE FUNCTION entries_are_immutable() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN RAISE EXCEPTION '% are immutable', CASE TG_TABLE_NAME WHEN 'seals' THEN 'seals' ELSE 'entries' END; END $$;

CREATE TRIGGER reservations_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON reservations
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
CREATE TRIGGER extensions_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON extensions
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
CREATE TRIGGER meterings_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON meterings
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
CREATE TRIGGER resolutions_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON resolutions
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
CREATE TRIGGER seals_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON seals
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
