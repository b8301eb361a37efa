-- Runs of agents, and tool calls by tool.

-- Which run it is a step of; the tool calls that were set aside, by tool ({"search":3}); and what those cost at most,
-- which is part of the money.
ALTER TABLE reservations ADD COLUMN episode TEXT;
ALTER TABLE reservations ADD COLUMN tools TEXT;
ALTER TABLE reservations ADD COLUMN tools_cost INTEGER NOT NULL DEFAULT 0 CHECK (tools_cost >= 0);

-- The same of what passed.
ALTER TABLE resolutions ADD COLUMN episode TEXT;
ALTER TABLE resolutions ADD COLUMN tools TEXT;
ALTER TABLE resolutions ADD COLUMN tools_cost INTEGER NOT NULL DEFAULT 0 CHECK (tools_cost >= 0);

-- What a run took is summed up from its rows when it goes on after a long time.
CREATE INDEX resolutions_by_episode ON resolutions (account, episode) WHERE episode IS NOT NULL;
