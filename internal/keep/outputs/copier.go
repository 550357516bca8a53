package outputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// copyEvery is how often what is new goes to the other machines.
const copyEvery = 250 * time.Millisecond

// shareBound is how long a run waits at its end for the last of what it printed.
const shareBound = 10 * time.Second

// Share copies what a run prints into its folder dir to where machines share it, or
// nothing where shared is nil, until stop is called. A place that cannot be written holds
// nothing up: there is one warning, and what is missing is copied when it can be written again.
func Share(dir string, shared *Folder, run string, warn func(string)) (stop func()) {
	if shared == nil {
		return func() {}
	}
	c := NewCopier(dir, shared, run)
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.copyRegularly(ends, warn)
	}()
	return func() {
		close(ends)
		select {
		case <-ended:
		case <-time.After(shareBound):
			warn("cluster.files does not answer; other machines do not see all that the run printed")
		}
	}
}

func (c *Copier) copyRegularly(ends <-chan struct{}, warn func(string)) {
	tick := time.NewTicker(copyEvery)
	defer tick.Stop()
	told := false
	for all := true; ; all = told {
		err := c.Copy(all)
		if err != nil && !told {
			warn("other machines do not see what the run prints until cluster.files can be written: " + err.Error())
		}
		told = err != nil
		select {
		case <-tick.C:
		case <-ends:
			if err := c.Copy(true); err != nil {
				warn(fmt.Sprintf("other machines do not see all that the run printed: %v", err))
			}
			return
		}
	}
}

// Copier copies what a run prints to where machines share it, again and again while it
// grows. It begins anew with what an earlier one has copied. It is not safe for
// concurrent use.
type Copier struct {
	from   string
	shared Folder
	run    string
	to     *os.Root        // the run's folder in the shared one, during a copy
	seen   map[string]bool // folders that were made anew
	done   map[string]copied
}

// copied is how far a file is copied.
type copied struct {
	of fs.FileInfo
	to int64
}

// NewCopier copies what is in the folder from, that of a run.
func NewCopier(from string, shared *Folder, run string) *Copier {
	return &Copier{from: from, shared: *shared, run: run, seen: map[string]bool{}, done: map[string]copied{}}
}

// Copy copies what has come since the last call: of all iterations, or of the last two,
// which are those that can grow. After an error the next call continues.
func (c *Copier) Copy(all bool) error {
	from, err := os.OpenRoot(c.from)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	if c.to, err = c.shared.openRunFolder(c.run, true); err != nil {
		return err
	}
	numbers, err := listIterations(from)
	if !all {
		numbers = numbers[max(0, len(numbers)-2):]
	}
	for _, n := range numbers {
		err = errors.Join(err, c.copyFolder(from, strconv.Itoa(n)))
	}
	return errors.Join(err, c.to.Close())
}

// listIterations are the numbers that have a folder.
func listIterations(root *os.Root) (numbers []int, err error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	for _, e := range entries {
		if n, nerr := strconv.Atoi(e.Name()); nerr == nil && e.IsDir() {
			numbers = append(numbers, n)
		}
	}
	slices.Sort(numbers)
	return numbers, err
}

// names are the files that are copied: what a person may read whole, and of those with
// .json what says that something has begun or ended.
var names = lazy.Regexp(
	`^(((.+\.)?prompt\.md|[^.]+\.(out|err|events\.jsonl))(\.[0-9]+|\.gz)?|(.+\.)?begun\.json` +
		`|[^.]+\.result\.json(\.tmp)?)$`)

// isCopied reports whether a file is copied: those that names has, and evidence.
func isCopied(name string) bool {
	if isEvidence(path.Dir(name)) {
		return EvidenceType(name) != ""
	}
	return names().MatchString(path.Base(name))
}

// isEvidence reports whether the folder of an attempt is that with its evidence.
func isEvidence(dir string) bool {
	return path.Base(dir) == "evidence" && path.Base(path.Dir(dir)) != "steps"
}

// copyFolder copies a folder: streams first, since who sees that something has ended reads
// no more of it.
func (c *Copier) copyFolder(from *os.Root, dir string) error {
	entries, err := fs.ReadDir(from.FS(), dir)
	if err != nil {
		return files.UnlessGone(err)
	}
	if !c.seen[dir] { // an earlier copier of the run may have copied another attempt
		maps.DeleteFunc(c.done, func(name string, _ copied) bool { return path.Dir(name) == dir })
		if err := errors.Join(c.to.RemoveAll(dir), makeFolder(c.to, dir)); err != nil {
			return err
		}
		c.seen[dir] = true
	}
	var streams, marks []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		isShared := hasCopiedFiles(dir, e.Name()) || isEvidence(name)
		switch {
		case e.IsDir() && isShared:
			err = errors.Join(err, c.copyFolder(from, name))
		case !e.Type().IsRegular(), !isCopied(name):
		case isBeginOrEndRecord(name):
			marks = append(marks, name)
		default:
			streams = append(streams, name)
		}
	}
	for _, name := range streams {
		err = errors.Join(err, c.copyFile(from, name))
	}
	for name := range c.done { // after the packed form of it has come
		if path.Dir(name) == dir && !slices.Contains(streams, name) && !slices.Contains(marks, name) {
			delete(c.done, name)
			err = errors.Join(err, files.UnlessGone(c.to.Remove(name)))
		}
	}
	if err == nil {
		for _, name := range marks {
			err = errors.Join(err, c.copyFile(from, name))
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		delete(c.seen, dir) // somebody has removed the folder
	}
	return err
}

// isBeginOrEndRecord reports whether the file is the record of a begin or an end.
func isBeginOrEndRecord(name string) bool {
	return strings.Contains(name, ".json") && !strings.Contains(name, ".jsonl") && !isEvidence(path.Dir(name))
}

// hasCopiedFiles reports whether the folder has files that are copied, an earlier attempt's, and those
// of a workflow's steps. Caches and temporary files of agents are others.
func hasCopiedFiles(dir, name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil || name == "steps" || path.Base(dir) == "steps"
}

// copyFile copies one file, anew when it is another one than before.
func (c *Copier) copyFile(from *os.Root, name string) error {
	in, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return files.UnlessGone(err)
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	was, known := c.done[name]
	if !known || !os.SameFile(was.of, info) || info.Size() < was.to {
		was, known = copied{}, false
	}
	switch {
	case known && info.Size() == was.to:
	case isBeginOrEndRecord(name):
		var brief []byte
		if brief, err = briefWithoutContent(in); err == nil {
			err = replaceFile(c.to, name, brief)
		}
	default:
		err = appendPart(c.to, name, in, was.to, info.Size())
	}
	if err != nil {
		return fmt.Errorf("cannot copy %s: %w", name, err)
	}
	c.done[name] = copied{info, info.Size()}
	return nil
}

// briefWithoutContent is the part of pawl's own files that says when and how, and nothing of what:
// no command, no environment.
func briefWithoutContent(f io.Reader) ([]byte, error) {
	var known struct {
		Attempt int             `json:"attempt,omitempty"`
		At      json.RawMessage `json:"at,omitempty"`
		Elapsed int64           `json:"elapsed,omitempty"`
		Exit    json.RawMessage `json:"exit,omitempty"`
	}
	data, err := io.ReadAll(io.LimitReader(f, 16<<20))
	if err != nil {
		return nil, err
	}
	_ = json.Unmarshal(data, &known) // one that is being written says nothing yet
	return json.Marshal(known)
}
