// Command mutate breaks lines of the product, one at a time, and says which of
// these mutants the tests catch:  go run ./scripts/mutate -seed 1 -n 100
//
// The same seed picks the same lines of the same tree. The tree itself is not
// touched: go builds with the broken file in the place of the whole one. The
// tests of the line's own package run first, then those of the packages that
// import it, then the whole-program scripts, until one fails. Results are written
// as they come, so that a run that was ended goes on where it was.
package main

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/process"
)

const (
	program  = "cmd/pawl" // its tests are the whole-program scripts
	module   = "github.com/pawl-dev/pawl/"
	notBuilt = "does not build"
)

// result is what became of one mutant.
type result struct {
	File   string
	Line   int
	Change string
	Killed bool
	By     string // the test that failed, or why none did
	Took   string
}

func (r result) String() string {
	word := map[bool]string{true: "killed", false: "SURVIVED"}[r.Killed]
	return fmt.Sprintf("%-8s  %s:%d  %s  (%s, %s)", word, r.File, r.Line, r.Change, r.By, r.Took)
}

// mutator is one run of this program.
type mutator struct {
	root, dir string // of the tree, and for what is written meanwhile
	limit     time.Duration
	scripts   bool
	in        *regexp.Regexp      // of paths
	files     []string            // that pawl is made of
	users     map[string][]string // whose tests see a package too, in the order in which they run
	passes    map[string]bool     // whether the tests of a package pass where nothing is broken
}

func main() {
	seed := flag.Uint64("seed", 1, "picks the lines")
	n := flag.Int("n", 100, "how many lines")
	limit := flag.Duration("limit", 10*time.Minute, "for all tests of one mutant; tests that hang for half of it catch it")
	scripts := flag.Bool("scripts", true, "run the whole-program scripts too, which take the longest")
	in := flag.String("in", "", "only lines of files whose path matches the `EXPRESSION`")
	out := flag.String("out", "bin/mutants.jsonl", "where results are written, and read when a run goes on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	dir, err := os.MkdirTemp("", "pawl-mutant-")
	if err == nil {
		m := mutator{dir: dir, limit: *limit, scripts: *scripts, in: regexp.MustCompile(*in), users: map[string][]string{}, passes: map[string]bool{}}
		err = m.mutate(ctx, *seed, *n, *out)
	}
	_ = os.RemoveAll(dir)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "cannot mutate:", err)
		os.Exit(1)
	}
}

func (m *mutator) mutate(ctx context.Context, seed uint64, n int, out string) error {
	if err := m.list(ctx); err != nil {
		return err
	}
	var lines [][]mutant // that can be broken, each with the ways
	hash := sha256.New()
	for _, name := range m.files {
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		fmt.Fprintf(hash, "%s %d\n%s", name, len(text), text)
		all, err := mutants(name, text)
		if err != nil {
			return err
		}
		lines = append(lines, all...)
	}
	head := fmt.Sprintf("seed %d of %d lines, tree %x", seed, len(lines), hash.Sum(nil)[:6])
	known, log, err := resume(out, head)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeated
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	var results []result
	for _, l := range lines {
		if len(results) == n {
			break
		}
		one := l[random.IntN(len(l))]
		r, ok := known[fmt.Sprint(one.file, one.line)]
		if !ok {
			if r, err = m.try(ctx, one); err == nil && ctx.Err() == nil { // else it was ended, and shows nothing
				err = json.NewEncoder(log).Encode(r)
			}
		}
		if err := cmp.Or(err, ctx.Err()); err != nil {
			return err
		}
		if r.By != notBuilt { // else another is drawn
			fmt.Println(r)
			results = append(results, r)
		}
	}
	left := slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.Killed })
	fmt.Printf("\n%d of %d mutants are caught\n", len(results)-len(left), len(results))
	for _, r := range left {
		fmt.Println(r)
	}
	return nil
}

// list finds the files that pawl is made of, and whose tests see which package.
func (m *mutator) list(ctx context.Context) (err error) {
	if m.root, err = os.Getwd(); err != nil {
		return err
	}
	list := func(args ...string) (lines [][]string) {
		out, failed := exec.CommandContext(ctx, "go", append([]string{"list"}, args...)...).Output()
		for line := range strings.Lines(string(out)) {
			lines = append(lines, strings.Fields(line))
		}
		err = cmp.Or(err, failed)
		return lines
	}
	imports := `{{.ImportPath}} {{join .Imports " "}} {{join .TestImports " "}} {{join .XTestImports " "}}`
	for _, p := range list("-f", imports, "./internal/...") {
		for _, imported := range slices.Compact(slices.Sorted(slices.Values(p[1:]))) {
			if imported != p[0] {
				m.users[imported] = append(m.users[imported], p[0])
			}
		}
	}
	for _, p := range list("-deps", "-f", `{{.ImportPath}} {{join .GoFiles " "}}`, "./"+program) {
		if dir, own := strings.CutPrefix(p[0], module); own {
			for _, name := range p[1:] {
				if name = path.Join(dir, name); m.in.MatchString(name) {
					m.files = append(m.files, name)
				}
			}
			if m.scripts {
				m.users[p[0]] = append(m.users[p[0]], module+program)
			}
		}
	}
	slices.Sort(m.files)
	return err
}

