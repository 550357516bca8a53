-- The attempts of trials, and the words that agents write for them. All machines of a board make them together.
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
