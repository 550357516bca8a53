// Command mutate breaks lines of the product, one at a time, and says which of
// these mutants the tests catch:  go run ./scripts/mutate -seed 1 -n 100
//
// The same seed picks the same lines of the same tree. The tree itself is not
// touched: go builds with the broken file in the place of the whole one.
//
// Tests run with a line broken only if they reach it, which they tell in one run
// where nothing is broken: first those of the line's own package, then, for a line
// that these miss, those of the packages that import it and the whole-program
// scripts, the quickest first, until one fails, twice. Results, and which tests
// reach what, are written as they come, so that a run that was ended goes on where
// it was. With a TMPDIR in memory it takes half of the time.
package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pawl-dev/pawl/internal/do/process"
)

const (
	module   = "github.com/pawl-dev/pawl/"
	program  = module + "cmd/pawl"
	scripts  = "TestScripts" // of the program
	notBuilt = "does not build"
	builds   = "it builds"
	missed   = "nothing of its own package" // the others have yet to run
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
	root, dir  string              // of the tree, and for what is written meanwhile
	most, jobs int                 // scripts for a line, lines at a time
	in         *regexp.Regexp      // of paths
	files      []string            // that pawl is made of
	users      map[string][]string // whose tests see a package too
	tracer
}

func main() {
	seed := flag.Uint64("seed", 1, "picks the lines")
	n := flag.Int("n", 100, "how many lines")
	most := flag.Int("scripts", 48, "how many whole-program scripts may run for a line")
	jobs := flag.Int("jobs", 3, "how many lines are broken at a time, each in a build of its own")
	in := flag.String("in", "", "only lines of files whose path matches the `EXPRESSION`")
	out := flag.String("out", "bin/mutants.jsonl", "where results are written, and read when a run goes on")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	dir, err := os.MkdirTemp("", "mutate")
	if err == nil {
		m := &mutator{dir: dir, most: *most, jobs: *jobs, in: regexp.MustCompile(*in), users: map[string][]string{}}
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
	fmt.Println(head)
	before, log, err := resume(out, head)
	if err != nil {
		return err
	}
	known := map[string]result{}
	for _, line := range before {
		var r result
		if json.Unmarshal(line, &r) == nil {
			known[fmt.Sprint(r.File, ":", r.Line)] = r
		}
	}
	defer func() { _ = log.Close() }()
	random := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // it is to be repeated
	random.Shuffle(len(lines), func(i, j int) { lines[i], lines[j] = lines[j], lines[i] })
	note := func(r result) error {
		if known[fmt.Sprint(r.File, ":", r.Line)] = r; r.By != notBuilt && r.By != builds {
			fmt.Println(r)
		}
		return json.NewEncoder(log).Encode(r)
	}
	run := func(which []mutant, by string, do func(context.Context, mutant, string) result) error {
		return m.each(ctx, slices.DeleteFunc(slices.Clone(which), func(one mutant) bool { return known[one.key()].By != by }), do, note)
	}
	var picked []mutant
	for from := 0; len(picked) < n && from < len(lines); { // those that do not build leave some over
		var some []mutant
		for _, l := range lines[from:min(from+n-len(picked), len(lines))] {
			some = append(some, l[random.IntN(len(l))])
		}
		from += len(some)
		if err := run(some, "", m.builds); err != nil {
			return err
		}
		picked = append(picked, slices.DeleteFunc(some, func(one mutant) bool { return known[one.key()].By == notBuilt })...)
	}
	if err := m.prepare(head, out+".traces", picked); err != nil {
		return err
	}
	if err := run(picked, builds, m.own); err != nil {
		return err
	}
	if err := run(picked, missed, m.others); err != nil {
		return err
	}
	survive := slices.DeleteFunc(slices.Clone(picked), func(one mutant) bool { return known[one.key()].Killed })
	fmt.Printf("\n%d of %d mutants are caught\n", len(picked)-len(survive), len(picked))
	for _, one := range survive {
		fmt.Println(known[one.key()])
	}
	return nil
}

// each does something with some mutants, a few at a time: tests wait a lot.
func (m *mutator) each(ctx context.Context, all []mutant, do func(context.Context, mutant, string) result,
	note func(result) error) (err error) {
	results, free := make(chan result), make(chan struct{}, m.jobs)
	go func() {
		var running sync.WaitGroup
		for _, one := range all {
			free <- struct{}{}
			running.Go(func() {
				defer func() { <-free }()
				if dir, err := os.MkdirTemp(m.dir, ""); err == nil && ctx.Err() == nil {
					results <- do(ctx, one, dir)
					_ = os.RemoveAll(dir)
				}
			})
		}
		running.Wait()
		close(results)
	}()
	for r := range results {
		if ctx.Err() == nil { // else it was ended, and shows nothing
			err = errors.Join(err, note(r))
		}
	}
	return cmp.Or(err, ctx.Err())
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
	for _, p := range list("-deps", "-f", `{{.ImportPath}} {{join .GoFiles " "}}`, program) {
		if dir, own := strings.CutPrefix(p[0], module); own {
			for _, name := range p[1:] {
				if name = path.Join(dir, name); m.in.MatchString(name) {
					m.files = append(m.files, name)
				}
			}
		}
	}
	slices.Sort(m.files)
	return err
}

// resume opens a log, and reads what it has below the same head.
func resume(name, head string) (known [][]byte, log *os.File, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, nil, err
	}
	if log, err = os.OpenFile(name, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644); err != nil {
		return nil, nil, err
	}
	text, err := io.ReadAll(log)
	known = bytes.Split(text, []byte("\n"))
	if string(known[0]) != head {
		err = errors.Join(err, log.Truncate(0))
		fmt.Fprintln(log, head)
		known = known[:1]
	}
	return known[1:], log, err
}

