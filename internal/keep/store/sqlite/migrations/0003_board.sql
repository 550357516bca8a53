-- The board. Times are milliseconds since 1970, UTC. seq is the order in which
-- cases were added. ready is a stored state, and score holds only while it is 1.
CREATE TABLE cases (
  seq           INTEGER PRIMARY KEY AUTOINCREMENT,
  id            TEXT   NOT NULL UNIQUE,
  number        BIGINT NOT NULL, -- the counting part of the id
  type          TEXT   NOT NULL,
  title         TEXT   NOT NULL,
  tags          TEXT   NOT NULL, -- between line feeds, one before and one after each
  priority      BIGINT NOT NULL,
  parent        TEXT   NOT NULL, -- '' is none
  ref           TEXT   NOT NULL, -- '' is none
  status        TEXT   NOT NULL,
  why           TEXT   NOT NULL,
  retries       BIGINT NOT NULL,
  created_at    BIGINT NOT NULL,
  updated_at    BIGINT NOT NULL,
  ready         BIGINT NOT NULL,
  score         BIGINT NOT NULL,
  unmet         BIGINT NOT NULL, -- needs that are not done
  unblocks      BIGINT NOT NULL, -- cases that need it and are not done
  held          BIGINT NOT NULL,
  children      BIGINT NOT NULL,
  children_done BIGINT NOT NULL
);
CREATE INDEX cases_next ON cases (priority DESC, score DESC, created_at, number) WHERE ready = 1;
CREATE INDEX cases_of_parent ON cases (parent) WHERE parent <> '';
CREATE INDEX cases_by_status ON cases (status);
CREATE UNIQUE INDEX cases_by_ref ON cases (ref) WHERE ref <> '';

-- Apart from cases, so that a listing never reads the pages of long texts.
CREATE TABLE case_texts (
  id          TEXT NOT NULL PRIMARY KEY REFERENCES cases (id) ON DELETE CASCADE,
  description TEXT NOT NULL,
  acceptance  TEXT NOT NULL -- JSON list
);

CREATE TABLE case_needs (
  dependent TEXT NOT NULL REFERENCES cases (id) ON DELETE CASCADE,
  need      TEXT NOT NULL REFERENCES cases (id),
  PRIMARY KEY (dependent, need)
) WITHOUT ROWID;
CREATE INDEX case_needs_by_need ON case_needs (need);

-- What was done with cases, in order; it outlives a removed case.
CREATE TABLE case_history (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT   NOT NULL,
  at          BIGINT NOT NULL,
  action      TEXT   NOT NULL,
  actor       TEXT   NOT NULL,
  from_status TEXT   NOT NULL,
  to_status   TEXT   NOT NULL,
  why         TEXT   NOT NULL
);
CREATE INDEX case_history_of_case ON case_history (id);

-- The last number of each type: an id is never used twice.
CREATE TABLE case_numbers (
  type TEXT   NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
);
