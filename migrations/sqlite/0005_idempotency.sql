-- What an account's idempotency keys stand for. Rows are deleted when they are too old to count.

CREATE TABLE answers (
    account     TEXT    NOT NULL,
    key         TEXT    NOT NULL,
    -- The SHA-256 of what was asked for; prompts are not kept.
    fingerprint BLOB    NOT NULL CHECK (length(fingerprint) = 32),
    -- Under this id the ledger has what it cost.
    request     BLOB    NOT NULL CHECK (length(request) = 16),
    begun_at    INTEGER NOT NULL,
    -- When it is over at the latest.
    until       INTEGER NOT NULL,
    -- How it ended; absent while it runs.
    ended       TEXT    CHECK (ended IN ('answered', 'interrupted')),
    -- The answer as it went out. `kept` says what is there of its body.
    status      INTEGER,
    headers     TEXT,
    kept        TEXT    CHECK (kept IN ('whole', 'streamed', 'too_large')),
    body        BLOB,
    PRIMARY KEY (account, key),
    CHECK ((ended IS 'answered') = (status IS NOT NULL AND headers IS NOT NULL AND kept IS NOT NULL)),
    CHECK ((kept IS 'whole') = (body IS NOT NULL))
) STRICT;

CREATE INDEX answers_by_age ON answers (begun_at);
CREATE INDEX answers_running ON answers (until) WHERE ended IS NULL;
