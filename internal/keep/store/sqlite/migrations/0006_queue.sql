-- Merge queues, one a target. Times are milliseconds since 1970, UTC.
CREATE TABLE queues (
  target      TEXT   NOT NULL PRIMARY KEY, -- the full name of the ref
  n           BIGINT NOT NULL, -- number of the last step
  owner_pid   BIGINT NOT NULL, -- 0: nobody works on it
  owner_start TEXT   NOT NULL,
  owner_boot  TEXT   NOT NULL,
  owner_host  TEXT   NOT NULL,
  updated_at  BIGINT NOT NULL,
  state       TEXT   NOT NULL -- without its entries
);

-- Apart from the state, so that a step writes only what it changed.
CREATE TABLE queue_entries (
  target TEXT NOT NULL REFERENCES queues (target) ON DELETE CASCADE,
  task   TEXT NOT NULL,
  entry  TEXT NOT NULL,
  PRIMARY KEY (target, task)
) WITHOUT ROWID;

-- What other processes ask of a queue: entries to add, wishes of people, ends
-- of agents' runs at a conflict.
CREATE TABLE queue_asks (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  target   TEXT   NOT NULL,
  event    TEXT   NOT NULL,
  at       BIGINT NOT NULL,
  taken_at BIGINT NOT NULL
);
CREATE INDEX queue_asks_open ON queue_asks (target) WHERE taken_at = 0;

-- What landed, in order.
CREATE TABLE landings (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT   NOT NULL,
  task   TEXT   NOT NULL,
  id     TEXT   NOT NULL, -- of the commit
  at     BIGINT NOT NULL,
  data   TEXT   NOT NULL
);
CREATE INDEX landings_of_task ON landings (task);

-- Verdicts of the gates, by (tree, definition of the gates, environment).
CREATE TABLE gate_records (
  key    TEXT   NOT NULL PRIMARY KEY,
  tree   TEXT   NOT NULL,
  green  BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  record TEXT   NOT NULL
);
CREATE INDEX gate_records_of_tree ON gate_records (tree);
