-- The clock by which leases end and purses change. One place reads it, so that a test can set it apart from the machine's.
CREATE FUNCTION bank_clock() RETURNS TIMESTAMPTZ LANGUAGE sql VOLATILE AS 'SELECT clock_timestamp()';

ALTER TABLE replicas ALTER COLUMN began_at SET DEFAULT bank_clock();
ALTER TABLE purses ALTER COLUMN created_at SET DEFAULT bank_clock();
ALTER TABLE purses ALTER COLUMN changed_at SET DEFAULT bank_clock();
