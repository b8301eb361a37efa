-- By how much an operator raised a run, each time, or that it was ended. The row of the run has the sum of these beside what
-- its steps have stated. They are kept as long as their run.
CREATE TABLE episode_raises (
    account    TEXT    NOT NULL,
    episode    TEXT    NOT NULL,
    -- 1, 2, 3, …
    number     INTEGER NOT NULL CHECK (number >= 1),
    at         INTEGER NOT NULL,
    money      INTEGER NOT NULL CHECK (money >= 0),
    thinking   INTEGER NOT NULL CHECK (thinking >= 0),
    turns      INTEGER NOT NULL CHECK (turns >= 0),
    tool_calls INTEGER NOT NULL CHECK (tool_calls >= 0),
    -- JSON: calls by tool.
    tools      TEXT    NOT NULL,
    is_end     INTEGER NOT NULL CHECK (is_end IN (0, 1)),
    PRIMARY KEY (account, episode, number)
) STRICT, WITHOUT ROWID;

CREATE TRIGGER episode_raises_fixed BEFORE UPDATE ON episode_raises BEGIN SELECT raise(ABORT, 'entries are immutable'); END;
