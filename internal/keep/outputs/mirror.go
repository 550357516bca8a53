package outputs

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	lookOver   = time.Minute // how long an iteration is kept up to date that nobody asks for any more
	mirrorMost = 256 << 20   // bytes of a file; a run's own have less
)

// mirror has copies of the iterations in a bucket that are looked at, each in a folder.
type mirror struct {
	of    *Bucket
	going sync.WaitGroup

	mu     sync.Mutex
	dir    string // "" until it is needed
	looks  map[string]*look
	closed bool
}

// look keeps the copy of one iteration up to date.
type look struct {
	of     *Bucket
	prefix string // of its objects
	dir    string
	first  chan struct{} // closed after the first pull
	err    error         // of the first pull
	ends   chan struct{} // closed when nobody is to look any more
	asked  time.Time     // guarded by the mirror
	files  map[string]had
}

// had is what of a file is in the copy.
type had struct {
	mark string
	size int64
}

// open waits until what there is now is in the copy.
func (m *mirror) open(run, iteration string) (*os.Root, error) {
	l, err := m.ask(run, iteration)
	if err != nil {
		return nil, err
	}
	<-l.first
	if l.err != nil {
		return nil, l.err
	}
	return os.OpenRoot(l.dir)
}

func (m *mirror) look(run, iteration string) { _, _ = m.ask(run, iteration) }

// ask is the look at an iteration, which goes on from now for [lookOver].
func (m *mirror) ask(run, iteration string) (l *look, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, fs.ErrClosed
	}
	if m.dir == "" {
		if m.dir, err = os.MkdirTemp("", "pawl-outputs-"); err != nil {
			return nil, err
		}
	}
	name := path.Join(run, iteration)
	if l = m.looks[name]; l == nil {
		l = &look{
			of: m.of, prefix: path.Join(m.of.board, name) + "/", dir: filepath.Join(m.dir, name),
			first: make(chan struct{}), ends: make(chan struct{}), files: map[string]had{},
		}
		m.looks[name] = l
		m.going.Go(func() { m.follow(name, l) })
	}
	l.asked = time.Now()
	return l, nil
}

// follow pulls until nobody looks any more. A look that fails at first is over at once,
// so that the next one tries again.
func (m *mirror) follow(name string, l *look) {
	l.err = l.pull()
	close(l.first)
	tick := time.NewTicker(bucketEvery)
	defer tick.Stop()
	for !m.over(name, l) {
		select {
		case <-tick.C:
			_ = l.pull() // the next one goes on
		case <-l.ends:
		}
	}
	_ = os.RemoveAll(l.dir)
}

func (m *mirror) over(name string, l *look) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l.err == nil && !m.closed && time.Since(l.asked) < lookOver {
		return false
	}
	delete(m.looks, name)
	return true
}

func (m *mirror) close() error {
	m.mu.Lock()
	m.closed = true
	for _, l := range m.looks {
		close(l.ends)
	}
	m.mu.Unlock()
	m.going.Wait()
	if m.dir == "" {
		return nil
	}
	return os.RemoveAll(m.dir)
}

// stored is a file as the bucket has it.
type stored struct {
	mark    string
	changed time.Time
	parts   map[int64]int64 // where they begin and end
	end     int64
}

