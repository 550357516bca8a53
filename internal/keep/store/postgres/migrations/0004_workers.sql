-- The processes that work tasks of the board, and what each said of itself last.
CREATE TABLE workers (
  name    TEXT   COLLATE "C" PRIMARY KEY,
  host    TEXT   COLLATE "C" NOT NULL,
  pid     BIGINT NOT NULL,
  version TEXT   COLLATE "C" NOT NULL,
  labels  TEXT   COLLATE "C" NOT NULL,
  slots   BIGINT NOT NULL,
  used    BIGINT NOT NULL,
  drains  BIGINT NOT NULL,
  -- The worker's own clock, beside the server's.
  clock   BIGINT NOT NULL,
  beat_at TIMESTAMPTZ NOT NULL
);
