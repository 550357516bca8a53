-- What the autopilot is and does. There is one row at most: one autopilot a repository.
CREATE TABLE autopilot (
  one          BIGINT NOT NULL PRIMARY KEY CHECK (one = 1),
  session      TEXT   NOT NULL,
  phase        TEXT   NOT NULL,
  mode         TEXT   NOT NULL,
  why          TEXT   NOT NULL,
  max_parallel BIGINT NOT NULL,
  exit         BIGINT NOT NULL,
  sprint       TEXT   NOT NULL, -- '' is none
  owner_pid    BIGINT NOT NULL, -- 0: it has ended
  owner_start  TEXT   NOT NULL,
  owner_boot   TEXT   NOT NULL,
  owner_host   TEXT   NOT NULL,
  started_at   BIGINT NOT NULL,
  updated_at   BIGINT NOT NULL,
  ended_at     BIGINT NOT NULL,
  state        TEXT   NOT NULL
);

-- What happens in its slots. A row of an autopilot that is gone says what it did last.
CREATE TABLE slots (
  id          TEXT   NOT NULL PRIMARY KEY, -- the task's
  run         TEXT   NOT NULL,
  since       BIGINT NOT NULL,
  activity    TEXT   NOT NULL,
  activity_at BIGINT NOT NULL
);

-- What other processes ask of it.
CREATE TABLE autopilot_controls (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT   NOT NULL,
  text TEXT   NOT NULL,
  at   BIGINT NOT NULL
);

CREATE TABLE sprints (
  id         TEXT   NOT NULL PRIMARY KEY, -- YYYY-MM-DD-NNN
  started_at BIGINT NOT NULL,
  ended_at   BIGINT NOT NULL, -- 0: it runs, or was never ended
  stats      TEXT   NOT NULL
);

-- Limits of single tasks, over those of the configuration. 0 is none.
CREATE TABLE case_limits (
  id             TEXT   NOT NULL PRIMARY KEY REFERENCES cases (id) ON DELETE CASCADE,
  max_iterations BIGINT NOT NULL,
  timeout        BIGINT NOT NULL, -- milliseconds
  at             BIGINT NOT NULL
);

-- Reviews by people: asked for, and decided.
CREATE TABLE case_reviews (
  seq        INTEGER PRIMARY KEY AUTOINCREMENT,
  id         TEXT   NOT NULL, -- the task's
  run        TEXT   NOT NULL,
  work       TEXT   NOT NULL, -- JSON: what is to land
  why        TEXT   NOT NULL,
  asked_at   BIGINT NOT NULL,
  decision   TEXT   NOT NULL, -- '' while it is open
  feedback   TEXT   NOT NULL,
  decided_at BIGINT NOT NULL
);
CREATE INDEX case_reviews_of_case ON case_reviews (id);
CREATE INDEX case_reviews_open ON case_reviews (seq) WHERE decision = '';
