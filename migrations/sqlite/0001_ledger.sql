-- The ledger's journal. Rows are only ever inserted: balances are sums of them, and corrections are new rows.
-- Money is in nano-dollars, prices in nano-dollars for a million tokens, times in milliseconds since 1970 (UTC).

-- Written just before the first byte goes upstream.
CREATE TABLE reservations (
    id           BLOB    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    account      TEXT    NOT NULL,
    money        INTEGER NOT NULL CHECK (money >= 0),
    thinking     INTEGER NOT NULL CHECK (thinking >= 0),
    -- The prices that it was reserved at; absent for a model without prices.
    price_input  INTEGER CHECK (price_input >= 0),
    price_output INTEGER CHECK (price_output >= 0),
    -- Says to which windows it belongs.
    admitted_at  INTEGER NOT NULL,
    expires_at   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- What was set aside for it later.
CREATE TABLE extensions (
    reservation BLOB    NOT NULL REFERENCES reservations (id),
    step        INTEGER NOT NULL,
    money       INTEGER NOT NULL CHECK (money >= 0),
    thinking    INTEGER NOT NULL CHECK (thinking >= 0),
    PRIMARY KEY (reservation, step)
) STRICT, WITHOUT ROWID;

-- How it ended; once. A reservation without a resolution is open, or was when the process died.
CREATE TABLE resolutions (
    reservation      BLOB    NOT NULL PRIMARY KEY REFERENCES reservations (id),
    how              TEXT    NOT NULL CHECK (how IN ('settled', 'voided', 'expired')),
    account          TEXT    NOT NULL,
    admitted_at      INTEGER NOT NULL,
    resolved_at      INTEGER NOT NULL,
    money            INTEGER NOT NULL CHECK (money >= 0),
    thinking         INTEGER NOT NULL CHECK (thinking >= 0),
    -- What of that was more than the reservation.
    overrun_money    INTEGER NOT NULL CHECK (overrun_money >= 0),
    overrun_thinking INTEGER NOT NULL CHECK (overrun_thinking >= 0),
    model            TEXT,
    prompt           INTEGER NOT NULL,
    overhead         INTEGER NOT NULL,
    solution         INTEGER NOT NULL,
    other            INTEGER NOT NULL,
    outcome          TEXT    NOT NULL
) STRICT, WITHOUT ROWID;

-- Sums up a window without touching the table.
CREATE INDEX resolutions_by_window
    ON resolutions (admitted_at, account, money, thinking, overrun_money, how);
