-- Conversations that callers come back to. Rows are deleted when they were not touched for too long.

CREATE TABLE conversations (
    account       TEXT    NOT NULL,
    id            BLOB    NOT NULL CHECK (length(id) = 16),
    created_at    INTEGER NOT NULL,
    touched_at    INTEGER NOT NULL,
    -- JSON.
    metadata      TEXT    NOT NULL,
    episode       TEXT,
    -- The request that has a claim on it, and until when.
    claimant      BLOB    CHECK (length(claimant) = 16),
    claimed_until INTEGER,
    -- Where its next item will stand. A place is given once, also where its item is removed.
    next_place    INTEGER NOT NULL,
    -- What it takes with its items.
    bytes         INTEGER NOT NULL,
    PRIMARY KEY (account, id),
    CHECK ((claimant IS NULL) = (claimed_until IS NULL))
) STRICT;

CREATE INDEX conversations_by_age ON conversations (touched_at);
CREATE INDEX conversations_of_account ON conversations (account, touched_at);

CREATE TABLE conversation_items (
    account      TEXT    NOT NULL,
    conversation BLOB    NOT NULL,
    place        INTEGER NOT NULL,
    -- A text, kept as bytes: what a caller calls its items may have zeros in it.
    id           BLOB    NOT NULL,
    -- JSON.
    value        TEXT    NOT NULL,
    bytes        INTEGER NOT NULL,
    PRIMARY KEY (account, conversation, place),
    FOREIGN KEY (account, conversation) REFERENCES conversations (account, id) ON DELETE CASCADE
) STRICT;

-- By its beginning: an id of any length has a place in it, as in PostgreSQL.
CREATE INDEX conversation_items_by_id ON conversation_items (account, conversation, substr(id, 1, 64), place);

-- What each account's conversations take.
CREATE TABLE conversation_bytes (
    account TEXT    NOT NULL PRIMARY KEY,
    bytes   INTEGER NOT NULL
) STRICT;

CREATE TRIGGER conversations_made AFTER INSERT ON conversations BEGIN
    INSERT INTO conversation_bytes (account, bytes) VALUES (NEW.account, 0) ON CONFLICT (account) DO NOTHING;
    UPDATE conversation_bytes SET bytes = bytes + NEW.bytes WHERE account = NEW.account;
END;

CREATE TRIGGER conversations_changed AFTER UPDATE OF bytes ON conversations WHEN NEW.bytes <> OLD.bytes BEGIN
    UPDATE conversation_bytes SET bytes = bytes - OLD.bytes + NEW.bytes WHERE account = NEW.account;
END;

CREATE TRIGGER conversations_deleted AFTER DELETE ON conversations BEGIN
    UPDATE conversation_bytes SET bytes = bytes - OLD.bytes WHERE account = OLD.account;
END;
