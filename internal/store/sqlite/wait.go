package sqlite

import (
	"cmp"

	"github.com/pawl-dev/pawl/internal/files"
)

// Where SQLite keeps its locks. Readers lock bytes of the database, and an exclusive
// user locks all of these. The writer locks a byte in the index of the log.
const (
	aloneAt   = 0x40000002
	aloneLen  = 510
	writerAt  = 120
	writerLen = 1
)

// Waited is who has the file locked.
func (d *DB) Waited(error) string { return "which " + d.holder() + " has locked" }

// holder is who has the database locked, as far as the system tells.
func (d *DB) holder() string {
	return cmp.Or(files.Holder(d.path+"-shm", writerAt, writerLen), files.Holder(d.path, aloneAt, aloneLen),
		"another process")
}
