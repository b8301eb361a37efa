-- What responses take is discounted once for all that a statement deletes, account by account in their order: two replicas
-- that delete old responses of the same accounts never wait for each other.

CREATE FUNCTION discount_response_bytes() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM response_bytes WHERE account IN (SELECT account FROM gone) ORDER BY account FOR UPDATE;
    UPDATE response_bytes AS counted SET bytes = counted.bytes - freed.bytes
        FROM (SELECT account, sum(bytes)::bigint AS bytes FROM gone GROUP BY account) AS freed
        WHERE counted.account = freed.account;
    RETURN NULL;
END
$$;

DROP TRIGGER responses_counted ON responses;

CREATE TRIGGER responses_kept AFTER INSERT ON responses
    FOR EACH ROW EXECUTE FUNCTION count_response_bytes();

CREATE TRIGGER responses_deleted AFTER DELETE ON responses REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION discount_response_bytes();
