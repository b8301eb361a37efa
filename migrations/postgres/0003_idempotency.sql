-- What an account's idempotency keys stand for. Rows are deleted when they are too old to count.

CREATE TABLE answers (
    account     TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    -- The SHA-256 of what was asked for; prompts are not kept.
    fingerprint BYTEA    NOT NULL CHECK (length(fingerprint) = 32),
    -- Under this id the ledger has what it cost.
    request     BYTEA    NOT NULL CHECK (length(request) = 16),
    begun_at    BIGINT NOT NULL,
    -- When it is over at the latest.
    until       BIGINT NOT NULL,
    -- How it ended; absent while it runs.
    ended       TEXT    CHECK (ended IN ('answered', 'interrupted')),
    -- The answer as it went out. `kept` says what is there of its body.
    status      BIGINT,
    headers     TEXT,
    kept        TEXT    CHECK (kept IN ('whole', 'streamed', 'too_large')),
    body        BYTEA,
    PRIMARY KEY (account, key),
    CHECK ((ended IS NOT DISTINCT FROM 'answered') = (status IS NOT NULL AND headers IS NOT NULL AND kept IS NOT NULL)),
    CHECK ((kept IS NOT DISTINCT FROM 'whole') = (body IS NOT NULL))
);

CREATE INDEX answers_by_age ON answers (begun_at);
CREATE INDEX answers_running ON answers (until) WHERE ended IS NULL;
