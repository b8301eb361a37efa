-- What a request was about, tool calls, notes of what was used so far, and the order of settlements.

ALTER TABLE reservations ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0 CHECK (tool_calls >= 0);
-- Which model it was planned for, which end user it is for, and the caller's own word for what it is for.
ALTER TABLE reservations ADD COLUMN model TEXT;
ALTER TABLE reservations ADD COLUMN end_user TEXT;
ALTER TABLE reservations ADD COLUMN tag TEXT;
-- What is posted if nobody settles it.
ALTER TABLE reservations ADD COLUMN if_abandoned TEXT NOT NULL DEFAULT 'whole'
    CHECK (if_abandoned IN ('whole', 'metered'));

ALTER TABLE extensions ADD COLUMN tool_calls INTEGER NOT NULL DEFAULT 0 CHECK (tool_calls >= 0);
-- Which model serves it from then on.
ALTER TABLE extensions ADD COLUMN model TEXT;

-- What was used of a reservation while it ran; the last one counts.
CREATE TABLE meterings (
    reservation BLOB    NOT NULL REFERENCES reservations (id),
    step        INTEGER NOT NULL,
    money       INTEGER NOT NULL CHECK (money >= 0),
    thinking    INTEGER NOT NULL CHECK (thinking >= 0),
    tool_calls  INTEGER NOT NULL CHECK (tool_calls >= 0),
    PRIMARY KEY (reservation, step)
) STRICT, WITHOUT ROWID;

-- Resolutions in the order in which they were committed, so that a seal can say how far it reaches.
CREATE TABLE resolutions_in_order (
    number             INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    reservation        BLOB    NOT NULL UNIQUE REFERENCES reservations (id),
    how                TEXT    NOT NULL CHECK (how IN ('settled', 'voided', 'expired')),
    account            TEXT    NOT NULL,
    -- What it was about in the end.
    model              TEXT,
    end_user           TEXT,
    tag                TEXT,
    admitted_at        INTEGER NOT NULL,
    resolved_at        INTEGER NOT NULL,
    money              INTEGER NOT NULL CHECK (money >= 0),
    thinking           INTEGER NOT NULL CHECK (thinking >= 0),
    tool_calls         INTEGER NOT NULL CHECK (tool_calls >= 0),
    -- What of that was more than the reservation.
    overrun_money      INTEGER NOT NULL CHECK (overrun_money >= 0),
    overrun_thinking   INTEGER NOT NULL CHECK (overrun_thinking >= 0),
    overrun_tool_calls INTEGER NOT NULL CHECK (overrun_tool_calls >= 0),
    prompt             INTEGER NOT NULL,
    overhead           INTEGER NOT NULL,
    solution           INTEGER NOT NULL,
    other              INTEGER NOT NULL,
    outcome            TEXT    NOT NULL
) STRICT;

INSERT INTO resolutions_in_order
    (reservation, how, account, model, admitted_at, resolved_at, money, thinking, tool_calls,
     overrun_money, overrun_thinking, overrun_tool_calls, prompt, overhead, solution, other, outcome)
SELECT reservation, how, account, model, admitted_at, resolved_at, money, thinking, 0,
       overrun_money, overrun_thinking, 0, prompt, overhead, solution, other, outcome
FROM resolutions ORDER BY resolved_at, reservation;

DROP TABLE resolutions;
ALTER TABLE resolutions_in_order RENAME TO resolutions;
CREATE INDEX resolutions_by_admission ON resolutions (admitted_at);
