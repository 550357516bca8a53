// Package outputs finds what runs print: in this machine's folder of a run, else in
// the folder that all machines of a board share, into which whoever drives a run
// copies it while it grows. Anybody who reaches the shared folder may have put
// something there, so no link is followed out of a run's folder in it. What pawl
// needs for itself, such as the environment of an agent, is never copied there.
package outputs

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/lazy"
	"github.com/pawl-dev/pawl/internal/spool"
)

// Open opens the folder of a run, or one below it: that below runs, a folder of this
// machine, else that below shared, which has one board. Shared is "" for none.
func Open(runs, shared, run string, below ...string) (*os.Root, error) {
	if run != filepath.Base(run) || !filepath.IsLocal(run) {
		return nil, fmt.Errorf("%q is no run", run)
	}
	name := path.Join(below...)
	root, err := os.OpenRoot(filepath.Join(runs, run))
	if err == nil {
		root, err = into(root, name)
	}
	if shared == "" || !errors.Is(err, fs.ErrNotExist) {
		return root, err
	}
	root, err = ofRun(shared, run, false)
	if err != nil {
		return nil, err
	}
	return into(root, name)
}

// into goes to a folder below root, and closes root.
func into(root *os.Root, name string) (*os.Root, error) {
	if name == "" {
		return root, nil
	}
	defer func() { _ = root.Close() }()
	return root.OpenRoot(name)
}

// Remove removes what is shared of a run.
func Remove(shared, run string) error {
	board, err := ofBoard(shared, false)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer func() { _ = board.Close() }()
	return board.RemoveAll(run)
}

// ofRun opens the shared folder of a run.
func ofRun(shared, run string, made bool) (*os.Root, error) {
	board, err := ofBoard(shared, made)
	if err != nil {
		return nil, err
	}
	defer func() { _ = board.Close() }()
	return step(board, run, made)
}

// ofBoard opens the board's folder in the one that was given, which is never made:
// where it is missing, a disk of the network is not there.
func ofBoard(shared string, made bool) (*os.Root, error) {
	given, err := os.OpenRoot(filepath.Dir(shared))
	if err != nil {
		return nil, err
	}
	defer func() { _ = given.Close() }()
	return step(given, filepath.Base(shared), made)
}

// step opens a folder that is in another one itself: no link leads to it. One that is
// made is for the same people as the one that it is in.
func step(in *os.Root, name string, made bool) (*os.Root, error) {
	if made {
		if err := in.Mkdir(name, 0o700); err == nil {
			mode, err := modeOf(in)
			if err != nil {
				return nil, err
			}
			if err := in.Chmod(name, mode); err != nil {
				return nil, err
			}
		} else if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	entry, err := in.Lstat(name)
	if err != nil {
		return nil, err
	}
	next, err := in.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if opened, err := next.Stat("."); err != nil || !os.SameFile(entry, opened) {
		_ = next.Close()
		linked := fmt.Errorf("%s in %s is no folder of its own: pawl follows no link there", name, in.Name())
		return nil, errors.Join(err, linked)
	}
	return next, nil
}

// modeOf is who may do what with a folder.
func modeOf(folder *os.Root) (fs.FileMode, error) {
	info, err := folder.Stat(".")
	if err != nil {
		return 0, err
	}
	return info.Mode() & (fs.ModePerm | fs.ModeSetgid), nil
}

// Settle makes less of what an iteration has left, once all that is needed of it to go
// on is stored elsewhere: streams are packed, and of what pawl noted for itself only
// that stays which other machines may see.
func Settle(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return unlessGone(err)
	}
	defer func() { _ = root.Close() }()
	return settle(root, ".")
}

func settle(root *os.Root, dir string) error {
	entries, err := fs.ReadDir(root.FS(), dir)
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && isOurs(dir, e.Name()):
			err = errors.Join(err, settle(root, name))
		case !e.Type().IsRegular(), !names().MatchString(e.Name()):
		case path.Ext(name) == ".json":
			err = errors.Join(err, shorten(root, name))
		case slices.Contains([]string{".out", ".err", ".jsonl", ".md"}, path.Ext(name)):
			err = errors.Join(err, spool.Pack(root, name))
		}
	}
	return err
}

