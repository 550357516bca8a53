-- The attempts of trials, and the words that agents write for them. All machines of a board make them together.
CREATE TABLE trial_attempts (
  key         TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
  owner_pid   BIGINT NOT NULL,             -- 0 while it is left
  owner_start TEXT   COLLATE "C" NOT NULL,
  owner_boot  TEXT   COLLATE "C" NOT NULL,
  owner_host  TEXT   COLLATE "C" NOT NULL,
  place       TEXT   COLLATE "C" NOT NULL, -- the folder on that machine that has its files
  cost        BIGINT NOT NULL,             -- millionths of a US dollar: of it, or what is kept for it until it is made
  result      TEXT   COLLATE "C" NOT NULL  -- JSON; '' until it is made
);