// builds says whether a mutant does.
func (m *mutator) builds(ctx context.Context, one mutant, dir string) result {
	r := result{File: one.file, Line: one.line, Change: one.change, By: builds}
	overlay, err := m.broken(one, dir)
	if err == nil {
		_, err = m.run(ctx, dir, overlay, "go", "build", "-o", os.DevNull, "./"+path.Dir(one.file))
	}
	if err != nil {
		r.By = notBuilt
	}
	return r
}

// own runs the tests of the package of a mutant.
func (m *mutator) own(ctx context.Context, one mutant, dir string) result {
	return m.try(ctx, one, dir, reaching([]trace{m.trace(ctx, module+path.Dir(one.file))}, one), missed)
}

// others runs the tests of other packages and the scripts that reach it.
func (m *mutator) others(ctx context.Context, one mutant, dir string) result {
	var packages []trace
	for _, pkg := range m.users[module+path.Dir(one.file)] {
		packages = append(packages, m.trace(ctx, pkg))
	}
	reach := reaching(m.scripts(ctx), one)
	some := reach[:min(len(reach), m.most)]
	packages = reaching(packages, one)
	none := fmt.Sprintf("nothing of %d packages and %d of %d scripts", len(packages), len(some), len(reach))
	return m.try(ctx, one, dir, slices.Concat(packages, some), none)
}

// try runs tests that reach a mutant until one fails: scripts a few at a time.
func (m *mutator) try(ctx context.Context, one mutant, dir string, all []trace, none string) result {
	r, began := result{File: one.file, Line: one.line, Change: one.change, By: none}, time.Now()
	overlay, err := m.broken(one, dir)
	if err != nil {
		r.By = err.Error()
	}
	for len(all) > 0 && !r.Killed && err == nil {
		now := all[:1]
		for all = all[1:]; now[0].Script != "" && len(all) > 0 && len(now) < 8; all = all[1:] {
			now = append(now, all[0])
		}
		if by := m.fails(ctx, overlay, now); by != "" {
			r.Killed, r.By = true, by
		}
	}
	r.Took = time.Since(began).Round(time.Second).String()
	return r
}

