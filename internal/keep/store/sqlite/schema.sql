-- After 0018_reverted: written by go test ./internal/keep/store -run Whole -rewrite
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
, person TEXT NOT NULL DEFAULT '', host   TEXT NOT NULL DEFAULT '');

CREATE INDEX controls_open ON controls (run) WHERE taken_at = 0;

CREATE TABLE learned (
  class     TEXT   NOT NULL,
  strategy  TEXT   NOT NULL,
  wins      BIGINT NOT NULL,
  losses    BIGINT NOT NULL,
  day       BIGINT NOT NULL, -- since 1970, up to which they have faded
  successes BIGINT NOT NULL,
  failures  BIGINT NOT NULL,
  used_at   BIGINT NOT NULL, -- milliseconds since 1970
  PRIMARY KEY (class, strategy)
);

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

CREATE TABLE case_texts (
  id          TEXT NOT NULL PRIMARY KEY REFERENCES cases (id) ON DELETE CASCADE,
  description TEXT NOT NULL,
  acceptance  TEXT NOT NULL -- JSON list
, control TEXT NOT NULL DEFAULT 'null', verify TEXT NOT NULL DEFAULT 'null', sealed TEXT NOT NULL DEFAULT 'null');

CREATE TABLE case_needs (
  dependent TEXT NOT NULL REFERENCES cases (id) ON DELETE CASCADE,
  need      TEXT NOT NULL REFERENCES cases (id),
  PRIMARY KEY (dependent, need)
) WITHOUT ROWID;

CREATE INDEX case_needs_by_need ON case_needs (need);

CREATE TABLE case_history (
  seq         INTEGER PRIMARY KEY AUTOINCREMENT,
  id          TEXT   NOT NULL,
  at          BIGINT NOT NULL,
  action      TEXT   NOT NULL,
  actor       TEXT   NOT NULL,
  from_status TEXT   NOT NULL,
  to_status   TEXT   NOT NULL,
  why         TEXT   NOT NULL
, person TEXT NOT NULL DEFAULT '', host   TEXT NOT NULL DEFAULT '');

CREATE INDEX case_history_of_case ON case_history (id);

CREATE TABLE case_numbers (
  type TEXT   NOT NULL PRIMARY KEY,
  last BIGINT NOT NULL
);

CREATE TABLE workspaces (
  id          TEXT   NOT NULL PRIMARY KEY, -- the task; of a clone that waits for one, a name of its own
  kind        TEXT   NOT NULL,             -- task, integration, warm
  state       TEXT   NOT NULL,             -- making, held, kept, warm, removing
  why         TEXT   NOT NULL,             -- why it is kept
  repo        TEXT   NOT NULL,             -- git directory of the repository that it borrows from
  dir         TEXT   NOT NULL,             -- the folder
  own         TEXT   NOT NULL,             -- pawl's folder for it
  folder      TEXT   NOT NULL,             -- device and inode of the folder, '' before it is there
  branch      TEXT   NOT NULL,
  base        TEXT   NOT NULL,             -- commit
  head        TEXT   NOT NULL,             -- commit that was collected last, '' is none
  ports       BIGINT NOT NULL,             -- first of the block, 0 is none
  setup       TEXT   NOT NULL,             -- hash of the setup that was done, '' is none
  landed      BIGINT NOT NULL,
  owner_pid   BIGINT NOT NULL,
  owner_start TEXT   NOT NULL,
  owner_boot  TEXT   NOT NULL,
  owner_host  TEXT   NOT NULL,
  taken_at    BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  keep_until  BIGINT NOT NULL              -- 0 is without end
);

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

CREATE TABLE queue_entries (
  target TEXT NOT NULL REFERENCES queues (target) ON DELETE CASCADE,
  task   TEXT NOT NULL,
  entry  TEXT NOT NULL,
  PRIMARY KEY (target, task)
) WITHOUT ROWID;

CREATE TABLE queue_asks (
  id       INTEGER PRIMARY KEY AUTOINCREMENT,
  target   TEXT   NOT NULL,
  event    TEXT   NOT NULL,
  at       BIGINT NOT NULL,
  taken_at BIGINT NOT NULL
);

CREATE INDEX queue_asks_open ON queue_asks (target) WHERE taken_at = 0;

CREATE TABLE landings (
  seq    INTEGER PRIMARY KEY AUTOINCREMENT,
  target TEXT   NOT NULL,
  task   TEXT   NOT NULL,
  id     TEXT   NOT NULL, -- of the commit
  at     BIGINT NOT NULL,
  data   TEXT   NOT NULL
);

CREATE INDEX landings_of_task ON landings (task);