func shorten(root *os.Root, name string) error {
	in, err := root.Open(name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	return mark(in, root, name, 0, 0)
}

const (
	shareEvery = 250 * time.Millisecond // how soon other machines see what a run prints
	shareBound = 10 * time.Second       // how long a run waits at its end for the last of it
)

// Share copies what a run prints into its folder dir to the folder that machines share, or
// nothing where shared is "", until stop is called. A folder that cannot be written holds
// nothing up: it is told once, and what is missing is copied when it can be written again.
func Share(dir, shared, run string, warn func(string)) (stop func()) {
	if shared == "" {
		return func() {}
	}
	c := NewCopier(dir, shared, run)
	ends, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		c.share(ends, warn)
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

func (c *Copier) share(ends <-chan struct{}, warn func(string)) {
	tick := time.NewTicker(shareEvery)
	defer tick.Stop()
	told := false
	for all := true; ; all = told {
		err := c.Copy(all)
		if err != nil && !told {
			warn(fmt.Sprintf("other machines do not see what the run prints until cluster.files can be written: %v", err))
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

// Copier copies what a run prints into the shared folder, again and again while it
// grows. It begins anew with what an earlier one has copied. It is not safe for
// concurrent use.
type Copier struct {
	from, shared, run string
	seen              map[string]bool // folders that were made anew
	done              map[string]copied
}

// copied is how far a file is copied.
type copied struct {
	of fs.FileInfo
	to int64
}

// NewCopier copies what is in the folder from, that of a run.
func NewCopier(from, shared, run string) *Copier {
	return &Copier{from: from, shared: shared, run: run, seen: map[string]bool{}, done: map[string]copied{}}
}

// Copy copies what has come since the last call: of all iterations, or of the last two,
// which are those that can grow. After an error the next call goes on.
func (c *Copier) Copy(all bool) error {
	from, err := os.OpenRoot(c.from)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	to, err := ofRun(c.shared, c.run, true)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	numbers, err := iterations(from)
	if !all {
		numbers = numbers[max(0, len(numbers)-2):]
	}
	for _, n := range numbers {
		err = errors.Join(err, c.folder(from, to, strconv.Itoa(n)))
	}
	return err
}

// iterations are the numbers that have a folder.
func iterations(root *os.Root) (numbers []int, err error) {
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
	`^(((.+\.)?prompt\.md|[^.]+\.(out|err|events\.jsonl))(\.[0-9]+|\.gz)?|(.+\.)?begun\.json|[^.]+\.result\.json(\.tmp)?)$`)

// folder copies a folder: streams first, since who sees that something has ended reads
// no more of it.
func (c *Copier) folder(from, to *os.Root, dir string) error {
	entries, err := fs.ReadDir(from.FS(), dir)
	if err != nil {
		return unlessGone(err)
	}
	if !c.seen[dir] { // an earlier copier of the run may have copied another attempt
		if err := to.RemoveAll(dir); err != nil {
			return err
		}
		c.seen[dir] = true
	}
	if err := to.Mkdir(dir, 0o700); err == nil {
		mode, err := modeOf(to)
		if err := errors.Join(err, to.Chmod(dir, mode)); err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrExist) {
		return err
	}
	var streams, marks []string
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir() && isOurs(dir, e.Name()):
			err = errors.Join(err, c.folder(from, to, name))
		case !e.Type().IsRegular(), !names().MatchString(e.Name()):
		case isMark(name):
			marks = append(marks, name)
		default:
			streams = append(streams, name)
		}
	}
	for _, name := range streams {
		err = errors.Join(err, c.file(from, to, name, c.stream))
	}
	for name := range c.done { // after the packed form of it has come
		if path.Dir(name) == dir && !slices.Contains(streams, name) && !slices.Contains(marks, name) {
			err = errors.Join(err, c.drop(to, name))
		}
	}
	if err != nil {
		return err
	}
	for _, name := range marks {
		err = errors.Join(err, c.file(from, to, name, mark))
	}
	return err
}

// isMark is true for a file that says that something has begun or ended.
func isMark(name string) bool {
	return strings.Contains(name, ".json") && !strings.Contains(name, ".jsonl")
}

// isOurs is true for a folder with files that are copied: an earlier attempt's, and
// those of a workflow's steps. Caches and temporary files of agents are others.
func isOurs(dir, name string) bool {
	_, err := strconv.Atoi(name)
	return err == nil || name == "steps" || path.Base(dir) == "steps"
}

func (c *Copier) drop(to *os.Root, name string) error {
	delete(c.done, name)
	return unlessGone(to.Remove(name))
}

// file copies one file, anew when it is another one than before.
func (c *Copier) file(
	from, to *os.Root, name string, put func(in *os.File, to *os.Root, name string, at, end int64) error,
) error {
	in, err := from.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return unlessGone(err)
	}
	defer func() { _ = in.Close() }()
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	was, known := c.done[name]
	same := known && os.SameFile(was.of, info)
	if !same || info.Size() < was.to {
		was, known = copied{}, false
	}
	if !known || info.Size() > was.to {
		if err := put(in, to, name, was.to, info.Size()); err != nil {
			return fmt.Errorf("cannot copy %s: %w", name, err)
		}
	}
	c.done[name] = copied{info, info.Size()}
	return nil
}

// stream adds what has come. After an error the same place is written again. Another
// stream gets another file, so that who reads the one before notices.
func (c *Copier) stream(in *os.File, to *os.Root, name string, at, end int64) error {
	if at == 0 {
		if err := unlessGone(to.Remove(name)); err != nil {
			return err
		}
	}
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|syscall.O_NONBLOCK, 0o600)
	if err != nil {
		return err
	}
	if at == 0 {
		err = open(out, to)
	}
	if err == nil {
		_, err = io.Copy(io.NewOffsetWriter(out, at), io.NewSectionReader(in, at, end-at))
	}
	return errors.Join(err, out.Close())
}

// mark writes what others may know of a file about a beginning or an end. It takes the
// place of the one before, whole.
func mark(in *os.File, to *os.Root, name string, _, _ int64) error {
	data, err := briefOf(in)
	if err != nil {
		return err
	}
	temp := path.Join(path.Dir(name), ".new")
	_ = to.Remove(temp) // what a crash has left
	out, err := to.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.Write(data)
	if err := errors.Join(err, open(out, to), out.Close()); err != nil {
		return err
	}
	return to.Rename(temp, name)
}

// open lets those read a file who may read the folder.
func open(f *os.File, in *os.Root) error {
	mode, err := modeOf(in)
	if err != nil {
		return err
	}
	return f.Chmod(mode & 0o666)
}

// briefOf is the part of pawl's own files that says when and how, and nothing of what:
// no command, no environment.
func briefOf(f io.Reader) ([]byte, error) {
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

func unlessGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
