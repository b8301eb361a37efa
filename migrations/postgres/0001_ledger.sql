-- The ledger's journal. Rows are only ever inserted: balances are sums of them, and corrections are new rows.
-- Money is in nano-dollars, prices in nano-dollars for a million tokens, times in milliseconds since 1970 (UTC).
-- Names are compared byte by byte, as in the other database.

-- Every start of a gateway is a replica of its own, with a lease by this database's clock. The rows of one whose
-- lease has run out are posted by whoever finds it ("buried"); from then on it can write nothing any more.
CREATE TABLE replicas (
    epoch      BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name       TEXT        NOT NULL,
    began_at   TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    expires_at TIMESTAMPTZ NOT NULL,
    is_over    BOOLEAN     NOT NULL DEFAULT FALSE
);

CREATE INDEX replicas_alive ON replicas (epoch) WHERE NOT is_over;

-- Written just before the first byte goes upstream.
CREATE TABLE reservations (
    id           BYTEA  PRIMARY KEY CHECK (octet_length(id) = 16),
    -- Whose slices cover it; absent where nobody shares the accounts.
    epoch        BIGINT REFERENCES replicas (epoch),
    account      TEXT   COLLATE "C" NOT NULL,
    -- Which model it was planned for, which end user it is for, and the caller's own word for what it is for.
    model        TEXT   COLLATE "C",
    end_user     TEXT   COLLATE "C",
    tag          TEXT   COLLATE "C",
    money        BIGINT NOT NULL CHECK (money >= 0),
    thinking     BIGINT NOT NULL CHECK (thinking >= 0),
    tool_calls   BIGINT NOT NULL CHECK (tool_calls >= 0),
    -- The prices that it was reserved at; absent for a model without prices.
    price_input  BIGINT CHECK (price_input >= 0),
    price_output BIGINT CHECK (price_output >= 0),
    -- What is posted if nobody settles it.
    if_abandoned TEXT   NOT NULL CHECK (if_abandoned IN ('whole', 'metered')),
    -- Says to which windows it belongs.
    admitted_at  BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);

CREATE INDEX reservations_by_epoch ON reservations (epoch);
CREATE INDEX reservations_by_admission ON reservations (admitted_at);

-- What was set aside for it later, and which model serves it from then on.
CREATE TABLE extensions (
    reservation BYTEA  NOT NULL REFERENCES reservations (id),
    step        BIGINT NOT NULL,
    model       TEXT   COLLATE "C",
    money       BIGINT NOT NULL CHECK (money >= 0),
    thinking    BIGINT NOT NULL CHECK (thinking >= 0),
    tool_calls  BIGINT NOT NULL CHECK (tool_calls >= 0),
    PRIMARY KEY (reservation, step)
);

-- What was used of a reservation while it ran; the last one counts.
CREATE TABLE meterings (
    reservation BYTEA  NOT NULL REFERENCES reservations (id),
    step        BIGINT NOT NULL,
    money       BIGINT NOT NULL CHECK (money >= 0),
    thinking    BIGINT NOT NULL CHECK (thinking >= 0),
    tool_calls  BIGINT NOT NULL CHECK (tool_calls >= 0),
    PRIMARY KEY (reservation, step)
);

