-- Local boards that were brought here, by the paths of their files.
CREATE TABLE imports (
  source TEXT   COLLATE "C" NOT NULL PRIMARY KEY,
  at     BIGINT NOT NULL
);
