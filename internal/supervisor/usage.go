package supervisor

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/files"
)

const (
	// usageBytes is how much of it is read at once.
	usageBytes = 16 << 20
	// usageWhole is how large a file may be that is read as a whole.
	usageWhole = 1 << 20
	// usageNames is how many files of a day are looked at.
	usageNames = 50_000
)

// usage follows the file in which a program notes what it uses. The agent can
// write there: no link is followed, and what is read can only raise the count.
type usage struct {
	root, days, suffix string
	from               time.Time // the job's start
	file               *os.File  // nil until it is there
	lines              *agent.Lines
	whole              string       // the file that is written at the end; "" is none
	record             func([]byte) // takes it
}

// newUsage returns nil for a program that has no such file.
func newUsage(job Job, from time.Time, parser agent.Parser, emit func(agent.Event)) *usage {
	r, ok := parser.(agent.Recorder)
	if job.Usage == nil || !ok {
		return nil
	}
	if job.Usage.Path != "" {
		return &usage{whole: job.Usage.Path, record: func(file []byte) { r.Record(file, emit) }}
	}
	value := map[string]string{}
	for _, kv := range job.Env {
		name, v, _ := strings.Cut(kv, "=")
		value[name] = v
	}
	u := &usage{root: value[job.Usage.Variable], days: job.Usage.Days, suffix: job.Usage.Suffix, from: from}
	if u.root == "" {
		u.root = filepath.Join(value["HOME"], job.Usage.Home)
	}
	u.lines = agent.NewLines(agent.LineCap, func(line []byte, _ bool) { r.Record(line, emit) })
	return u
}

// read takes what is new in the file of a session. It is called whenever the stream
// says something: what a call has used is noted before its tools run.
func (u *usage) read(session string) {
	if u == nil || u.whole != "" {
		return
	}
	if u.file == nil {
		u.file = u.find(session)
	}
	if u.file != nil {
		_, _ = io.Copy(u.lines, io.LimitReader(u.file, usageBytes))
	}
}

// find opens the file of a session: it is that of a day that the job has seen, here
// or by the sun.
func (u *usage) find(session string) *os.File {
	if session == "" {
		return nil
	}
	seen := map[string]bool{}
	for _, at := range []time.Time{u.from, time.Now(), u.from.UTC(), time.Now().UTC()} {
		day := filepath.Join(u.days, at.Format("2006/01/02"))
		if seen[day] {
			continue
		}
		seen[day] = true
		for _, name := range u.names(day) {
			if !strings.HasSuffix(name, "-"+session+u.suffix) {
				continue
			}
			if f, err := files.OpenBelow(u.root, filepath.Join(day, name)); err == nil {
				return f
			}
		}
	}
	return nil
}

func (u *usage) names(day string) []string {
	root, err := os.OpenRoot(u.root)
	if err != nil {
		return nil
	}
	defer func() { _ = root.Close() }()
	// No other open ends at once where an agent put a pipe.
	dir, err := root.OpenFile(day, os.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return nil
	}
	defer func() { _ = dir.Close() }()
	names, _ := dir.Readdirnames(usageNames)
	return names
}

// end takes what the program has noted at its end.
func (u *usage) end(session string) {
	if u.read(session); u == nil || u.whole == "" {
		return
	}
	dir, name := filepath.Split(u.whole)
	if file, err := files.ReadBelow(dir, name, usageWhole); err == nil {
		u.record(file)
	}
	_ = os.Remove(u.whole) // it is not needed any more, and may never have been there
}

func (u *usage) close() {
	if u != nil && u.file != nil {
		_ = u.file.Close()
	}
}
