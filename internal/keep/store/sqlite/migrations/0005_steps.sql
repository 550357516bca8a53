-- Every execution of a workflow's step, the newest with the highest n. A step
-- is done when its newest execution says so. Times are milliseconds. The long
-- text comes last: a listing never reads its pages.
CREATE TABLE steps (
  run        TEXT   NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
  step       TEXT   NOT NULL, -- with its matrix values, below its workflow
  n          BIGINT NOT NULL, -- 1-based
  iteration  BIGINT NOT NULL,
  attempt    BIGINT NOT NULL,
  status     TEXT   NOT NULL,
  hash       TEXT   NOT NULL, -- of what the file says
  input      TEXT   NOT NULL, -- of what it was given
  started_at BIGINT NOT NULL,
  elapsed    BIGINT NOT NULL,
  record     TEXT   NOT NULL,
  output     TEXT   NOT NULL,
  PRIMARY KEY (run, step, n)
);
