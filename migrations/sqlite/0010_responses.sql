-- Responses that callers may read again, continue and delete. Rows are deleted when they are too old.

CREATE TABLE responses (
    account   TEXT    NOT NULL,
    id        BLOB    NOT NULL CHECK (length(id) = 16),
    stored_at INTEGER NOT NULL,
    -- The one that it continued. That one may be deleted; then it cannot be continued any more.
    previous  BLOB    CHECK (length(previous) = 16),
    episode   TEXT,
    -- JSON: what was put in, what came out, and the response as it was told.
    input     TEXT    NOT NULL,
    output    TEXT    NOT NULL,
    told      TEXT    NOT NULL,
    bytes     INTEGER NOT NULL,
    PRIMARY KEY (account, id)
) STRICT;

CREATE INDEX responses_by_age ON responses (stored_at);
CREATE INDEX responses_of_account ON responses (account, stored_at);

-- What each account's responses take.
CREATE TABLE response_bytes (
    account TEXT    NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
) STRICT;

CREATE TRIGGER responses_kept AFTER INSERT ON responses BEGIN
    INSERT INTO response_bytes (account, bytes) VALUES (NEW.account, 0) ON CONFLICT (account) DO NOTHING;
    UPDATE response_bytes SET bytes = bytes + NEW.bytes WHERE account = NEW.account;
END;

CREATE TRIGGER responses_deleted AFTER DELETE ON responses BEGIN
    UPDATE response_bytes SET bytes = bytes - OLD.bytes WHERE account = OLD.account;
END;
