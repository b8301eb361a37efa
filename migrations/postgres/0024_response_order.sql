-- Accounts are in the order of their bytes here, whatever order the database has for texts: replicas that store responses of several
-- accounts in one transaction lock the sums in that order, and so must who deletes old ones.

ALTER TABLE response_bytes ALTER COLUMN account TYPE TEXT COLLATE "C";
