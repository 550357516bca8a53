package run

import (
	"bytes"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/do/engine"
	"github.com/pawl-dev/pawl/internal/do/process"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
	"github.com/pawl-dev/pawl/internal/keep/journal"
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
	data, err := readBeginning(path, maxOutput)
	if err != nil {
		data = []byte(s.Head)
	}
	text = strings.ToValidUTF8(string(data), "\uFFFD")
	return strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r"), s.Bytes > int64(len(data))
}

// readBeginning reads the beginning of a file.
func readBeginning(path string, most int64) ([]byte, error) {
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
		return nil, fmt.Errorf("the file of outputs is larger than %d MiB, or not a file", maxOutputs>>20)
	}
	data, err := readBeginning(path, maxOutputs)
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
			return nil, fmt.Errorf("line %d of the outputs is neither NAME=VALUE nor NAME<<END: %q", i+1,
				shortLine(line))
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
		d.s.p.h.Tell(engine.StepOutput, d.s.noticeOf(d.n, journal.Step{Line: line}))
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
				t.showNewLines(!open)
			}
		}
		if left < 0 {
			show("… more in the step's file")
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

// showNewLines shows the whole lines that are new; at the end also one without an end.
func (t *tail) showNewLines(last bool) {
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

// valuesFor the texts and the condition of a step.
func (s *scope) valuesFor(n *node) workflow.Values {
	v := workflow.Values{Steps: map[string]workflow.Result{}, Env: map[string]string{}, Context: s.p.o.Context}
	v.Matrix = lists.ToMap(n.in.Matrix, func(m workflow.Pair) (string, string) { return m.Name, m.Value })
	for k, builds := range s.stepsBefore(n) {
		if m := s.nodes[k]; builds && m.phase == settled {
			v.Steps[m.in.Step.ID] = mergeResult(v.Steps, m)
		}
	}
	for _, k := range n.in.Needs {
		m := s.nodes[k]
		switch {
		case m.phase == blocked, m.failedBefore, m.result.Conclusion == "failure":
			v.Failed = true
		case m.result.Conclusion == "skipped":
			v.Skipped = true
		}
	}
	return v
}

// stepsBefore marks each instance that n builds on. What an instance needs has a lower
// number.
func (s *scope) stepsBefore(n *node) []bool {
	builds := make([]bool, len(s.nodes))
	for _, k := range n.in.Needs {
		builds[k] = true
	}
	for k := len(builds) - 1; k >= 0; k-- {
		if builds[k] {
			for _, need := range s.nodes[k].in.Needs {
				builds[need] = true
			}
		}
	}
	return builds
}

// mergeResult adds the result of an instance to those of its step's other ones: the
// texts one below the other, the last of each output, the worst outcome.
func mergeResult(all map[string]workflow.Result, n *node) workflow.Result {
	r, more := all[n.in.Step.ID]
	if !more {
		r = n.result
		r.Outputs = map[string]string{}
		maps.Copy(r.Outputs, n.result.Outputs)
		return r
	}
	switch {
	case r.Output == "":
		r.Output = n.result.Output
	case n.result.Output != "":
		r.Output += "\n" + n.result.Output
	}
	maps.Copy(r.Outputs, n.result.Outputs)
	r.Outcome, r.Conclusion = worseOutcome(r.Outcome, n.result.Outcome), worseOutcome(r.Conclusion, n.result.Conclusion)
	return r
}

// worseOutcome of two instances: one failure is enough, and one success where the
// others were skipped.
func worseOutcome(a, b string) string {
	for _, word := range []string{"failure", "cancelled", "success"} {
		if a == word || b == word {
			return word
		}
	}
	return a
}

// given is what a step is given: its texts, filled in.
type given struct {
	content, dir         string
	env                  []string // K=V, later ones count
	verify, alternatives []string
	needs                []string // how each one ended
}

// inputKey of a result: with another one the step runs again.
func (g *given) inputKey() []string {
	all := []string{g.content, g.dir}
	for _, list := range [][]string{g.env, g.verify, g.alternatives, g.needs} {
		all = append(all, fmt.Sprint(len(list)))
		all = append(all, list...)
	}
	return all
}

// fillTexts evaluates a step's condition and, where it holds, its texts.
func (s *scope) fillTexts(n *node, v workflow.Values) (holds bool, g given, err error) {
	st := n.in.Step
	g.env = append(g.env, s.env...)
	for _, e := range st.Environment {
		text, err := e.Text.Fill(v)
		if err != nil {
			return false, g, fmt.Errorf("env.%s: %v", e.Name, err)
		}
		v.Env[e.Name] = text
		g.env = append(g.env, e.Name+"="+text)
	}
	if holds, err = st.Condition.Holds(v); err != nil {
		return false, g, fmt.Errorf("if: %v", err)
	}
	if !holds {
		return false, g, nil
	}
	text := func(where string, t workflow.Text) string {
		filled, wrong := t.Fill(v)
		if wrong != nil && err == nil {
			err = fmt.Errorf("%s: %v", where, wrong)
		}
		return filled
	}
	g.content = text(string(st.Kind), st.Content)
	n.title = text("name", st.Title)
	g.dir = s.folderOf(text("working_directory", st.WorkingDirectory))
	for i, t := range st.Verify {
		g.verify = append(g.verify, text(fmt.Sprintf("verify[%d]", i), t))
	}
	for i, t := range st.Alternatives {
		g.alternatives = append(g.alternatives, text(fmt.Sprintf("alternatives[%d]", i), t))
	}
	g.needs = append(g.needs, lists.Each(n.in.Needs, func(k int) string { return s.nodes[k].result.Conclusion })...)
	return true, g, err
}

// folderOf is the working folder of a step, relative to the root.
func (s *scope) folderOf(dir string) string {
	if filepath.IsAbs(dir) {
		return filepath.Clean(dir)
	}
	return filepath.Join(s.p.h.Plan().Root, dir)
}

// envWith are the variables of a step, the last of each name.
func (g *given) envWith(more ...string) []string {
	return process.Command{Env: slices.Concat(g.env, more)}.Environ()
}
