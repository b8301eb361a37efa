-- Who goes first where requests wait for a place; a request may say less.

ALTER TABLE keys ADD COLUMN priority TEXT NOT NULL DEFAULT 'interactive'
    CHECK (priority IN ('interactive', 'batch'));
