package run

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

const (
	// maxOutput is what of a step's output later steps can use.
	maxOutput = 1 << 20
	// maxOutputs bounds the file of outputs, maxNames the outputs in it.
	maxOutputs = 1 << 20
	maxNames   = 1000
	// maxShown bounds what is shown of one execution while it runs, in bytes and
	// lines; its file has more.
	maxShown = 1 << 20
	// maxLine bounds one line on the screen.
	maxLine = 4096
	// lookEvery is how often output is looked for.
	lookEvery = 100 * time.Millisecond
)

// outputOf a command, without the last line end; cut is true when there was more
// than is kept. The file may be gone: then the supervisor's excerpt counts.
func outputOf(path string, s supervisor.Stream) (text string, cut bool) {
	data, err := readSome(path, maxOutput)
	if err != nil {
		data = []byte(s.Head)
	}
	text = strings.ToValidUTF8(string(data), "\uFFFD")
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), s.Bytes > int64(len(data))
}

// readSome reads the beginning of a file.
func readSome(path string, most int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	return io.ReadAll(io.LimitReader(f, most))
}

// readOutputs reads the file that a command wrote outputs to: NAME=VALUE in a
// line, or NAME<<END, lines, and END alone in a line.
func readOutputs(path string) (map[string]string, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil || !info.Mode().IsRegular() || info.Size() > maxOutputs {
		return nil, fmt.Errorf("the file of outputs is no file of at most %d MiB", maxOutputs>>20)
	}
	data, err := readSome(path, maxOutputs)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file of outputs: %v", err)
	}
	return parseOutputs(string(data))
}

func parseOutputs(text string) (map[string]string, error) {
	out := map[string]string{}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimSuffix(lines[i], "\r")
		if line == "" {
			continue
		}
		name, value, plain := strings.Cut(line, "=")
		before, end, block := strings.Cut(line, "<<")
		first := !plain || len(before) < len(name) // << comes before =
		if block && first {
			name = before
			var body []string
			for i++; i < len(lines) && strings.TrimSuffix(lines[i], "\r") != end; i++ {
				body = append(body, lines[i])
			}
			if i == len(lines) || end == "" {
				return nil, fmt.Errorf("output %q: there is no line %q that ends it", name, end)
			}
			value, plain = strings.Join(body, "\n"), true
		}
		if name = strings.TrimSpace(name); !plain || name == "" {
			return nil, fmt.Errorf("line %d of the outputs is neither NAME=VALUE nor NAME<<END: %q", i+1, shortLine(line))
		}
		if out[name] = value; len(out) > maxNames {
			return nil, fmt.Errorf("there are more than %d outputs", maxNames)
		}
	}
	return out, nil
}

// plainLetters are those that a folder keeps of a step's id.
const plainLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"

// folderName makes a step's id fit for a folder, and keeps it unique.
func folderName(id string) string {
	var b strings.Builder
	for _, r := range id {
		if b.Len() >= 60 {
			break
		}
		if strings.ContainsRune(plainLetters, r) {
			b.WriteRune(r)
			continue
		}
		b.WriteByte('_')
	}
	if b.String() == id {
		return id
	}
	h := fnv.New32a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return fmt.Sprintf("%s-%08x", b.String(), h.Sum32())
}

// watcher shows the output of a job while it is written.
type watcher struct {
	stop  chan struct{}
	ended chan struct{}
}

// watchOutput begins to show what a job prints; end shows the rest.
func (d *activeAttempt) watchOutput(job supervisor.Job) *watcher {
	w := &watcher{make(chan struct{}), make(chan struct{})}
	show := func(line string) {
		d.s.p.h.Tell(engine.StepOutput, d.s.noticeOf(d.n, engine.StepNotice{Line: line}))
	}
	if job.Parser != "" {
		close(w.ended) // an agent's stream is shown by its events
		return w
	}
	go func() {
		defer close(w.ended)
		left := maxShown
		tails := []*tail{{path: job.Files + ".out", left: &left, show: show},
			{path: job.Files + ".err", left: &left, show: show}}
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for open := true; open; {
			select {
			case <-tick.C:
			case <-w.stop:
				open = false
			}
			for _, t := range tails {
				t.showNew(!open)
			}
		}
		if left < 0 {
			show("… more is in the step's file")
		}
	}()
	return w
}

func (w *watcher) endWatch() {
	close(w.stop)
	<-w.ended
}

// tail reads the lines of a file that grows.
type tail struct {
	path string
	at   int64
	left *int // bytes that may still be shown; less than none: there was more
	show func(string)
}

// showNew shows the whole lines that are new; at the end also one without an end.
func (t *tail) showNew(last bool) {
	f, err := os.Open(t.path)
	if err != nil {
		return
	}
	defer func() { _ = f.Close() }()
	data, _ := io.ReadAll(io.NewSectionReader(f, t.at, int64(*t.left)+1))
	for len(data) > 0 && *t.left >= 0 {
		line, rest, whole := bytes.Cut(data, []byte("\n"))
		if !whole && !last {
			return
		}
		t.at += int64(len(data) - len(rest))
		if *t.left -= len(line) + 1; *t.left >= 0 {
			t.show(printableLine(line))
		}
		data = rest
	}
}

func printableLine(line []byte) string {
	return fault.Cut(strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "\uFFFD"), maxLine)
}