-- How it ended; once. A reservation without a resolution is open, or was when its replica died.
CREATE TABLE resolutions (
    -- For seals to come. Handed out when a row is written, not when it is committed: a seal will reach only as far as the rows whose
    -- transaction lies below pg_snapshot_xmin(pg_current_snapshot()), since no lower number can appear there any more.
    number             BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    transaction        XID8   NOT NULL DEFAULT pg_current_xact_id(),
    reservation        BYTEA  NOT NULL UNIQUE REFERENCES reservations (id),
    how                TEXT   NOT NULL CHECK (how IN ('settled', 'voided', 'expired')),
    account            TEXT   COLLATE "C" NOT NULL,
    -- What it was about in the end.
    model              TEXT   COLLATE "C",
    end_user           TEXT   COLLATE "C",
    tag                TEXT   COLLATE "C",
    admitted_at        BIGINT NOT NULL,
    resolved_at        BIGINT NOT NULL,
    money              BIGINT NOT NULL CHECK (money >= 0),
    thinking           BIGINT NOT NULL CHECK (thinking >= 0),
    tool_calls         BIGINT NOT NULL CHECK (tool_calls >= 0),
    -- What of that was more than the reservation.
    overrun_money      BIGINT NOT NULL CHECK (overrun_money >= 0),
    overrun_thinking   BIGINT NOT NULL CHECK (overrun_thinking >= 0),
    overrun_tool_calls BIGINT NOT NULL CHECK (overrun_tool_calls >= 0),
    prompt             BIGINT NOT NULL,
    overhead           BIGINT NOT NULL,
    solution           BIGINT NOT NULL,
    other              BIGINT NOT NULL,
    outcome            TEXT   NOT NULL
);

CREATE INDEX resolutions_by_admission ON resolutions (admitted_at);
CREATE INDEX resolutions_by_account ON resolutions (account, admitted_at);

-- What each request counts for under the limits: what it was charged, or all that is set aside for it.
CREATE VIEW uses AS
SELECT v.epoch, r.account, r.model, r.end_user, r.tag, r.admitted_at, r.money, r.thinking, r.tool_calls,
       (r.how <> 'voided')::int::bigint AS requests, 0::bigint AS concurrency
FROM resolutions r JOIN reservations v ON v.id = r.reservation
UNION ALL
SELECT v.epoch, v.account,
       coalesce((SELECT model FROM extensions WHERE reservation = v.id ORDER BY step DESC LIMIT 1), v.model),
       v.end_user, v.tag, v.admitted_at,
       v.money + coalesce((SELECT sum(money) FROM extensions WHERE reservation = v.id), 0)::bigint,
       v.thinking + coalesce((SELECT sum(thinking) FROM extensions WHERE reservation = v.id), 0)::bigint,
       v.tool_calls + coalesce((SELECT sum(tool_calls) FROM extensions WHERE reservation = v.id), 0)::bigint,
       1::bigint, 1::bigint
FROM reservations v WHERE NOT EXISTS (SELECT 1 FROM resolutions r WHERE r.reservation = v.id);

-- What has been handed out of one limit in one window: `granted` is what living replicas hold in slices and what dead
-- ones really used. It never passes the limit, but for what an upstream billed beyond a reservation.
CREATE TABLE purses (
    id         BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    account    TEXT        COLLATE "C" NOT NULL,
    -- Which part of the account's requests: all of them, or those of one model, end user or tag.
    facet      TEXT        NOT NULL CHECK (facet IN ('whole', 'model', 'user', 'tag')),
    name       TEXT        COLLATE "C" NOT NULL,
    unit       TEXT        NOT NULL,
    period     TEXT        NOT NULL,
    begins     BIGINT      NOT NULL,
    ends        BIGINT,
    granted     BIGINT      NOT NULL DEFAULT 0 CHECK (granted >= 0),
    created_at  TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    changed_at  TIMESTAMPTZ NOT NULL DEFAULT clock_timestamp(),
    -- When somebody last asked the others to hand back what they do not use.
    recalled_at TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
    UNIQUE (account, facet, unit, period, begins, name)
);

CREATE INDEX purses_by_change ON purses (changed_at);
CREATE INDEX purses_by_end ON purses (ends);

-- What one replica may have spent and reserved of it, since the replica began.
CREATE TABLE slices (
    purse      BIGINT      NOT NULL REFERENCES purses (id) ON DELETE CASCADE,
    epoch      BIGINT      NOT NULL REFERENCES replicas (epoch),
    amount     BIGINT      NOT NULL CHECK (amount >= 0),
    -- When the replica last handed back all that it did not use.
    trimmed_at TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
    PRIMARY KEY (purse, epoch)
);

CREATE INDEX slices_by_epoch ON slices (epoch);
