-- The processes that own something, and when each was heard of last, by the clock of
-- the server.
CREATE TABLE leases (
  pid     BIGINT NOT NULL,
  start   TEXT   COLLATE "C" NOT NULL,
  boot    TEXT   COLLATE "C" NOT NULL,
  host    TEXT   COLLATE "C" NOT NULL,
  beat_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (host, boot, pid, start)
);
