-- Seals, the sums that they vouch for, and what keeps entries as they were written.

-- Which reservations have no resolution, so that a start need not look through all of them. The triggers below keep it.
CREATE TABLE open_reservations (
    reservation BLOB NOT NULL PRIMARY KEY
) STRICT, WITHOUT ROWID;

INSERT INTO open_reservations
SELECT id FROM reservations WHERE NOT EXISTS (SELECT 1 FROM resolutions WHERE reservation = id);

CREATE TRIGGER reservations_open AFTER INSERT ON reservations BEGIN
    INSERT INTO open_reservations VALUES (new.id);
END;
CREATE TRIGGER resolutions_close AFTER INSERT ON resolutions BEGIN
    DELETE FROM open_reservations WHERE reservation = new.reservation;
END;

-- A seal covers the resolutions after the last seal's `through` up to its own.
CREATE TABLE seals (
    -- 1, 2, 3, …
    number      INTEGER NOT NULL PRIMARY KEY CHECK (number >= 1),
    -- The number of the last resolution that it covers.
    through     INTEGER NOT NULL UNIQUE,
    resolutions INTEGER NOT NULL CHECK (resolutions >= 1),
    sealed_at   INTEGER NOT NULL,
    -- SHA-256 over the last seal's hash and all that it covers; src/ledger/seal.rs has the format.
    hash        BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- What a seal's requests were charged, summed up thrice: by the quarter of an hour of their admission, by the day of
-- UTC, and over all time.
CREATE TABLE rollups (
    seal          INTEGER NOT NULL REFERENCES seals (number),
    line          INTEGER NOT NULL,
    -- How long it is, in milliseconds; 0 for all time.
    span          INTEGER NOT NULL CHECK (span IN (900000, 86400000, 0)),
    -- When it began; 0 for all time.
    start         INTEGER NOT NULL,
    account       TEXT    NOT NULL,
    model         TEXT,
    end_user      TEXT,
    tag           TEXT,
    money         INTEGER NOT NULL,
    thinking      INTEGER NOT NULL,
    tool_calls    INTEGER NOT NULL,
    -- All but those that were voided.
    requests      INTEGER NOT NULL,
    overrun_money INTEGER NOT NULL,
    settled       INTEGER NOT NULL,
    prompt        INTEGER NOT NULL,
    overhead      INTEGER NOT NULL,
    solution      INTEGER NOT NULL,
    other         INTEGER NOT NULL,
    PRIMARY KEY (seal, line)
) STRICT, WITHOUT ROWID;
CREATE INDEX rollups_by_time ON rollups (span, start);

-- Whoever wants to change what was written must at least mean it.
CREATE TRIGGER reservations_kept  BEFORE DELETE ON reservations BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER reservations_fixed BEFORE UPDATE ON reservations BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER extensions_kept    BEFORE DELETE ON extensions   BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER extensions_fixed   BEFORE UPDATE ON extensions   BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER meterings_kept     BEFORE DELETE ON meterings    BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER meterings_fixed    BEFORE UPDATE ON meterings    BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER resolutions_kept   BEFORE DELETE ON resolutions  BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER resolutions_fixed  BEFORE UPDATE ON resolutions  BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER seals_kept         BEFORE DELETE ON seals        BEGIN SELECT raise(ABORT, 'seals are immutable'); END;
CREATE TRIGGER seals_fixed        BEFORE UPDATE ON seals        BEGIN SELECT raise(ABORT, 'seals are immutable'); END;
