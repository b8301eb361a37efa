-- Keys and the terms of accounts that were made while the gateway ran. Unlike the ledger's rows these change.
-- Times are in milliseconds since 1970 (UTC); `position` is the place in a list. Names sort by their bytes.

-- One row: how often anything below has changed. Whoever changes something says which version it has seen.
CREATE TABLE keys_version (
    single  BIGINT NOT NULL PRIMARY KEY CHECK (single = 1),
    version BIGINT NOT NULL
);
INSERT INTO keys_version (single, version) VALUES (1, 0);

CREATE TABLE keys (
    id         TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    account    TEXT COLLATE "C" NOT NULL,
    admin      BIGINT NOT NULL CHECK (admin IN (0, 1)),
    created_at BIGINT NOT NULL,
    expires_at BIGINT,
    revoked_at BIGINT
);
-- A revoked key leaves its account to another.
CREATE UNIQUE INDEX keys_by_account ON keys (account) WHERE revoked_at IS NULL;

-- Every secret that a key has or had, as its SHA-256. The last one is its own; the others are taken until their end.
CREATE TABLE key_secrets (
    hash     BYTEA NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    key      TEXT COLLATE "C" NOT NULL REFERENCES keys (id),
    position BIGINT NOT NULL,
    until    BIGINT,
    UNIQUE (key, position)
);

-- What a key may name; all of a kind where there is none of it.
CREATE TABLE key_scopes (
    key      TEXT COLLATE "C" NOT NULL REFERENCES keys (id),
    kind     TEXT NOT NULL CHECK (kind IN ('model', 'route')),
    position BIGINT NOT NULL,
    name     TEXT NOT NULL,
    PRIMARY KEY (key, kind, position)
);

CREATE TABLE account_terms (
    account   TEXT COLLATE "C" NOT NULL PRIMARY KEY,
    time_zone TEXT NOT NULL,
    warn_at   BIGINT NOT NULL CHECK (warn_at BETWEEN 1 AND 100)
);

CREATE TABLE account_limits (
    account  TEXT COLLATE "C" NOT NULL REFERENCES account_terms (account),
    position BIGINT NOT NULL,
    -- What is limited, in nano-dollars, tokens or calls, and over what time.
    unit     TEXT NOT NULL CHECK (unit IN ('money', 'thinking', 'requests', 'tool_calls', 'concurrency')),
    max      BIGINT NOT NULL CHECK (max >= 0),
    per      TEXT NOT NULL CHECK (per IN ('minute', 'hour', 'day', 'week', 'month', 'total')),
    -- On which requests; the name of the model or the tag.
    scope    TEXT NOT NULL CHECK (scope IN ('all', 'model', 'user', 'tag')),
    name     TEXT,
    PRIMARY KEY (account, position)
);
