package git

import (
	"bytes"
	"crypto/sha1" //nolint:gosec // git's own checksum
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Git compares the times of files by the second. Whoever changes a file within the second
// in which git read it, and gives it its size and time again, is not seen: neither then
// nor later. So a scan reads each file again that had changed since the scan before began.

// clockLag is how far the clock that files are stamped with may be behind.
const clockLag = 100 * time.Millisecond

func (x *Index) scannedFile() string { return x.file + ".scanned" }

// noteScan keeps the time from which on files may have changed unseen.
func (x *Index) noteScan(began time.Time) error {
	file := x.scannedFile()
	err := files.SetTime(file, began)
	if errors.Is(err, fs.ErrNotExist) {
		if err = os.WriteFile(file, nil, 0o600); err == nil {
			err = files.SetTime(file, began)
		}
	}
	if err != nil {
		return fmt.Errorf("cannot note the time of a scan: %w", err)
	}
	return nil
}

// forgetRecent takes from the index the times of the files that had changed since its
// last scan began, or of all files when no scan was noted: git reads them. It edits the
// index itself, since each git that is started costs more than the whole scan of a small
// repository.
func (x *Index) forgetRecent() error {
	info, err := os.Stat(x.file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	var since time.Time
	if noted, err := os.Lstat(x.scannedFile()); err == nil {
		since = noted.ModTime().Add(-clockLag)
	}
	index, err := os.ReadFile(x.file)
	if err != nil {
		return err
	}
	n, err := forgetTimes(index, x.shadow.Repo.Format, since)
	if err != nil {
		return fmt.Errorf("cannot read the index %s: %w", x.file, err)
	}
	if n == 0 {
		return nil
	}
	if err := files.Replace(x.file, index, 0o600, false); err != nil {
		return err
	}
	return files.SetTime(x.file, info.ModTime()) // git compares it with those of files
}

// forgetTimes takes the times of files from an index where they have changed in the
// second of since or later, and says of how many. The format is that of git's
// documentation, gitformat-index, of versions 2 to 4.
func forgetTimes(index []byte, format string, since time.Time) (n int, err error) {
	const header, stat, changed, modified = 12, 40, 0, 16 // times are 8 bytes each
	id, sum := sha1.Size, sha1Of
	if format == "sha256" {
		id, sum = sha256.Size, sha256Of
	}
	end := len(index) - id // of what the checksum is of
	if end < header || string(index[:4]) != "DIRC" {
		return 0, errBadIndex
	}
	version, left := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version < 2 || version > 4 {
		return 0, errBadIndex
	}
	for at := header; left > 0; left-- {
		name := at + stat + id + 2
		if name >= end {
			return n, errBadIndex
		}
		if index[name-2]&0x40 != 0 { // more flags follow
			name += 2
		}
		if version == 4 { // how much the name has of the one before it
			for name < end && index[name]&0x80 != 0 {
				name++
			}
			name++
		}
		length := bytes.IndexByte(index[min(name, end):end], 0)
		if length < 0 {
			return n, errBadIndex
		}
		times := index[at+changed : at+modified]
		if second := int64(binary.BigEndian.Uint32(times)); second >= since.Unix() && !isZero(times) {
			clear(times)
			n++
		}
		at = name + length + 1
		if version < 4 { // entries are filled up to eight bytes
			at += (header - at) & 7
		}
	}
	copy(index[end:], sum(index[:end]))
	return n, nil
}

var errBadIndex = errors.New("it is not what git writes")

func isZero(b []byte) bool { return len(bytes.Trim(b, "\x00")) == 0 }

func sha1Of(b []byte) []byte {
	sum := sha1.Sum(b) //nolint:gosec // git's own checksum
	return sum[:]
}

func sha256Of(b []byte) []byte {
	sum := sha256.Sum256(b)
	return sum[:]
}
