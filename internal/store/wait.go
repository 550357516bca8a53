package store

import (
	"cmp"

	"github.com/pawl-dev/pawl/internal/files"
)

// OnWait has tell called when a write has waited a while for the database that
// somebody else has locked, once a write, by the goroutine that writes. It is
// set before the store is used.
func (s *Store) OnWait(tell func(holder string)) { s.tell = tell }

// waits says for whom a write waits.
func (s *Store) waits() {
	if s.tell != nil {
		s.tell(s.holder())
	}
}

// Where SQLite keeps its locks. Readers lock bytes of the database, and an exclusive
// user locks all of these. The writer locks a byte in the index of the log.
const (
	aloneAt   = 0x40000002
	aloneLen  = 510
	writerAt  = 120
	writerLen = 1
)

// holder is who has the database locked, as far as the system tells.
func (s *Store) holder() string {
	return cmp.Or(files.Holder(s.path+"-shm", writerAt, writerLen), files.Holder(s.path, aloneAt, aloneLen),
		"another process")
}
