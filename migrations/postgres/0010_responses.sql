-- Responses that callers may read again, continue and delete. Rows are deleted when they are too old.

CREATE TABLE responses (
    account   TEXT   NOT NULL,
    id        BYTEA  NOT NULL CHECK (length(id) = 16),
    stored_at BIGINT NOT NULL,
    -- The one that it continued. That one may be deleted; then it cannot be continued any more.
    previous  BYTEA  CHECK (length(previous) = 16),
    episode   TEXT,
    -- JSON: what was put in, what came out, and the response as it was told.
    input     TEXT   NOT NULL,
    output    TEXT   NOT NULL,
    told      TEXT   NOT NULL,
    bytes     BIGINT NOT NULL,
    PRIMARY KEY (account, id)
);

CREATE INDEX responses_by_age ON responses (stored_at);
CREATE INDEX responses_of_account ON responses (account, stored_at);

-- What each account's responses take.
CREATE TABLE response_bytes (
    account TEXT   NOT NULL PRIMARY KEY,
    bytes   BIGINT NOT NULL
);

CREATE FUNCTION count_response_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO response_bytes AS counted (account, bytes) VALUES (NEW.account, NEW.bytes)
            ON CONFLICT (account) DO UPDATE SET bytes = counted.bytes + excluded.bytes;
    ELSE
        UPDATE response_bytes SET bytes = bytes - OLD.bytes WHERE account = OLD.account;
    END IF;
    RETURN NULL;
END
$$;

CREATE TRIGGER responses_counted AFTER INSERT OR DELETE ON responses
    FOR EACH ROW EXECUTE FUNCTION count_response_bytes();
