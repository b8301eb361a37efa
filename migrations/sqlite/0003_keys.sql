-- Keys and the terms of accounts that were made while the gateway ran. Unlike the ledger's rows these change.
-- Times are in milliseconds since 1970 (UTC); `position` is the place in a list.

-- One row: how often anything below has changed. Whoever changes something says which version it has seen.
CREATE TABLE keys_version (
    only    INTEGER NOT NULL PRIMARY KEY CHECK (only = 1),
    version INTEGER NOT NULL
) STRICT;
INSERT INTO keys_version (only, version) VALUES (1, 0);

CREATE TABLE keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    account    TEXT    NOT NULL,
    admin      INTEGER NOT NULL CHECK (admin IN (0, 1)),
    created_at INTEGER NOT NULL,
    expires_at INTEGER,
    revoked_at INTEGER
) STRICT;
-- A revoked key leaves its account to another.
CREATE UNIQUE INDEX keys_by_account ON keys (account) WHERE revoked_at IS NULL;

-- Every secret that a key has or had, as its SHA-256. The last one is its own; the others are taken until their end.
CREATE TABLE key_secrets (
    hash     BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    key      TEXT    NOT NULL REFERENCES keys (id),
    position INTEGER NOT NULL,
    until    INTEGER,
    UNIQUE (key, position)
) STRICT, WITHOUT ROWID;

-- What a key may name; all of a kind where there is none of it.
CREATE TABLE key_scopes (
    key      TEXT    NOT NULL REFERENCES keys (id),
    kind     TEXT    NOT NULL CHECK (kind IN ('model', 'route')),
    position INTEGER NOT NULL,
    name     TEXT    NOT NULL,
    PRIMARY KEY (key, kind, position)
) STRICT, WITHOUT ROWID;

CREATE TABLE account_terms (
    account   TEXT    NOT NULL PRIMARY KEY,
    time_zone TEXT    NOT NULL,
    warn_at   INTEGER NOT NULL CHECK (warn_at BETWEEN 1 AND 100)
) STRICT;

CREATE TABLE account_limits (
    account  TEXT    NOT NULL REFERENCES account_terms (account),
    position INTEGER NOT NULL,
    -- What is limited, in nano-dollars, tokens or calls, and over what time.
    unit     TEXT    NOT NULL CHECK (unit IN ('money', 'thinking', 'requests', 'tool_calls', 'concurrency')),
    max      INTEGER NOT NULL CHECK (max >= 0),
    per      TEXT    NOT NULL CHECK (per IN ('minute', 'hour', 'day', 'week', 'month', 'total')),
    -- On which requests; the name of the model or the tag.
    scope    TEXT    NOT NULL CHECK (scope IN ('all', 'model', 'user', 'tag')),
    name     TEXT,
    PRIMARY KEY (account, position)
) STRICT, WITHOUT ROWID;