CREATE TABLE gate_records (
  key    TEXT   NOT NULL PRIMARY KEY,
  tree   TEXT   NOT NULL,
  green  BIGINT NOT NULL,
  at     BIGINT NOT NULL,
  record TEXT   NOT NULL
);

CREATE INDEX gate_records_of_tree ON gate_records (tree);

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
, options TEXT NOT NULL DEFAULT '', turn BIGINT NOT NULL DEFAULT 0);

CREATE TABLE slots (
  id          TEXT   NOT NULL PRIMARY KEY, -- the task's
  run         TEXT   NOT NULL,
  since       BIGINT NOT NULL,
  activity    TEXT   NOT NULL,
  activity_at BIGINT NOT NULL
);

CREATE TABLE autopilot_controls (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT   NOT NULL,
  text TEXT   NOT NULL,
  at   BIGINT NOT NULL
, who TEXT NOT NULL DEFAULT '');

CREATE TABLE sprints (
  id         TEXT   NOT NULL PRIMARY KEY, -- YYYY-MM-DD-NNN
  started_at BIGINT NOT NULL,
  ended_at   BIGINT NOT NULL, -- 0: it runs, or was never ended
  stats      TEXT   NOT NULL
);

CREATE TABLE case_limits (
  id             TEXT   NOT NULL PRIMARY KEY REFERENCES cases (id) ON DELETE CASCADE,
  max_iterations BIGINT NOT NULL,
  timeout        BIGINT NOT NULL, -- milliseconds
  at             BIGINT NOT NULL
);

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

CREATE INDEX runs_of_task ON runs (name, started_at) WHERE kind = 'task';

CREATE INDEX sprints_by_start ON sprints (started_at, ended_at, id);

CREATE TABLE tallies (
  quarter         BIGINT NOT NULL, -- of an hour, since 1970
  sprint          TEXT   NOT NULL, -- that ran then, '' is none
  agent           TEXT   NOT NULL, -- '' is none
  iterations      BIGINT NOT NULL DEFAULT 0, -- without attempts that a provider's limit cut off
  succeeded       BIGINT NOT NULL DEFAULT 0, -- of these
  failed          BIGINT NOT NULL DEFAULT 0, -- of these
  retries         BIGINT NOT NULL DEFAULT 0, -- of these, those after a failed one of their run
  cured           BIGINT NOT NULL DEFAULT 0, -- of the retries, those that succeeded
  elapsed         BIGINT NOT NULL DEFAULT 0, -- milliseconds, of iterations and attempts
  fastest         BIGINT,                    -- milliseconds, of an iteration
  slowest         BIGINT,
  cost            BIGINT NOT NULL DEFAULT 0, -- micro-dollars, where it is known
  cost_known      BIGINT NOT NULL DEFAULT 0, -- of how many it is known
  tokens_in       BIGINT NOT NULL DEFAULT 0,
  tokens_out      BIGINT NOT NULL DEFAULT 0,
  waited          BIGINT NOT NULL DEFAULT 0, -- milliseconds, for providers and backoffs
  asked           BIGINT NOT NULL DEFAULT 0, -- milliseconds, for answers
  guards          BIGINT NOT NULL DEFAULT 0, -- that tripped
  conflicts       BIGINT NOT NULL DEFAULT 0, -- of landings
  started         BIGINT NOT NULL DEFAULT 0, -- tasks
  landed          BIGINT NOT NULL DEFAULT 0,
  gave_up         BIGINT NOT NULL DEFAULT 0, -- tasks that failed
  timed_out       BIGINT NOT NULL DEFAULT 0,
  blocked         BIGINT NOT NULL DEFAULT 0,
  task_iterations BIGINT NOT NULL DEFAULT 0, -- of the tasks that landed, in all their runs
  fewest          BIGINT,                    -- iterations of one of them
  most            BIGINT,
  PRIMARY KEY (quarter, sprint, agent)
) WITHOUT ROWID;

CREATE VIEW more AS SELECT * FROM tallies;

