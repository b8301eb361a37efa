-- What is no turn of its run spends the run's money all the same, as a call for vectors does: 0 there, else 1.
ALTER TABLE reservations ADD COLUMN turns INTEGER NOT NULL DEFAULT 1 CHECK (turns IN (0, 1));
ALTER TABLE resolutions ADD COLUMN turns INTEGER NOT NULL DEFAULT 1 CHECK (turns IN (0, 1));