// pull brings the copy up to date: streams first. A mark that is new may be there
// since the list was made, and more of a stream before it; so it is listed again.
func (l *look) pull() error {
	listed, err := l.list()
	if err != nil {
		return err
	}
	now := listed
	for name, f := range listed {
		if isMark(name) && l.files[name].mark != f.mark {
			if now, err = l.list(); err != nil {
				return err
			}
			break
		}
	}
	if len(listed) == 0 && len(l.files) == 0 {
		return fs.ErrNotExist
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	root, err := os.OpenRoot(l.dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for name, f := range now {
		if !isMark(name) {
			err = errors.Join(err, l.stream(root, name, f))
		}
	}
	for name := range l.files {
		if _, there := now[name]; !there {
			delete(l.files, name)
			err = errors.Join(err, unlessGone(root.Remove(name)))
		}
	}
	if err != nil {
		return err
	}
	for name, f := range listed {
		if _, there := now[name]; there && isMark(name) && l.files[name].mark != f.mark {
			err = errors.Join(err, l.mark(root, name, f))
		}
	}
	return err
}

// list is what the bucket has of the iteration. Of two files of one name the newer counts.
func (l *look) list() (map[string]stored, error) {
	all := map[string]map[string]stored{}
	ctx, cancel := l.of.bound()
	defer cancel()
	err := l.of.objects.List(ctx, l.prefix, func(o Object) {
		name, part := cutLast(strings.TrimPrefix(o.Name, l.prefix), "/")
		mark, digits := cutLast(part, "-")
		at, err := strconv.ParseInt(digits, 10, 64)
		if err != nil || at < 0 || o.Size < 0 || at > mirrorMost || !isCopied(name) {
			return
		}
		if all[name] == nil {
			all[name] = map[string]stored{}
		}
		f := all[name][mark]
		if f.parts == nil {
			f = stored{mark: mark, parts: map[int64]int64{}}
		}
		f.parts[at] = min(at+o.Size, mirrorMost)
		f.end = max(f.end, f.parts[at])
		if o.Changed.After(f.changed) {
			f.changed = o.Changed
		}
		all[name][mark] = f
	})
	newest := map[string]stored{}
	for name, of := range all {
		for _, f := range of {
			if was, known := newest[name]; !known || f.changed.After(was.changed) {
				newest[name] = f
			}
		}
	}
	return newest, err
}

func cutLast(s, sep string) (before, after string) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return "", s
	}
	return s[:i], s[i+len(sep):]
}

// isCopied is true for the name of a file that a [Copier] copies.
func isCopied(name string) bool {
	if !filepath.IsLocal(name) || path.Clean(name) != name || !names().MatchString(path.Base(name)) {
		return false
	}
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if !isOurs(path.Dir(dir), path.Base(dir)) {
			return false
		}
	}
	return true
}

// stream adds what a stream has more than the copy. Another one gets another file.
func (l *look) stream(root *os.Root, name string, f stored) error {
	have := l.files[name]
	if have.mark == f.mark && have.size >= f.end {
		return nil
	}
	if have.mark != f.mark {
		have = had{mark: f.mark}
		if err := unlessGone(root.Remove(name)); err != nil {
			return err
		}
	}
	if err := root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return err
	}
	out, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	for have.size < f.end && err == nil {
		from, to := f.at(have.size)
		if to == have.size {
			break // what comes next is not there yet
		}
		var n int64
		n, err = l.read(io.NewOffsetWriter(out, have.size), name, f.mark, from, have.size-from, to-have.size)
		have.size += n
	}
	l.files[name] = have
	return errors.Join(unlessGone(err), out.Close()) // one that was taken up is looked for again
}

// at is the part that has the most of what comes at an offset, and where it ends.
func (f stored) at(offset int64) (from, to int64) {
	to = offset
	for begin, end := range f.parts {
		if begin <= offset && end > to {
			from, to = begin, end
		}
	}
	return from, to
}

func (l *look) mark(root *os.Root, name string, f stored) error {
	var text strings.Builder
	if _, err := l.read(&text, name, f.mark, 0, 0, f.parts[0]); err != nil {
		return unlessGone(err)
	}
	err := errors.Join(root.MkdirAll(path.Dir(name), 0o700), replace(root, name, []byte(text.String())))
	if err == nil {
		l.files[name] = had{mark: f.mark}
	}
	return err
}

// read copies some of an object.
func (l *look) read(to io.Writer, name, mark string, at, from, most int64) (int64, error) {
	ctx, cancel := l.of.bound()
	defer cancel()
	in, err := l.of.objects.Read(ctx, l.prefix+name+"/"+mark+"-"+strconv.FormatInt(at, 10), from)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(to, io.LimitReader(in, most))
	err = errors.Join(err, in.Close())
	if err == nil && n == 0 {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}
