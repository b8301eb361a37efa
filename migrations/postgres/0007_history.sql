-- What decisions leave behind, and what was learned from them. Rows of the first two are deleted when they are too old.

-- The story of a request. Nothing of its prompt or its answer is in it.
CREATE TABLE stories (
    request    BYTEA NOT NULL PRIMARY KEY CHECK (length(request) = 16),
    account    TEXT NOT NULL,
    decided_at BIGINT NOT NULL,
    -- JSON, as the modules that decide and measure write it.
    decision   TEXT NOT NULL,
    outcome    TEXT NOT NULL
);

CREATE INDEX stories_by_age ON stories (decided_at);

-- What was said of an answer. It may come before the story does.
CREATE TABLE verdicts (
    request BYTEA NOT NULL CHECK (length(request) = 16),
    source  TEXT NOT NULL,
    at      BIGINT NOT NULL,
    success DOUBLE PRECISION NOT NULL,
    weight  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (request, source)
);

CREATE INDEX verdicts_by_age ON verdicts (at);

-- What each process had learned when it last said so, as JSON.
CREATE TABLE learned (
    replica  TEXT NOT NULL PRIMARY KEY,
    saved_at BIGINT NOT NULL,
    -- 1 where that was its last word.
    has_left BIGINT NOT NULL,
    state    TEXT NOT NULL
);
