-- Runs of agents, and tool calls by tool.

-- Which run it is a step of; the tool calls that were set aside, by tool ({"search":3}); and what those cost at most,
-- which is part of the money.
ALTER TABLE reservations ADD COLUMN episode    TEXT COLLATE "C";
ALTER TABLE reservations ADD COLUMN tools      TEXT;
ALTER TABLE reservations ADD COLUMN tools_cost BIGINT NOT NULL DEFAULT 0 CHECK (tools_cost >= 0);

-- The same of what passed.
ALTER TABLE resolutions ADD COLUMN episode    TEXT COLLATE "C";
ALTER TABLE resolutions ADD COLUMN tools      TEXT;
ALTER TABLE resolutions ADD COLUMN tools_cost BIGINT NOT NULL DEFAULT 0 CHECK (tools_cost >= 0);

-- What a run took is summed up from its rows when a replica hears of it.
CREATE INDEX reservations_by_episode ON reservations (account, episode) WHERE episode IS NOT NULL;
CREATE INDEX resolutions_by_episode ON resolutions (account, episode) WHERE episode IS NOT NULL;

-- What each request counts for under the limits: what it was charged, or all that is set aside for it.
CREATE OR REPLACE VIEW uses AS
SELECT v.epoch, r.account, r.model, r.end_user, r.tag, r.admitted_at, r.money, r.thinking, r.tool_calls,
       (r.how <> 'voided')::int::bigint AS requests, 0::bigint AS concurrency, r.episode, r.tools
FROM resolutions r JOIN reservations v ON v.id = r.reservation
UNION ALL
SELECT v.epoch, v.account,
       coalesce((SELECT model FROM extensions WHERE reservation = v.id ORDER BY step DESC LIMIT 1), v.model),
       v.end_user, v.tag, v.admitted_at,
       v.money + coalesce((SELECT sum(money) FROM extensions WHERE reservation = v.id), 0)::bigint,
       v.thinking + coalesce((SELECT sum(thinking) FROM extensions WHERE reservation = v.id), 0)::bigint,
       v.tool_calls + coalesce((SELECT sum(tool_calls) FROM extensions WHERE reservation = v.id), 0)::bigint,
       1::bigint, 1::bigint, v.episode, v.tools
FROM reservations v WHERE NOT EXISTS (SELECT 1 FROM resolutions r WHERE r.reservation = v.id);

-- How many calls of one tool those are.
CREATE FUNCTION calls_of(tools TEXT, tool TEXT) RETURNS BIGINT LANGUAGE sql IMMUTABLE AS
    $$ SELECT coalesce((tools::jsonb ->> tool)::bigint, 0) $$;

-- A run of an agent is part of its account too, and so are the calls of one tool in it. The name of those is the run's, the
-- end of a line, which no run's name has, and the tool's. Nobody asks for most of them again: they are made anew from the rows
-- where somebody does.
ALTER TABLE purses DROP CONSTRAINT purses_facet_check;
ALTER TABLE purses ADD CONSTRAINT purses_facet_check
    CHECK (facet IN ('whole', 'model', 'user', 'tag', 'episode', 'tool'));
CREATE INDEX purses_of_episodes ON purses (changed_at) WHERE facet IN ('episode', 'tool');

-- Of a slice of which nothing is open and nothing is not used, slices.trimmed_at is infinity: nobody needs to ask for it.
