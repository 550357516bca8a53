-- Who did something with a case, and on which machine; "" was not recorded.
ALTER TABLE case_history ADD COLUMN person TEXT NOT NULL DEFAULT '';
ALTER TABLE case_history ADD COLUMN host   TEXT NOT NULL DEFAULT '';