// resume opens the log of results, and reads those of the same lines.
func resume(name, head string) (known map[string]result, log *os.File, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, nil, err
	}
	if log, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return nil, nil, err
	}
	known = map[string]result{}
	s := bufio.NewScanner(log)
	same := s.Scan() && s.Text() == head
	if !same {
		err = log.Truncate(0)
		fmt.Fprintln(log, head)
	}
	for same && s.Scan() {
		var r result
		if json.Unmarshal(s.Bytes(), &r) == nil {
			known[fmt.Sprint(r.File, r.Line)] = r
		}
	}
	fmt.Println(head)
	return known, log, errors.Join(err, s.Err())
}

// try breaks a line and runs tests until one fails.
func (m *mutator) try(ctx context.Context, one mutant) (result, error) {
	r, began := result{File: one.file, Line: one.line, Change: one.change, By: "nothing"}, time.Now()
	text, err := os.ReadFile(one.file)
	if err != nil {
		return r, err
	}
	broken := filepath.Join(m.dir, "broken.go")
	overlay := filepath.Join(m.dir, "overlay.json")
	replace := fmt.Sprintf(`{"Replace": {%q: %q}}`, filepath.Join(m.root, one.file), broken)
	text = slices.Concat(text[:one.from], []byte(one.text), text[one.to:])
	if err := errors.Join(os.WriteFile(broken, text, 0o600), os.WriteFile(overlay, []byte(replace), 0o600)); err != nil {
		return r, err
	}
	ctx, cancel := context.WithTimeout(ctx, m.limit)
	defer cancel()
	own := module + path.Dir(one.file)
	var failed *exec.ExitError
	if _, err := m.run(ctx, overlay, "build", "-o", os.DevNull, own); errors.As(err, &failed) {
		r.By = notBuilt
		return r, nil
	} else if err != nil {
		return r, err
	}
	for _, tests := range append([]string{own}, m.users[own]...) {
		if passes, known := m.passes[tests]; known && !passes {
			continue
		}
		out, err := m.test(ctx, overlay, tests)
		if ctx.Err() != nil {
			r.By = "the time is over"
			break
		}
		if err != nil && m.healthy(tests) {
			r.Killed, r.By = true, path.Base(tests)+" "+failure.FindString(out)
			break
		}
	}
	r.Took = time.Since(began).Round(time.Second).String()
	return r, nil
}

func (m *mutator) test(ctx context.Context, overlay, tests string) (out string, err error) {
	return m.run(ctx, overlay, "test", "-short", "-failfast", "-vet=off", "-timeout="+(m.limit/2).String(), tests)
}

// healthy is true for tests that pass where nothing is broken; the others catch
// nothing.
func (m *mutator) healthy(tests string) bool {
	if _, known := m.passes[tests]; !known {
		out, err := m.test(context.Background(), "", tests)
		if m.passes[tests] = err == nil; err != nil {
			fmt.Printf("%s fails without a mutant: %s\n", tests, failure.FindString(out))
		}
	}
	return m.passes[tests]
}

// failure is how a test that failed is named.
var failure = regexp.MustCompile(`--- FAIL: \S+|panic: .*`)

// run runs go with the files of an overlay, "" is none, and leaves nothing that it or a test started or wrote.
func (m *mutator) run(ctx context.Context, overlay string, args ...string) (out string, err error) {
	dir, err := os.MkdirTemp(m.dir, "")
	if err != nil {
		return "", err
	}
	defer tidy(dir)
	mark := fmt.Sprintf("PAWL_MUTANT_OF=%d", os.Getpid())
	c := exec.CommandContext(ctx, "go", args...)
	c.Env = append(os.Environ(), "GOFLAGS=-overlay="+overlay, "TMPDIR="+dir, "GOMAXPROCS=2", mark)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	text, err := c.CombinedOutput()
	_, _ = process.Sweep(context.WithoutCancel(ctx), mark, 0)
	return string(text), err
}

// tidy removes a folder, and what tests that were ended had mounted in it.
func tidy(dir string) {
	mounts, _ := os.ReadFile("/proc/mounts")
	for line := range strings.Lines(string(mounts)) {
		if words := strings.Fields(line); len(words) > 1 && strings.HasPrefix(words[1], dir+"/") {
			_ = exec.CommandContext(context.Background(), "umount", "-l", words[1]).Run()
		}
	}
	_ = os.RemoveAll(dir)
}
