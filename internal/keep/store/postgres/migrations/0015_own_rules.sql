-- Why a worker judges by a configuration of its own, and not by the target's; "" where it does not.
ALTER TABLE workers ADD COLUMN own_rules TEXT COLLATE "C" NOT NULL DEFAULT '';
