-- The private clones of tasks. A row is written before its folder is made, and
-- removed after the folder is gone, so no folder is without a row.
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
