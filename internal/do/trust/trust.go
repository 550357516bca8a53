// Package trust remembers the files that pawl takes commands from: the
// configuration, fragments of prompts, workflows. Before an agent that can write
// them gets the tree, their content is kept; what differs when the run rests was
// changed while an agent had the tree. It is not believed until a person has
// said so.
//
// The records are in pawl's own folder of the repository, which no agent reaches.
// It never asks a person, and reads nothing but the files that it is given.
package trust

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// File is a file by its content. What is stored outlives the code.
type File struct {
	Path string `json:"path"` // absolute
	Text string `json:"text,omitempty"`
	// Why says what keeps it from being read, such as that it is not there; "" if
	// nothing does.
	Why string `json:"why,omitempty"`
}

// record is stored for each run.
type record struct {
	Name  string           `json:"name"`  // of what runs
	Owner process.Identity `json:"owner"` // of the session that drives it
	Files []File           `json:"files"`
	// Root is the tree that agents can write while the run works, since the time of
	// Since; zero when the run rests.
	Root  string    `json:"root,omitempty"`
	Since time.Time `json:"since,omitzero"`
	// Settled are paths below Root that a person took as they are, after a crash.
	Settled []string `json:"settled,omitempty"`
}

// Change is a file that is not what it was before an agent could write it.
type Change struct {
	Was, Now File
	Run      string
	Name     string // of what ran
}

func trustFolder(stateDir string) string { return filepath.Join(stateDir, "trust") }

func recordPath(stateDir, run string) string {
	return filepath.Join(trustFolder(stateDir), run+".json")
}

// Keep keeps files for a run that is about to begin or to resume, whose agents can write
// root. Until [Release] every other file there that is new, or changes, is not
// believed.
func Keep(stateDir, run, name, root string, owner process.Identity, list []File) error {
	err := os.MkdirAll(trustFolder(stateDir), 0o700)
	if err == nil {
		before, _ := readRecord(recordPath(stateDir, run)) // mostly there is none
		r := record{Name: name, Owner: owner, Files: list, Root: root, Since: before.Since}
		if r.Since.IsZero() { // else the run was cut off
			r.Since = time.Now().Add(-clockStep)
		}
		err = writeRecord(recordPath(stateDir, run), r)
	}
	if err != nil {
		return fmt.Errorf("cannot store the configuration of run %s: %v", run, err)
	}
	return nil
}

// clockStep is by how much the times that the kernel gives to files may be behind.
const clockStep = 20 * time.Millisecond

// hasRecordedFile reports whether a record has a file by name.
func (r record) hasRecordedFile(name string) bool {
	return slices.Contains(r.Settled, name) ||
		slices.ContainsFunc(r.Files, func(f File) bool { return f.Path == name })
}

// changedWhileExposed reports whether a file came to be, or changed, while an agent could write it.
func (r record) changedWhileExposed(name string) bool {
	if r.Since.IsZero() || r.hasRecordedFile(name) {
		return false
	}
	_, below := files.Below(r.Root, name)
	changed, err := files.Changed(name)
	return below && err == nil && changed.After(r.Since)
}

// unknownFile is a file of which nothing was kept.
func unknownFile(name string) File { return File{Path: name, Why: "its old content is unknown"} }

func writeRecord(name string, r record) error { return files.ReplaceJSON(name, r, true) }

// Release compares what was kept for a run that rests with the files as they are.
// Those that did not change are forgotten.
func Release(stateDir, run, root string) error {
	name := recordPath(stateDir, run)
	r, err := readRecord(name)
	if err == nil {
		r.Files = slices.DeleteFunc(r.Files, func(f File) bool { return Read(root, f.Path) == f })
		r.Root, r.Since, r.Settled = "", time.Time{}, nil
		err = r.storeRecord(name)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot tell whether the configuration of run %s changed: %v", run, err)
	}
	return nil
}

// storeRecord writes a record, or removes one with nothing in it.
func (r record) storeRecord(name string) error {
	if len(r.Files) > 0 {
		return writeRecord(name, r)
	}
	return os.Remove(name)
}

// Kept are the files that changed during a run as they were before; none when no
// file did.
func Kept(stateDir, run string) []File {
	r, err := readRecord(recordPath(stateDir, run))
	if err != nil {
		return nil // the files are compared with it all the same, by who starts
	}
	return r.Files
}

