-- Which board this is. The row is written anew with each board that is made or put back from a copy, so
-- what it is, and where and by which transaction it was written, no other board has.
CREATE TABLE identity (id TEXT COLLATE "C" NOT NULL);
INSERT INTO identity VALUES (gen_random_uuid());
