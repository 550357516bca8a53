-- What a task took includes its agents at conflicts, and those that raced.
DROP VIEW case_facts;
CREATE VIEW case_facts AS
  SELECT h.seq, h.at / 900000 AS quarter,
    coalesce((SELECT CASE WHEN s.ended_at = 0 OR s.ended_at >= h.at THEN s.id END
      FROM sprints s WHERE s.started_at <= h.at ORDER BY s.started_at DESC LIMIT 1), '') AS sprint,
    -- A task is started before it has an agent.
    CASE h.action WHEN 'start' THEN '' ELSE
      coalesce((SELECT r.agent FROM runs r WHERE r.kind = 'task' AND r.name = h.id ORDER BY r.started_at DESC LIMIT 1), '') END AS agent,
    h.action = 'start' AS started, h.action = 'land' AS landed, h.action = 'fail' AS gave_up,
    h.action = 'expire' AS timed_out, h.action = 'block' AS blocked,
    CASE h.action WHEN 'land' THEN (SELECT sum(r.iteration) FROM runs r WHERE r.kind = 'task'
      AND r.name IN (h.id, h.id || '-merge', h.id || '-race2', h.id || '-race3', h.id || '-race4', h.id || '-race5')) END AS task_iterations
  FROM case_history h JOIN cases c ON c.id = h.id AND c.type = 'task'
  WHERE h.action IN ('start', 'land', 'fail', 'expire', 'block');