CREATE TRIGGER add_up INSTEAD OF INSERT ON more BEGIN
  INSERT INTO tallies (quarter, sprint, agent,
      iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out, waited, asked,
      guards, conflicts, started, landed, gave_up, timed_out, blocked, task_iterations, fewest, most)
    VALUES (
      NEW.quarter, NEW.sprint, NEW.agent, coalesce(NEW.iterations, 0), coalesce(NEW.succeeded, 0), coalesce(NEW.failed, 0),
      coalesce(NEW.retries, 0), coalesce(NEW.cured, 0), coalesce(NEW.elapsed, 0), NEW.fastest, NEW.slowest, coalesce(NEW.cost, 0),
      coalesce(NEW.cost_known, 0), coalesce(NEW.tokens_in, 0), coalesce(NEW.tokens_out, 0), coalesce(NEW.waited, 0), coalesce(NEW.asked, 0),
      coalesce(NEW.guards, 0), coalesce(NEW.conflicts, 0), coalesce(NEW.started, 0), coalesce(NEW.landed, 0), coalesce(NEW.gave_up, 0),
      coalesce(NEW.timed_out, 0), coalesce(NEW.blocked, 0), coalesce(NEW.task_iterations, 0), NEW.fewest, NEW.most)
    ON CONFLICT (quarter, sprint, agent) DO UPDATE SET
      iterations = iterations + excluded.iterations, succeeded = succeeded + excluded.succeeded, failed = failed + excluded.failed,
      retries = retries + excluded.retries, cured = cured + excluded.cured, elapsed = elapsed + excluded.elapsed,
      fastest = coalesce(min(fastest, excluded.fastest), fastest, excluded.fastest),
      slowest = coalesce(max(slowest, excluded.slowest), slowest, excluded.slowest), cost = cost + excluded.cost,
      cost_known = cost_known + excluded.cost_known, tokens_in = tokens_in + excluded.tokens_in,
      tokens_out = tokens_out + excluded.tokens_out, waited = waited + excluded.waited, asked = asked + excluded.asked,
      guards = guards + excluded.guards, conflicts = conflicts + excluded.conflicts, started = started + excluded.started,
      landed = landed + excluded.landed, gave_up = gave_up + excluded.gave_up, timed_out = timed_out + excluded.timed_out,
      blocked = blocked + excluded.blocked, task_iterations = task_iterations + excluded.task_iterations,
      fewest = coalesce(min(fewest, excluded.fewest), fewest, excluded.fewest),
      most = coalesce(max(most, excluded.most), most, excluded.most);
END;

CREATE VIEW iteration_facts AS
  SELECT i.run, i.number, i.attempt, i.started_at / 900000 AS quarter,
    CASE r.kind WHEN 'task' THEN coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= i.started_at THEN s.id END
      FROM sprints s WHERE s.started_at <= i.started_at ORDER BY s.started_at DESC LIMIT 1), '') ELSE '' END AS sprint,
    coalesce(json_extract(i.record, '$.agent'), '') AS agent,
    i.outcome <> 'waited' AS iterations, i.outcome = 'success' AS succeeded, i.outcome = 'failed' AS failed,
    i.outcome <> 'waited' AND p.outcome IS 'failed' AS retries, i.outcome = 'success' AND p.outcome IS 'failed' AS cured,
    i.elapsed, CASE WHEN i.outcome <> 'waited' THEN i.elapsed END AS took,
    CASE WHEN coalesce(json_extract(i.record, '$.cost_source'), 'none') IN ('none', '') THEN 0
      ELSE coalesce(json_extract(i.record, '$.cost_micro_usd'), 0) END AS cost,
    coalesce(json_extract(i.record, '$.cost_source'), 'none') NOT IN ('none', '') AS cost_known,
    coalesce(json_extract(i.record, '$.tokens_in'), 0) AS tokens_in, coalesce(json_extract(i.record, '$.tokens_out'), 0) AS tokens_out
  FROM iterations i JOIN runs r ON r.id = i.run
    LEFT JOIN iterations p ON p.run = i.run AND p.number = i.number - 1
      AND p.attempt = (SELECT max(q.attempt) FROM iterations q WHERE q.run = i.run AND q.number = i.number - 1);

CREATE TRIGGER tally_iteration AFTER INSERT ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, took, took, cost, cost_known, tokens_in, tokens_out
    FROM iteration_facts WHERE run = NEW.run AND number = NEW.number AND attempt = NEW.attempt;
END;

CREATE TRIGGER untally_iteration BEFORE UPDATE ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, -iterations, -succeeded, -failed, -retries, -cured, -elapsed, -cost, -cost_known, -tokens_in, -tokens_out
    FROM iteration_facts WHERE run = OLD.run AND number = OLD.number AND attempt = OLD.attempt;
END;

CREATE TRIGGER retally_iteration AFTER UPDATE ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, took, took, cost, cost_known, tokens_in, tokens_out
    FROM iteration_facts WHERE run = NEW.run AND number = NEW.number AND attempt = NEW.attempt;
END;

CREATE TRIGGER tally_event AFTER INSERT ON events
WHEN NEW.kind IN ('wait.over', 'answered', 'queue.conflict') OR NEW.kind = 'iteration.ended' AND instr(NEW.data, '"guard"') BEGIN
  INSERT INTO more (quarter, sprint, agent, waited, asked, guards, conflicts)
    SELECT quarter, sprint, agent, waited, asked, guards, conflicts FROM event_facts WHERE seq = NEW.seq;
END;

