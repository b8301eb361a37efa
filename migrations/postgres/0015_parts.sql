-- What other models took of a request than the one that answered: drafts, a judge's word, the first step of a cascade, an
-- attempt that failed. The resolution has the whole of it; what is no part is its own model's.

CREATE TABLE resolution_parts (
    reservation BYTEA  NOT NULL REFERENCES reservations (id),
    model       TEXT   COLLATE "C" NOT NULL,
    money       BIGINT NOT NULL CHECK (money >= 0),
    thinking    BIGINT NOT NULL CHECK (thinking >= 0),
    prompt      BIGINT NOT NULL CHECK (prompt >= 0),
    overhead    BIGINT NOT NULL CHECK (overhead >= 0),
    solution    BIGINT NOT NULL CHECK (solution >= 0),
    other       BIGINT NOT NULL CHECK (other >= 0),
    PRIMARY KEY (reservation, model)
);

CREATE TRIGGER resolution_parts_fixed BEFORE UPDATE OR DELETE OR TRUNCATE ON resolution_parts
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();

-- Absent in a sum of whole requests. Else the sum is of parts, under the model that took them, and this is the model whose
-- requests they are part of ('' for none): its sum of whole requests has them too.
ALTER TABLE rollups ADD COLUMN part_of TEXT COLLATE "C";
CREATE INDEX rollups_of_parts ON rollups (span, start) WHERE part_of IS NOT NULL;
