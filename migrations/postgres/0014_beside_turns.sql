-- What is no turn of its run spends the run's money all the same, as a call for vectors does: 0 there, else 1.
ALTER TABLE reservations ADD COLUMN turns BIGINT NOT NULL DEFAULT 1 CHECK (turns IN (0, 1));
ALTER TABLE resolutions ADD COLUMN turns BIGINT NOT NULL DEFAULT 1 CHECK (turns IN (0, 1));

-- What each request counts for under the limits: what it was charged, or all that is set aside for it.
CREATE OR REPLACE VIEW uses AS
SELECT v.epoch, r.account, r.model, r.end_user, r.tag, r.admitted_at, r.money, r.thinking, r.tool_calls,
       (r.how <> 'voided')::int::bigint AS requests, 0::bigint AS concurrency, r.episode, r.tools,
       (r.how <> 'voided')::int * r.turns AS turns
FROM resolutions r JOIN reservations v ON v.id = r.reservation
UNION ALL
SELECT v.epoch, v.account,
       coalesce((SELECT model FROM extensions WHERE reservation = v.id ORDER BY step DESC LIMIT 1), v.model),
       v.end_user, v.tag, v.admitted_at,
       v.money + coalesce((SELECT sum(money) FROM extensions WHERE reservation = v.id), 0)::bigint,
       v.thinking + coalesce((SELECT sum(thinking) FROM extensions WHERE reservation = v.id), 0)::bigint,
       v.tool_calls + coalesce((SELECT sum(tool_calls) FROM extensions WHERE reservation = v.id), 0)::bigint,
       1::bigint, 1::bigint, v.episode, v.tools, v.turns
FROM reservations v WHERE NOT EXISTS (SELECT 1 FROM resolutions r WHERE r.reservation = v.id);
