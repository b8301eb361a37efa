-- Roles below "all" on the admin API, beside `admin`, which is 1 for "all" alone. Versions that do not know the column take a key
-- with another role for one that has none.
ALTER TABLE keys ADD COLUMN role TEXT CHECK (role IN ('read', 'keys'));

-- What admins changed, and who. Each row's hash is of its content and of the hash before it, so that no row can be changed,
-- removed or put in later unnoticed.
CREATE TABLE admin_changes (
    -- 1, 2, 3, …
    number     BIGINT NOT NULL PRIMARY KEY CHECK (number >= 1),
    changed_at BIGINT NOT NULL,
    who        TEXT   NOT NULL,
    action     TEXT   NOT NULL,
    subject    TEXT   NOT NULL,
    -- JSON, without secrets and their hashes.
    old_value  TEXT,
    new_value  TEXT,
    hash       BYTEA  NOT NULL CHECK (length(hash) = 32)
);

-- One row: how many there are, and the last one's hash. Writers of several replicas take turns at it.
CREATE TABLE admin_changes_head (
    single BIGINT NOT NULL PRIMARY KEY CHECK (single = 1),
    number BIGINT NOT NULL,
    hash   BYTEA  NOT NULL CHECK (length(hash) = 32)
);
INSERT INTO admin_changes_head (single, number, hash) VALUES (1, 0, decode(repeat('00', 32), 'hex'));

CREATE TRIGGER admin_changes_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON admin_changes
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
