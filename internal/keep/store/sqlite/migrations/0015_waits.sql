-- A wait begins with the event that ordered it, most often the end of an iteration.
DROP VIEW event_facts;
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
