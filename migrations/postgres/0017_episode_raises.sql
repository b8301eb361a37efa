-- By how much an operator raised a run, each time, or that it was ended. The row of the run has the sum of these beside what
-- its steps have stated. They are kept as long as their run.
CREATE TABLE episode_raises (
    account    TEXT NOT NULL,
    episode    TEXT NOT NULL,
    -- 1, 2, 3, …
    number     BIGINT NOT NULL CHECK (number >= 1),
    at         BIGINT NOT NULL,
    money      BIGINT NOT NULL CHECK (money >= 0),
    thinking   BIGINT NOT NULL CHECK (thinking >= 0),
    turns      BIGINT NOT NULL CHECK (turns >= 0),
    tool_calls BIGINT NOT NULL CHECK (tool_calls >= 0),
    -- JSON: calls by tool.
    tools      TEXT   NOT NULL,
    is_end     BIGINT NOT NULL CHECK (is_end IN (0, 1)),
    PRIMARY KEY (account, episode, number)
);

CREATE TRIGGER episode_raises_fixed BEFORE UPDATE OR TRUNCATE ON episode_raises
    FOR EACH STATEMENT EXECUTE FUNCTION entries_are_immutable();
