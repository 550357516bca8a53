-- What another process needs to go on with the autopilot, '' is nothing, and how often
-- one began to drive it.
ALTER TABLE autopilot ADD COLUMN options TEXT COLLATE "C" NOT NULL DEFAULT '';
ALTER TABLE autopilot ADD COLUMN turn BIGINT NOT NULL DEFAULT 0;
