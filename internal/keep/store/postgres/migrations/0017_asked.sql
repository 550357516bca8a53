-- Who asked something of a run or of the autopilot, and on which machine; "" was not recorded.
ALTER TABLE controls ADD COLUMN person TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE controls ADD COLUMN host   TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE autopilot_controls ADD COLUMN who TEXT COLLATE "C" NOT NULL DEFAULT '';
