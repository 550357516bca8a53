-- What happened, summed up as it is stored: statistics never read the history.
-- A row is a quarter of an hour, since every zone's days are whole quarters.
-- The facts say what a row of the history counts for, the triggers add it.
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

-- A row that is added to this view is added up with what is there.
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

CREATE VIEW event_facts AS
  SELECT e.seq, e.at / 900000 AS quarter,
    CASE WHEN coalesce(r.kind, 'task') <> 'task' THEN '' ELSE
      coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= e.at THEN s.id END
      FROM sprints s WHERE s.started_at <= e.at ORDER BY s.started_at DESC LIMIT 1), '') END AS sprint,
    CASE e.kind WHEN 'queue.conflict' THEN coalesce((SELECT t.agent FROM runs t
      WHERE t.kind = 'task' AND t.name = json_extract(e.data, '$.id') ORDER BY t.started_at DESC LIMIT 1), '')
      ELSE coalesce(r.agent, '') END AS agent,
    CASE e.kind WHEN 'wait.over' THEN max(0, e.at - coalesce((SELECT p.at FROM events p
      WHERE p.run = e.run AND p.n < e.n AND p.kind = 'wait.started' ORDER BY p.n DESC LIMIT 1), e.at)) ELSE 0 END AS waited,
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
    h.action = 'start' AS started, h.action = 'land' AS landed, h.action = 'fail' AS gave_up,
    h.action = 'expire' AS timed_out, h.action = 'block' AS blocked,
    CASE h.action WHEN 'land' THEN (SELECT sum(r.iteration) FROM runs r WHERE r.kind = 'task' AND r.name = h.id) END AS task_iterations
  FROM case_history h JOIN cases c ON c.id = h.id AND c.type = 'task'
  WHERE h.action IN ('start', 'land', 'fail', 'expire', 'block');

CREATE TRIGGER tally_iteration AFTER INSERT ON iterations BEGIN
  INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out)
    SELECT quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, took, took, cost, cost_known, tokens_in, tokens_out
    FROM iteration_facts WHERE run = NEW.run AND number = NEW.number AND attempt = NEW.attempt;
END;

-- A step that is stored again replaces its iteration: what that counted for goes
-- first. What was the fastest or the slowest stays.
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

-- What happened before.
INSERT INTO more (quarter, sprint, agent, iterations, succeeded, failed, retries, cured, elapsed, fastest, slowest, cost, cost_known, tokens_in, tokens_out)
  SELECT quarter, sprint, agent, sum(iterations), sum(succeeded), sum(failed), sum(retries), sum(cured), sum(elapsed), min(took), max(took), sum(cost), sum(cost_known), sum(tokens_in), sum(tokens_out)
  FROM iteration_facts GROUP BY quarter, sprint, agent;
INSERT INTO more (quarter, sprint, agent, waited, asked, guards, conflicts)
  SELECT quarter, sprint, agent, sum(waited), sum(asked), sum(guards), sum(conflicts) FROM event_facts GROUP BY quarter, sprint, agent;
INSERT INTO more (quarter, sprint, agent, started, landed, gave_up, timed_out, blocked, task_iterations, fewest, most)
  SELECT quarter, sprint, agent, sum(started), sum(landed), sum(gave_up), sum(timed_out), sum(blocked), sum(task_iterations), min(task_iterations), max(task_iterations)
  FROM case_facts GROUP BY quarter, sprint, agent;
