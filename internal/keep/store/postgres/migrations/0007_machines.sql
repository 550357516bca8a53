-- Which boot of a machine a worker runs in: two machines may have one host name.
ALTER TABLE workers ADD COLUMN boot TEXT COLLATE "C" NOT NULL DEFAULT '';
