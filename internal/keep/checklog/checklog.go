// Package checklog remembers the attempts at tasks that `pawl check` was asked
// about: one small file a task in .pawl/check, so that an escalation can show
// all of them. It decides nothing, and losing it loses only that history.
package checklog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/keep/files"
)

// Attempt is one that was checked. What is stored outlives the code: fields
// can be added, but names must not change.
type Attempt struct {
	// Round counts how often the numbers began anew after an escalation, from 1.
	Round       int       `json:"round"`
	Iteration   int       `json:"iteration"` // 1-based
	At          time.Time `json:"at"`
	Action      string    `json:"action"` // what was decided
	Summary     string    `json:"summary"`
	Class       string    `json:"class,omitempty"` // of the failure; empty for none
	Fingerprint string    `json:"fingerprint,omitempty"`
	Where       string    `json:"where,omitempty"` // the file or test that failed
}

// Log is what is remembered of one task.
type Log struct {
	Task string `json:"task_id"`
	// Base is the commit that was checked out at the first attempt; empty
	// outside of git.
	Base     string    `json:"base,omitempty"`
	Attempts []Attempt `json:"attempts"` // oldest first, at most 100
}

// maxAttempts bounds a task's log; the oldest go first.
const maxAttempts = 100

// Add returns the log with a: in place of the last attempt when it has the
// same round and number, else after it.
func (l Log) Add(a Attempt) Log {
	kept := append([]Attempt(nil), l.Attempts...)
	if n := len(kept); n > 0 && kept[n-1].Round == a.Round && kept[n-1].Iteration == a.Iteration {
		kept = kept[:n-1]
	}
	kept = append(kept, a)
	l.Attempts = kept[max(0, len(kept)-maxAttempts):]
	return l
}

// Dir of the logs of a repository.
func Dir(root string) string { return filepath.Join(root, ".pawl", "check") }

// Store is the logs of one repository, locked against other processes until
// it is closed.
type Store struct {
	dir  string
	lock *os.File
}

// Open makes the folder if need be, and waits for other processes that use it,
// at most ten seconds.
func Open(ctx context.Context, root string) (*Store, error) {
	dir := Dir(root)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot record attempts: %v", err)
	}
	lock, err := files.Lock(ctx, filepath.Join(dir, ".lock"))
	if err != nil {
		return nil, fmt.Errorf("cannot record attempts: %w", err)
	}
	return &Store{dir, lock}, nil
}

// Close lets other processes in.
func (s *Store) Close() error { return s.lock.Close() }

// ErrCorrupt is a log that cannot be read; it was renamed.
var ErrCorrupt = errors.New("the record of the attempts cannot be read")

// Load returns the log of a task; an empty one when nothing is remembered. A
// file that cannot be read is set aside, with [ErrCorrupt] and an empty log.
func (s *Store) Load(task string) (Log, error) {
	empty := Log{Task: task}
	path := s.fileOfTask(task)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("cannot read the recorded attempts: %v", err)
	}
	var l Log
	if err := json.Unmarshal(data, &l); err == nil && l.Task == task {
		return l, nil
	}
	aside := path + ".corrupt-" + time.Now().Format("20060102-150405.000")
	if err := os.Rename(path, aside); err != nil {
		return empty, fmt.Errorf("%w, nor renamed: %v", ErrCorrupt, err)
	}
	return empty, fmt.Errorf("%w; it was renamed to %s", ErrCorrupt, filepath.Base(aside))
}

// Save writes the log of its task: all of it or nothing, on disk when it
// returns.
func (s *Store) Save(l Log) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return fmt.Errorf("cannot record the attempt: %v", err)
	}
	if err := files.Replace(s.fileOfTask(l.Task), append(data, '\n'), 0o600, true); err != nil {
		return fmt.Errorf("cannot record the attempt: %v", err)
	}
	return nil
}

// Forget removes the log of a task, and says whether there was one.
func (s *Store) Forget(task string) (bool, error) {
	err := os.Remove(s.fileOfTask(task))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot forget the attempts: %v", err)
	}
	return true, nil
}

// plainLetters are those that a task's file keeps of its id.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// fileOfTask is the file of a task: its id as far as that makes a name, and a hash,
// since ids may differ in nothing that a file's name can hold.
func (s *Store) fileOfTask(task string) string {
	sum := sha256.Sum256([]byte(task))
	name := strings.Map(func(r rune) rune {
		if strings.ContainsRune(plainLetters, r) {
			return r
		}
		return '_'
	}, task)
	return filepath.Join(s.dir, name[:min(len(name), 60)]+"-"+hex.EncodeToString(sum[:4])+".json")
}
