-- A landing that was reverted does not count: what it was counted for goes.
INSERT INTO more (quarter, sprint, agent, landed, task_iterations)
  SELECT quarter, sprint, agent, -sum(landed), -sum(task_iterations) FROM case_facts
  WHERE landed = 1 AND seq IN (SELECT l.seq FROM case_history l JOIN case_history b
    ON b.id = l.id AND b.seq > l.seq AND b.action = 'reopen' WHERE l.action = 'land')
  GROUP BY quarter, sprint, agent;
CREATE OR REPLACE VIEW case_facts AS
  SELECT h.seq, h.at / 900000 AS quarter,
    coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= h.at THEN s.id END
      FROM sprints s WHERE s.started_at <= h.at ORDER BY s.started_at DESC LIMIT 1), '') AS sprint,
    -- A task is started before it has an agent.
    CASE h.action WHEN 'start' THEN '' ELSE
      coalesce((SELECT r.agent FROM runs r WHERE r.kind = 'task' AND r.name = h.id ORDER BY r.started_at DESC LIMIT 1), '') END AS agent,
    (h.action = 'start')::int AS started, h.landed, (h.action = 'fail')::int AS gave_up,
    (h.action = 'expire')::int AS timed_out, (h.action = 'block')::int AS blocked,
    CASE h.landed WHEN 1 THEN (SELECT sum(r.iteration) FROM runs r WHERE r.kind = 'task'
      AND r.name IN (h.id, h.id || '-merge', h.id || '-race2', h.id || '-race3', h.id || '-race4', h.id || '-race5')
      AND r.started_at <= h.at) END AS task_iterations
  FROM (SELECT l.*, CASE WHEN l.action = 'land' AND NOT EXISTS (SELECT 1 FROM case_history b
      WHERE b.id = l.id AND b.seq > l.seq AND b.action = 'reopen') THEN 1 ELSE 0 END AS landed FROM case_history l) h
    JOIN cases c ON c.id = h.id AND c.type = 'task'
  WHERE h.action IN ('start', 'land', 'fail', 'expire', 'block');

CREATE FUNCTION untally_case() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO more (quarter, sprint, agent, landed, task_iterations)
    SELECT quarter, sprint, agent, -landed, -task_iterations FROM case_facts WHERE landed = 1
      AND seq = (SELECT max(seq) FROM case_history WHERE id = NEW.id AND action = 'land');
  RETURN NEW;
END $$;
CREATE TRIGGER untally_case BEFORE INSERT ON case_history
  FOR EACH ROW WHEN (NEW.action = 'reopen') EXECUTE FUNCTION untally_case();
