-- Roles below "all" on the admin API, beside `admin`, which is 1 for "all" alone. Versions that do not know the column take a key
-- with another role for one that has none.
ALTER TABLE keys ADD COLUMN role TEXT CHECK (role IN ('read', 'keys'));

-- What admins changed, and who. Each row's hash is of its content and of the hash before it, so that no row can be changed,
-- removed or put in later unnoticed.
CREATE TABLE admin_changes (
    -- 1, 2, 3, …
    number     INTEGER NOT NULL PRIMARY KEY CHECK (number >= 1),
    changed_at INTEGER NOT NULL,
    who        TEXT    NOT NULL,
    action     TEXT    NOT NULL,
    subject    TEXT    NOT NULL,
    -- JSON, without secrets and their hashes.
    old_value  TEXT,
    new_value  TEXT,
    hash       BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;

-- One row: how many there are, and the last one's hash.
CREATE TABLE admin_changes_head (
    single INTEGER NOT NULL PRIMARY KEY CHECK (single = 1),
    number INTEGER NOT NULL,
    hash   BLOB    NOT NULL CHECK (length(hash) = 32)
) STRICT;
INSERT INTO admin_changes_head (single, number, hash) VALUES (1, 0, zeroblob(32));

CREATE TRIGGER admin_changes_kept  BEFORE DELETE ON admin_changes BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER admin_changes_fixed BEFORE UPDATE ON admin_changes BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
