-- Runs of agents: what each may take, how far it came, and the histories by which it is known again. What they spent is in
-- the ledger. Rows are deleted when they are too old.

CREATE TABLE episodes (
    account TEXT NOT NULL,
    id      TEXT NOT NULL,
    -- JSON: what the run may take altogether.
    limits  TEXT NOT NULL,
    -- Of the last step that was answered; before the first there is none.
    model   TEXT,
    class   TEXT,
    context INTEGER NOT NULL,
    ended   TEXT NOT NULL,
    -- How many steps were answered.
    steps   INTEGER NOT NULL,
    used_at INTEGER NOT NULL,
    PRIMARY KEY (account, id)
) STRICT;

CREATE INDEX episodes_by_age ON episodes (used_at);

-- A history that a run ended with, as its hash, and how often the run was gone on from there.
CREATE TABLE episode_links (
    account   TEXT NOT NULL,
    link      BLOB NOT NULL,
    episode   TEXT NOT NULL,
    continued INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    PRIMARY KEY (account, link, episode)
) STRICT;

CREATE INDEX episode_links_by_age ON episode_links (at);