// broken writes a mutant, and the overlay that has it.
func (m *mutator) broken(one mutant, dir string) (overlay string, err error) {
	text, err := os.ReadFile(one.file)
	if err != nil {
		return "", err
	}
	text = slices.Concat(text[:one.from], []byte(one.text), text[one.to:])
	return replacing(dir, m.root, map[string][]byte{one.file: text})
}

// replacing writes files that go builds in the place of those of the tree.
func replacing(dir, root string, files map[string][]byte) (name string, err error) {
	replace := map[string]string{}
	for file, text := range files {
		to := filepath.Join(dir, fmt.Sprintf("%d.go", len(replace)))
		replace[filepath.Join(root, file)] = to
		err = errors.Join(err, os.WriteFile(to, text, 0o600))
	}
	text, failed := json.Marshal(map[string]map[string]string{"Replace": replace})
	name = filepath.Join(dir, "overlay.json")
	return name, errors.Join(err, failed, os.WriteFile(name, text, 0o600))
}

// fails is the test that fails with an overlay, and does again by itself: what else
// runs on the machine catches nothing.
func (m *mutator) fails(ctx context.Context, overlay string, which []trace) (by string) {
	pkg, only, wait := which[0].Package, "", 3*time.Minute
	for _, t := range which {
		only += "|" + t.Script
		wait += 10 * t.Takes
	}
	if only = "-test.run=^" + scripts + "$/^(" + only[1:] + ")$"; which[0].Script == "" {
		only = skipping(which[0])
	}
	dir := filepath.Dir(overlay)
	tests, err := m.build(ctx, dir, overlay, pkg)
	if err != nil {
		return err.Error()
	}
	for range 2 {
		out, err := m.test(ctx, overlay, tests, pkg, wait, only)
		if err == nil || ctx.Err() != nil {
			return ""
		}
		found := failure.FindAllStringSubmatch(out, -1)
		if len(found) == 0 {
			by = err.Error()
			continue
		}
		first := found[0]
		isScript := func(f []string) bool { return strings.Contains(f[1], "/") }
		if i := slices.IndexFunc(found, isScript); which[0].Script != "" && i >= 0 {
			first = found[i] // it stands below the test of all
		}
		if by = strings.TrimSuffix(first[0], " ("); first[1] != "" {
			only = "-test.run=^" + strings.ReplaceAll(first[1], "/", "$/^") + "$"
		}
	}
	return path.Base(pkg) + " " + by
}

// failure is how a test that failed is named.
var failure = regexp.MustCompile(`--- FAIL: ([^\s/]+(?:/[a-z0-9_]+)?) \(|panic: .*`)

// build builds the tests of a package.
func (m *mutator) build(ctx context.Context, dir, overlay, pkg string) (tests string, err error) {
	tests = filepath.Join(dir, "built.test")
	_ = os.Remove(tests)
	if out, err := m.run(ctx, dir, overlay, "go", "test", "-c", "-vet=off", "-o", tests, pkg); err != nil {
		return "", fmt.Errorf("cannot build the tests of %s: %s", pkg, out)
	}
	return tests, nil
}

// test runs tests that are built, where go would.
func (m *mutator) test(ctx context.Context, overlay, tests, pkg string, wait time.Duration, more ...string) (string, error) {
	in := strings.TrimPrefix(pkg, module)
	args := []string{"env", "-C", in, tests, "-test.short", "-test.failfast", "-test.timeout=" + wait.String()}
	return m.run(ctx, filepath.Dir(tests), overlay, append(args, more...)...)
}

// run runs a command with the files of an overlay, "" is none, and leaves nothing that it or a test started or wrote.
func (m *mutator) run(ctx context.Context, dir, overlay string, args ...string) (out string, err error) {
	if dir, err = os.MkdirTemp(dir, ""); err != nil {
		return "", err
	}
	defer tidy(dir)
	mark := "PAWL_MUTANT_OF=" + dir
	c := exec.CommandContext(ctx, args[0], args[1:]...)
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
