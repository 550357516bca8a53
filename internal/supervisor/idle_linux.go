package supervisor

import (
	"io/fs"
	"syscall"
	"time"
)

// changed is when content or name of a file changed last: an unpacked archive
// sets old times of content.
func changed(info fs.FileInfo) time.Time {
	at := info.ModTime()
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		//nolint:unconvert // the fields are 32 bits wide on some machines
		if ctime := time.Unix(int64(st.Ctim.Sec), int64(st.Ctim.Nsec)); ctime.After(at) {
			return ctime
		}
	}
	return at
}
