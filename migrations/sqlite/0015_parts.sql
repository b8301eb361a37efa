-- What other models took of a request than the one that answered: drafts, a judge's word, the first step of a cascade, an
-- attempt that failed. The resolution has the whole of it; what is no part is its own model's.

CREATE TABLE resolution_parts (
    reservation BLOB    NOT NULL REFERENCES reservations (id),
    model       TEXT    NOT NULL,
    money       INTEGER NOT NULL CHECK (money >= 0),
    thinking    INTEGER NOT NULL CHECK (thinking >= 0),
    prompt      INTEGER NOT NULL CHECK (prompt >= 0),
    overhead    INTEGER NOT NULL CHECK (overhead >= 0),
    solution    INTEGER NOT NULL CHECK (solution >= 0),
    other       INTEGER NOT NULL CHECK (other >= 0),
    PRIMARY KEY (reservation, model)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER resolution_parts_kept  BEFORE DELETE ON resolution_parts BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
CREATE TRIGGER resolution_parts_fixed BEFORE UPDATE ON resolution_parts BEGIN SELECT raise(ABORT, 'entries are immutable'); END;

-- Absent in a sum of whole requests. Else the sum is of parts, under the model that took them, and this is the model whose
-- requests they are part of ('' for none): its sum of whole requests has them too.
ALTER TABLE rollups ADD COLUMN part_of TEXT;
CREATE INDEX rollups_of_parts ON rollups (span, start) WHERE part_of IS NOT NULL;
