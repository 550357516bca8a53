-- What was learned of strategies, by class of failure. successes and failures
-- are plain counts for people; wins and losses are in thousandths and fade.
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
