-- What an autopilot has ordered of an engine, one row a task: what the engine says is held against it.
CREATE TABLE orders (
  id        TEXT    NOT NULL PRIMARY KEY, -- the task's
  revision  INTEGER NOT NULL,             -- the number in case_history of the start that it is for
  workflow  TEXT    NOT NULL,             -- as the engine calls it; no other order ever has the name
  execution TEXT    NOT NULL,             -- the engine's own id of it, '' until that is known
  base      TEXT    NOT NULL,
  asked     TEXT    NOT NULL,
  result    TEXT    NOT NULL,             -- as the worker has it, '' until the run rests
  secret    TEXT    NOT NULL,
  at        INTEGER NOT NULL
);
