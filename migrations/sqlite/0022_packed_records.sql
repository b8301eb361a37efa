-- A request record's decision and outcome, packed. Such a row's texts are empty. Each record took a page of its own.

ALTER TABLE stories ADD COLUMN packed BLOB;
