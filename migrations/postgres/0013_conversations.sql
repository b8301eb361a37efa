-- Conversations that callers come back to. Rows are deleted when they were not touched for too long.

CREATE TABLE conversations (
    account       TEXT   NOT NULL,
    id            BYTEA  NOT NULL CHECK (length(id) = 16),
    created_at    BIGINT NOT NULL,
    touched_at    BIGINT NOT NULL,
    -- JSON.
    metadata      TEXT   NOT NULL,
    episode       TEXT,
    -- The request that has a claim on it, and until when.
    claimant      BYTEA  CHECK (length(claimant) = 16),
    claimed_until BIGINT,
    -- Where its next item will stand. A place is given once, also where its item is removed.
    next_place    BIGINT NOT NULL,
    -- What it takes with its items.
    bytes         BIGINT NOT NULL,
    PRIMARY KEY (account, id),
    CHECK ((claimant IS NULL) = (claimed_until IS NULL))
);

CREATE INDEX conversations_by_age ON conversations (touched_at);
CREATE INDEX conversations_of_account ON conversations (account, touched_at);

CREATE TABLE conversation_items (
    account      TEXT   NOT NULL,
    conversation BYTEA  NOT NULL,
    place        BIGINT NOT NULL,
    -- A text, kept as bytes: what a caller calls its items may have zeros in it, which texts here cannot have.
    id           BYTEA  NOT NULL,
    -- JSON.
    value        TEXT   NOT NULL,
    bytes        BIGINT NOT NULL,
    PRIMARY KEY (account, conversation, place),
    FOREIGN KEY (account, conversation) REFERENCES conversations (account, id) ON DELETE CASCADE
);

-- By its beginning: an entry of an index has a bound, an id has none.
CREATE INDEX conversation_items_by_id ON conversation_items (account, conversation, substr(id, 1, 64), place);

-- What each account's conversations take.
CREATE TABLE conversation_bytes (
    account TEXT   NOT NULL PRIMARY KEY,
    bytes   BIGINT NOT NULL
);

CREATE FUNCTION count_conversation_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_OP = 'INSERT' THEN
        INSERT INTO conversation_bytes AS counted (account, bytes) VALUES (NEW.account, NEW.bytes)
            ON CONFLICT (account) DO UPDATE SET bytes = counted.bytes + excluded.bytes;
    ELSE
        UPDATE conversation_bytes SET bytes = bytes - OLD.bytes + NEW.bytes WHERE account = NEW.account;
    END IF;
    RETURN NULL;
END
$$;

-- Of one statement at once, its accounts in their order: whoever deletes some of several accounts never waits for
-- another who does the same and waits for it.
CREATE FUNCTION discount_conversation_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM conversation_bytes WHERE account IN (SELECT account FROM gone) ORDER BY account FOR UPDATE;
    UPDATE conversation_bytes AS counted SET bytes = counted.bytes - freed.bytes
        FROM (SELECT account, sum(bytes)::bigint AS bytes FROM gone GROUP BY account) AS freed
        WHERE counted.account = freed.account;
    RETURN NULL;
END
$$;

CREATE TRIGGER conversations_made AFTER INSERT ON conversations
    FOR EACH ROW EXECUTE FUNCTION count_conversation_bytes();

CREATE TRIGGER conversations_changed AFTER UPDATE OF bytes ON conversations
    FOR EACH ROW WHEN (NEW.bytes <> OLD.bytes) EXECUTE FUNCTION count_conversation_bytes();

CREATE TRIGGER conversations_deleted AFTER DELETE ON conversations REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION discount_conversation_bytes();
