-- Times are milliseconds since 1970, UTC; 0 is none. Money is in micro-dollars.
-- Small columns come first: a listing then never reads the pages of the state.
CREATE TABLE runs (
  id             TEXT   NOT NULL PRIMARY KEY,
  kind           TEXT   NOT NULL,
  name           TEXT   NOT NULL,
  root           TEXT   NOT NULL,
  status         TEXT   NOT NULL,
  why            TEXT   NOT NULL,
  n              BIGINT NOT NULL, -- number of the last event
  iteration      BIGINT NOT NULL,
  max_iterations BIGINT NOT NULL,
  agent          TEXT   NOT NULL,
  cost           BIGINT NOT NULL,
  cost_known     BIGINT NOT NULL,
  tokens_in      BIGINT NOT NULL,
  tokens_out     BIGINT NOT NULL,
  owner_pid      BIGINT NOT NULL, -- 0: nobody drives the run
  owner_start    TEXT   NOT NULL,
  owner_boot     TEXT   NOT NULL,
  owner_host     TEXT   NOT NULL,
  started_at     BIGINT NOT NULL,
  updated_at     BIGINT NOT NULL,
  ended_at       BIGINT NOT NULL,
  elapsed        BIGINT NOT NULL, -- milliseconds
  state          TEXT   NOT NULL
);
CREATE INDEX runs_by_name ON runs (root, name, started_at);
CREATE INDEX runs_by_start ON runs (started_at);
CREATE INDEX runs_open ON runs (started_at) WHERE ended_at = 0;
CREATE INDEX runs_owned ON runs (root, name) WHERE owner_pid <> 0;

-- Apart from runs, since it is written once and the run at every step.
CREATE TABLE setups (
  run   TEXT NOT NULL PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
  setup TEXT NOT NULL
);

CREATE TABLE iterations (
  run        TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  number     BIGINT NOT NULL,
  attempt    BIGINT NOT NULL,
  outcome    TEXT   NOT NULL,
  started_at BIGINT NOT NULL,
  elapsed    BIGINT NOT NULL, -- milliseconds
  record     TEXT   NOT NULL,
  PRIMARY KEY (run, number, attempt)
);

-- AUTOINCREMENT: a seq is never used twice, also when old runs are deleted.
CREATE TABLE events (
  seq  INTEGER PRIMARY KEY AUTOINCREMENT,
  run  TEXT   NOT NULL,
  n    BIGINT, -- NULL: beside the run's own story
  at   BIGINT NOT NULL,
  kind TEXT   NOT NULL,
  data TEXT   NOT NULL
);
CREATE UNIQUE INDEX events_once ON events (run, n) WHERE n IS NOT NULL;
CREATE INDEX events_of_run ON events (run);

CREATE TABLE controls (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  run      TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  kind     TEXT   NOT NULL,
  text     TEXT   NOT NULL,
  at       BIGINT NOT NULL,
  taken_at BIGINT NOT NULL
);
CREATE INDEX controls_open ON controls (run) WHERE taken_at = 0;
