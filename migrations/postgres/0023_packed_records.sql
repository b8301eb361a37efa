-- A request record's decision and outcome, packed, in rows that were copied from a SQLite file. Such a row's texts are empty.

ALTER TABLE stories ADD COLUMN packed BYTEA;
