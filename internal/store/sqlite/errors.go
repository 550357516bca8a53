package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/ncruces/go-sqlite3"

	"github.com/pawl-dev/pawl/internal/store/database"
)

// Passing is true while others have the file locked.
func (d *DB) Passing(err error) bool { return errors.Is(err, sqlite3.BUSY) }

// Lost is never true: a file stays.
func (d *DB) Lost(error) bool { return false }

// Ended is true for a call that was interrupted.
func (d *DB) Ended(err error) bool { return errors.Is(err, sqlite3.INTERRUPT) }

// Diagnose says which error it is, and what the person can do about it.
func (d *DB) Diagnose(err error) (text string, kind error) {
	advice, kind := diagnose(err)
	switch {
	case kind == nil:
		return "", nil
	case errors.Is(kind, database.ErrBusy):
		return fmt.Sprintf("%s has %s locked; %s", d.holder(), d.path, advice), kind
	case errors.Is(kind, database.ErrDamaged):
		advice = d.restoring()
	}
	return fmt.Sprintf("%s: %v; %s", d.path, err, advice), kind
}

func diagnose(err error) (advice string, kind error) {
	switch {
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, sqlite3.CORRUPT):
		return "", database.ErrDamaged
	case errors.Is(err, sqlite3.FULL), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on its disk", database.ErrUnwritable
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.PERM), errors.Is(err, sqlite3.AUTH),
		errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return "make the file and its folder writable for you", database.ErrUnwritable
	case errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG),
		errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, fs.ErrNotExist):
		return "check that its folder exists and is writable for you", database.ErrUnwritable
	case errors.Is(err, sqlite3.IOERR), errors.Is(err, syscall.EIO):
		return "check its disk", database.ErrUnwritable
	case errors.Is(err, sqlite3.BUSY):
		return "let it end, or end it, and try again", database.ErrBusy
	}
	return "", nil
}
