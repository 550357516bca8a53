// Package storedrun is a run as the database has it, for those that do not drive it: who
// owns it, what a resume needs of it, which work of it is undelivered, and what people ask
// of it. It archives runs, imports them from state files, and drives none.
package storedrun

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// OwnerOf is a process as the database knows it.
func OwnerOf(id process.Identity) store.Owner {
	return store.Owner{PID: id.PID, Start: fmt.Sprint(id.Start), Boot: id.Boot + " " + id.Space, Host: id.Host}
}

// Alive says whether a run's owner lives, or may live.
func Alive(o store.Owner) bool {
	if o.PID == 0 {
		return false
	}
	id := process.Identity{PID: o.PID, Host: o.Host}
	if _, err := fmt.Sscan(o.Start, &id.Start); err != nil {
		return true
	}
	id.Boot, id.Space, _ = strings.Cut(o.Boot, " ")
	return process.Alive(id)
}

// NewID makes a run id of eight letters and digits, by chance: any few of its
// first characters tell the runs of a repository apart.
func NewID() string {
	const alphabet = "0123456789abcdefghjkmnpqrstvwxyz"
	var b [8]byte
	_, _ = rand.Read(b[:])
	for i := range b {
		b[i] = alphabet[b[i]%32]
	}
	return string(b[:])
}

// StateOf is the kernel's state of a run.
func StateOf(run store.Run) (loop.State, error) {
	var s loop.State
	if err := json.Unmarshal(run.State, &s); err != nil {
		return s, fmt.Errorf("cannot read the state of run %s: %v", run.ID, err)
	}
	if slices.Contains(s.Recent, nil) {
		return s, fmt.Errorf("cannot read the state of run %s: an iteration is null; start over with --fresh", run.ID)
	}
	return s, nil
}

// Encode is for our own structs, which always encode.
func Encode(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// RestOf is the journal's kind of event for a run that came to rest, and whether
// the run is over.
func RestOf(s loop.Status) (kind string, over bool) {
	switch s {
	case loop.Paused:
		return journal.Paused, false
	case loop.Pending, loop.Blocked:
		return journal.QuestionAsked, false
	case loop.Interrupted:
		return journal.Finished, false
	}
	return journal.Finished, true
}
