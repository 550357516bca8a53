package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"time"

	"github.com/ncruces/go-sqlite3"
	"github.com/ncruces/go-sqlite3/driver"

	"github.com/pawl-dev/pawl/internal/keep/files"
	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

// The database is the truth, so there is a second one: a copy beside it, made when it
// is opened or swept and the last copy is older than an hour. A database that is gone, empty or
// damaged while there is a copy is refused, with how the copy is put back: what it
// lacks was done since, and only a person can say that it may be done again.

// backupEvery is how old a copy gets before there is a new one.
const backupEvery = time.Hour

func (d *DB) backupPath() string { return d.path + ".backup" }

// errorLost returns an error if the database file does not exist any more.
func (d *DB) errorLost() error {
	info, err := os.Stat(d.path)
	empty := err == nil && info.Size() == 0
	gone := empty || errors.Is(err, fs.ErrNotExist)
	if _, err := os.Stat(d.backupPath()); !gone || err != nil {
		return nil //nolint:nilerr // without a copy it is a new one
	}
	return fmt.Errorf("%w: %s is gone or empty; %s", database.ErrDamaged, d.path, d.restoreHint())
}

// errorRemoved returns [database.ErrGone] if the file was removed while the database is
// open: what is written then is lost.
func (d *DB) errorRemoved(log written) error {
	if _, err := os.Stat(d.path); log != (written{}) || !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	what := "what had not landed is gone with it; begin with an empty board, or bring back a copy"
	if _, err := os.Stat(d.backupPath()); err == nil {
		what = d.restoreHint()
	}
	return fmt.Errorf("%w: %s; %s", database.ErrGone, d.path, what)
}

// restoreHint returns how a damaged database is replaced, for an error message.
func (d *DB) restoreHint() string {
	info, err := os.Stat(d.backupPath())
	if err != nil {
		return "pawl left it as it is; move it aside to start with an empty one, or bring back a copy"
	}
	return fmt.Sprintf("stop every pawl of the repository, and put back the copy of %s with: pawl doctor --restore; "+
		"or move both away to start with an empty one", info.ModTime().Format(minutes))
}

const minutes = "2006-01-02 15:04"

// Restore puts the copy in the place of a database that is gone or damaged, and says so.
// What was there stays beside it. A database that somebody has open stays as it is, and
// so it does where there is no copy, or no sound one.
func Restore(ctx context.Context, path string) (done string, err error) {
	d := &DB{path: path}
	info, err := os.Stat(d.backupPath())
	if err != nil {
		return "", fmt.Errorf("there is no copy of the database: %v", err)
	}
	if user := files.User(path, aloneAt, aloneLen); user != "" {
		return "", fmt.Errorf("%s has %s open; stop every pawl of the repository first", user, path)
	}
	fresh := path + ".restored"
	if err := (&DB{path: d.backupPath()}).copyDatabaseTo(ctx, fresh); err != nil {
		return "", fmt.Errorf("cannot read the copy %s: %v", d.backupPath(), err)
	}
	defer os.Remove(fresh)
	aside := path + ".damaged-" + time.Now().Format("20060102-150405.000")
	kept := false
	for _, end := range []string{"-shm", "-wal", ""} { // a log that is left would be played into the copy
		err := os.Rename(path+end, aside+end)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		kept = err == nil
	}
	if err := os.Rename(fresh, path); err != nil {
		return "", err
	}
	done = "The database is the copy of " + info.ModTime().Format(minutes) + " again."
	if kept {
		done += " What was there is kept as " + aside + "."
	}
	return done, nil
}

// BackUp makes a copy if it is time for one. Without room for it there is none.
func (d *DB) BackUp(ctx context.Context) {
	if info, err := os.Stat(d.backupPath()); err == nil {
		age := time.Since(info.ModTime())
		if 0 <= age && age < backupEvery { // one of the future is from before the clock was set back
			return
		}
	}
	_ = d.copyDatabaseTo(ctx, d.backupPath()) // the next one tries again
}

// olderPath returns the copy of a database before its schema was brought up to date from this one.
func (d *DB) olderPath(schema int) string { return d.path + ".schema-" + strconv.Itoa(schema) }

// Older says how the copy of a schema is put back.
func (d *DB) Older(schema int) string {
	if _, err := os.Stat(d.olderPath(schema)); err != nil {
		return ""
	}
	return fmt.Sprintf("stop every pawl, then mv %q %q && rm -f %q %q", d.olderPath(schema), d.path, d.path+"-wal",
		d.path+"-shm")
}

// Keep copies a database before a newer pawl changes it: an older pawl cannot read
// it afterwards.
func (d *DB) Keep(ctx context.Context, schema int) error {
	if err := d.copyDatabaseTo(ctx, d.olderPath(schema)); err != nil {
		return fmt.Errorf("cannot keep a copy of the database before it is brought up to date, so it stays as it "+
			"is: %v; make room for %s", err, d.olderPath(schema))
	}
	return nil
}

// copyDatabaseTo puts a copy of the database in the place of a file.
func (d *DB) copyDatabaseTo(ctx context.Context, path string) error {
	temp := path + "." + strconv.Itoa(os.Getpid())
	defer os.Remove(temp) // of a copy that failed
	db, err := driver.Open(d.dataSource(), func(c *sqlite3.Conn) error { return c.BusyTimeout(turn) })
	if err != nil {
		return err
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, `VACUUM INTO ?`, temp); err != nil {
		return err
	}
	if err := os.Chmod(temp, 0o600); err != nil {
		return err
	}
	return os.Rename(temp, path)
}