CREATE TRIGGER tally_case AFTER INSERT ON case_history
WHEN NEW.action IN ('start', 'land', 'fail', 'expire', 'block') BEGIN
  INSERT INTO more (quarter, sprint, agent, started, landed, gave_up, timed_out, blocked, task_iterations, fewest, most)
    SELECT quarter, sprint, agent, started, landed, gave_up, timed_out, blocked, task_iterations, task_iterations, task_iterations
    FROM case_facts WHERE seq = NEW.seq;
END;

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

CREATE TABLE trial_attempts (
  key         TEXT    NOT NULL PRIMARY KEY,
  owner_pid   INTEGER NOT NULL, -- 0 while it is left
  owner_start TEXT    NOT NULL,
  owner_boot  TEXT    NOT NULL,
  owner_host  TEXT    NOT NULL,
  place       TEXT    NOT NULL, -- the folder on that machine that has its files
  cost        INTEGER NOT NULL, -- millionths of a US dollar: of it, or what is kept for it until it is made
  result      TEXT    NOT NULL  -- JSON; '' until it is made
);

CREATE VIEW event_facts AS
  SELECT e.seq, e.at / 900000 AS quarter,
    CASE WHEN coalesce(r.kind, 'task') <> 'task' THEN '' ELSE
      coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= e.at THEN s.id END
      FROM sprints s WHERE s.started_at <= e.at ORDER BY s.started_at DESC LIMIT 1), '') END AS sprint,
    CASE e.kind WHEN 'queue.conflict' THEN coalesce((SELECT t.agent FROM runs t
      WHERE t.kind = 'task' AND t.name = json_extract(e.data, '$.id') ORDER BY t.started_at DESC LIMIT 1), '')
      ELSE coalesce(r.agent, '') END AS agent,
    CASE e.kind WHEN 'wait.over' THEN max(0, e.at - coalesce((SELECT p.at FROM events p
      WHERE p.run = e.run AND p.n < e.n AND p.kind IN ('iteration.ended', 'iteration.reviewed', 'recovered', 'run.resumed', 'wait.started') ORDER BY p.n DESC LIMIT 1), e.at)) ELSE 0 END AS waited,
    CASE e.kind WHEN 'answered' THEN max(0, e.at - coalesce((SELECT p.at FROM events p
      WHERE p.run = e.run AND p.n < e.n AND p.kind = 'question.asked' ORDER BY p.n DESC LIMIT 1), e.at)) ELSE 0 END AS asked,
    e.kind = 'iteration.ended' AS guards, e.kind = 'queue.conflict' AS conflicts
  FROM events e LEFT JOIN runs r ON r.id = e.run
  WHERE e.kind IN ('wait.over', 'answered', 'queue.conflict')
    OR e.kind = 'iteration.ended' AND json_extract(e.data, '$.next.guard') IS NOT NULL;

CREATE VIEW case_facts AS
  SELECT h.seq, h.at / 900000 AS quarter,
    coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= h.at THEN s.id END
      FROM sprints s WHERE s.started_at <= h.at ORDER BY s.started_at DESC LIMIT 1), '') AS sprint,
    -- A task is started before it has an agent.
    CASE h.action WHEN 'start' THEN '' ELSE
      coalesce((SELECT r.agent FROM runs r WHERE r.kind = 'task' AND r.name = h.id ORDER BY r.started_at DESC LIMIT 1), '') END AS agent,
    h.action = 'start' AS started, h.landed, h.action = 'fail' AS gave_up,
    h.action = 'expire' AS timed_out, h.action = 'block' AS blocked,
    CASE h.landed WHEN 1 THEN (SELECT sum(r.iteration) FROM runs r WHERE r.kind = 'task'
      AND r.name IN (h.id, h.id || '-merge', h.id || '-race2', h.id || '-race3', h.id || '-race4', h.id || '-race5')
      AND r.started_at <= h.at) END AS task_iterations
  FROM (SELECT l.*, CASE WHEN l.action = 'land' AND NOT EXISTS (SELECT 1 FROM case_history b
      WHERE b.id = l.id AND b.seq > l.seq AND b.action = 'reopen') THEN 1 ELSE 0 END AS landed FROM case_history l) h
    JOIN cases c ON c.id = h.id AND c.type = 'task'
  WHERE h.action IN ('start', 'land', 'fail', 'expire', 'block');

CREATE TRIGGER untally_case BEFORE INSERT ON case_history WHEN NEW.action = 'reopen' BEGIN
  INSERT INTO more (quarter, sprint, agent, landed, task_iterations)
    SELECT quarter, sprint, agent, -landed, -task_iterations FROM case_facts WHERE landed = 1
      AND seq = (SELECT max(seq) FROM case_history WHERE id = NEW.id AND action = 'land');
END;
