package git

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Git compares the times of files by the second. A change within the second in
// which git read a file, with its size and time put back, is not seen: neither then nor
// later. So a scan reads each file again that had changed since the scan before began.

const (
	clockLag = 100 * time.Millisecond // how far the clock of files may be behind
	ownLimit = 4 << 30                // bytes of an index of pawl's own, of some 20 million files
)

func (x *Index) scannedFile() string { return x.file + ".scanned" }

// noteScan keeps the time from which on files may have changed unseen.
func (x *Index) noteScan(began time.Time) error {
	file := x.scannedFile()
	err := files.SetTime(file, began)
	if errors.Is(err, fs.ErrNotExist) {
		if err = files.Replace(file, nil, 0o600, false); err == nil {
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
	index, err := files.ReadBelow(filepath.Dir(x.file), filepath.Base(x.file), ownLimit)
	if err != nil {
		return err
	}
	n, err := forgetTimes(index, x.shadow.Repo.newObjectHash(), since)
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
// documentation, gitformat-index, in versions 2 and 3: git writes no other without a
// setting, and pawl's own repositories have none.
func forgetTimes(index []byte, sum hash.Hash, since time.Time) (n int, err error) {
	const header, stat = 12, 40    // bytes
	end := len(index) - sum.Size() // the rest is the checksum
	if end < header || string(index[:4]) != "DIRC" {
		return 0, errBadIndex
	}
	version, left := binary.BigEndian.Uint32(index[4:]), binary.BigEndian.Uint32(index[8:])
	if version != 2 && version != 3 {
		return 0, errBadIndex
	}
	for at := header; left > 0; left-- {
		name := at + stat + sum.Size() + 2
		if name >= end {
			return n, errBadIndex
		}
		if index[name-2]&0x40 != 0 { // more flags follow
			name += 2
		}
		length := bytes.IndexByte(index[min(name, end):end], 0)
		if length < 0 {
			return n, errBadIndex
		}
		times := index[at : at+16] // of its last change, and of that of its content
		if second := int64(binary.BigEndian.Uint32(times)); second >= since.Unix() && second != 0 {
			clear(times)
			n++
		}
		at = name + length + 1
		at += (header - at) & 7 // entries are filled up to eight bytes
	}
	sum.Write(index[:end])
	copy(index[end:], sum.Sum(nil))
	return n, nil
}

var errBadIndex = errors.New("it is not what git writes")
