-- What an autopilot has ordered of an engine, one row a task: what the engine says is held against it.
CREATE TABLE orders (
  id        TEXT   COLLATE "C" NOT NULL PRIMARY KEY, -- the task's
  revision  BIGINT NOT NULL,                         -- the number in case_history of the start that it is for
  workflow  TEXT   COLLATE "C" NOT NULL,             -- as the engine calls it; no other order ever has the name
  execution TEXT   COLLATE "C" NOT NULL,             -- the engine's own id of it, '' until that is known
  base      TEXT   COLLATE "C" NOT NULL,
  asked     TEXT   COLLATE "C" NOT NULL,
  result    TEXT   COLLATE "C" NOT NULL,             -- as the worker has it, '' until the run rests
  secret    TEXT   COLLATE "C" NOT NULL,
  at        BIGINT NOT NULL
);