// Changed lists those files of list that differ from what was kept for a run, of all
// runs whose records are in the folders.
func Changed(stateDirs []string, list []File) ([]Change, error) {
	var found []Change
	err := eachRecord(stateDirs, func(name string, r record) error {
		was := slices.Clone(r.Files)
		for _, now := range list {
			if r.changedWhileExposed(now.Path) {
				was = append(was, unknownFile(now.Path))
			}
		}
		for _, f := range was {
			for _, now := range list {
				if now.Path == f.Path && now != f {
					run := strings.TrimSuffix(filepath.Base(name), ".json")
					found = append(found, Change{Was: f, Now: now, Run: run, Name: r.Name})
				}
			}
		}
		return nil
	})
	return found, err
}

// Accept makes files what they were before, in the words of the records: a person
// says that they are to be believed as they are.
func Accept(stateDirs []string, list []File) error {
	return eachRecord(stateDirs, func(name string, r record) error {
		for i, f := range r.Files {
			for _, now := range list {
				if now.Path == f.Path {
					r.Files[i] = now
				}
			}
		}
		alive := process.Alive(r.Owner)
		for _, now := range list {
			if r.changedWhileExposed(now.Path) && alive {
				r.Files = append(r.Files, now)
			} else if r.changedWhileExposed(now.Path) {
				r.Settled = append(r.Settled, now.Path)
			}
		}
		if alive {
			return writeRecord(name, r)
		}
		r.Files = slices.DeleteFunc(r.Files, func(f File) bool { return slices.Contains(list, f) })
		return r.storeRecord(name)
	})
}

// eachRecord calls act with each record of the folders.
func eachRecord(stateDirs []string, act func(name string, r record) error) error {
	for _, dir := range stateDirs {
		entries, err := os.ReadDir(trustFolder(dir))
		none := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		if err != nil && !none {
			return fmt.Errorf("cannot tell which files can be trusted: %v", err)
		}
		for _, e := range entries {
			if filepath.Ext(e.Name()) != ".json" {
				continue // a file that is being replaced
			}
			name := filepath.Join(trustFolder(dir), e.Name())
			r, err := readRecord(name)
			if err == nil {
				err = act(name, r)
			}
			if err != nil && !errors.Is(err, fs.ErrNotExist) { // a run that rests meanwhile
				return fmt.Errorf("cannot tell which files can be trusted: %s: %v", name, err)
			}
		}
	}
	return nil
}

func readRecord(name string) (r record, err error) {
	err = files.ReadJSON(name, &r)
	return r, err
}

// maxFile is the size in bytes over which a file is not read.
const maxFile = 1 << 20

// Missing is the reason of a file that is not there.
var Missing = syscall.ENOENT.Error()

// Read reads a regular file. Below root, where an agent may have put it, no
// symbolic link is followed.
func Read(root, path string) File {
	f := File{Path: path}
	data, err := readContent(root, path)
	if err != nil {
		if p, ok := errors.AsType[*fs.PathError](err); ok {
			err = p.Err
		}
		if f.Why = err.Error(); errors.Is(err, syscall.ENOTDIR) {
			f.Why = Missing
		}
	}
	f.Text = string(data)
	return f
}

func readContent(root, path string) ([]byte, error) {
	file, err := openFile(root, path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	data, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(data) > maxFile {
		size := int64(len(data))
		if info, err := file.Stat(); err == nil {
			size = max(size, info.Size())
		}
		return nil, fmt.Errorf("it is larger than 1 MiB (%d bytes)", size)
	}
	return data, err
}

func openFile(root, path string) (*os.File, error) {
	info, err := os.Lstat(path)
	if err == nil && info.IsDir() {
		return nil, errors.New("it is a folder, not a file")
	}
	if name, below := files.Below(root, path); below {
		return files.OpenBelow(root, name)
	}
	if err == nil {
		info, err = os.Stat(path)
	}
	if err == nil && !info.Mode().IsRegular() {
		err = files.ErrNotRegular // opening a pipe would wait for its writer
	}
	if err != nil {
		return nil, err
	}
	return os.Open(path)
}
