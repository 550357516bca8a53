package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// trace says which lines some tests reach, where nothing is broken.
type trace struct {
	Package, Script string
	Takes           time.Duration // 0 if there are none
	Reaches         []string
	Except          []string // those that fail, and so catch nothing
}

// tracer runs tests where nothing is broken, when they are asked for, and once.
type tracer struct {
	lines    []mutant
	anywhere []string // of them
	overlay  string
	log      *os.File

	before []trace // of an earlier run of this program

	mu   sync.Mutex
	runs map[string]func() []trace
}

// reaching are the tests that reach a line, the quickest first.
func reaching(all []trace, one mutant) []trace {
	not := func(t trace) bool { return t.Takes == 0 || !slices.Contains(t.Reaches, one.key()) }
	all = slices.DeleteFunc(slices.Clone(all), not)
	slices.SortStableFunc(all, func(a, b trace) int { return cmp.Compare(a.Takes, b.Takes) })
	return all
}

// prepare makes ready to trace lines, and reads what is known of them.
func (m *mutator) prepare(head, file string, lines []mutant) (err error) {
	m.lines, m.runs = lines, map[string]func() []trace{}
	hash := sha256.New()
	for _, one := range lines {
		fmt.Fprintln(hash, one.key())
	}
	text, log, err := resume(file, fmt.Sprintf("%s, of them %x", head, hash.Sum(nil)[:6]))
	if err != nil {
		return err
	}
	m.log = log
	for _, line := range text {
		var t trace
		if json.Unmarshal(line, &t) == nil {
			m.before = append(m.before, t)
		}
	}
	return m.tell()
}

// trace is of the tests of a package.
func (m *mutator) trace(ctx context.Context, pkg string) trace {
	return m.once(ctx, pkg, func(t trace) bool { return t.Package == pkg && t.Script == "" }, func() []trace {
		t := trace{Package: pkg}
		for {
			took, out, reached, failed := m.whole(ctx, pkg, skipping(t))
			if t.Reaches = slices.Concat(reached["none"], m.anywhere); !failed {
				t.Takes = took
				break
			}
			found := failure.FindStringSubmatch(out)
			if len(found) < 2 || found[1] == "" || slices.Contains(t.Except, found[1]) {
				break
			}
			t.Except = append(t.Except, found[1])
		}
		if t.Takes == 0 || len(t.Except) > 0 {
			fmt.Printf("of %s there are no tests, or without a mutant these fail: %s\n", pkg, t.Except)
		}
		return []trace{t}
	})[0]
}

// skipping is the argument that leaves out tests which fail where nothing is broken.
func skipping(t trace) string { return "-test.skip=^(" + strings.Join(t.Except, "|") + ")$" }

// scripts are their traces. What processes of no named script reach, all do, unless some
// are known to.
func (m *mutator) scripts(ctx context.Context) []trace {
	return m.once(ctx, scripts, func(t trace) bool { return t.Script != "" }, func() (all []trace) {
		_, out, reached, _ := m.whole(ctx, program, "-test.run=^"+scripts+"$", "-test.v")
		stray := reached["none"]
		delete(reached, "none")
		for _, keys := range reached {
			stray = slices.DeleteFunc(stray, func(key string) bool { return slices.Contains(keys, key) })
		}
		for _, found := range ended.FindAllStringSubmatch(out, -1) {
			took, _ := time.ParseDuration(found[2])
			reaches := slices.Concat(reached["script-"+found[1]], stray)
			all = append(all, trace{Package: program, Script: found[1], Takes: max(took, time.Millisecond), Reaches: reaches})
		}
		return all
	})
}

// once is what an earlier run of this program found out, or this one does.
func (m *mutator) once(ctx context.Context, name string, is func(trace) bool, find func() []trace) []trace {
	m.mu.Lock()
	run := m.runs[name]
	if run == nil {
		run = sync.OnceValue(func() []trace {
			found := slices.DeleteFunc(slices.Clone(m.before), func(t trace) bool { return !is(t) })
			if len(found) > 0 {
				return found
			}
			found = find()
			m.mu.Lock()
			defer m.mu.Unlock()
			for _, t := range found {
				if ctx.Err() == nil { // else it shows nothing
					_ = json.NewEncoder(m.log).Encode(t)
				}
			}
			return found
		})
		m.runs[name] = run
	}
	m.mu.Unlock()
	return run()
}

// whole runs tests where nothing is broken, and is how long they take, and what they
// reach: by script, or by none.
func (m *mutator) whole(ctx context.Context, pkg string, args ...string) (
	took time.Duration, out string, reached map[string][]string, failed bool,
) {
	reached = map[string][]string{}
	dir, err := os.MkdirTemp(m.dir, "")
	if err != nil {
		return 0, "", reached, true
	}
	defer func() { _ = os.RemoveAll(dir) }()
	tests, err := m.build(ctx, dir, m.overlay, pkg)
	if _, none := os.Stat(tests); err != nil || none != nil {
		return 0, "", reached, err != nil
	}
	began := time.Now()
	out, err = m.test(ctx, m.overlay, tests, pkg, time.Hour, args...)
	took = max(time.Since(began), time.Millisecond)
	marks, _ := filepath.Glob(filepath.Join(m.dir, "seen", filepath.Base(dir), "*", "*"))
	for _, mark := range marks {
		if number, err := strconv.Atoi(filepath.Base(mark)); err == nil {
			script := filepath.Base(filepath.Dir(mark))
			reached[script] = append(reached[script], m.lines[number].key())
		}
	}
	return took, out, reached, err != nil
}

// ended is how a script that passed is named.
var ended = regexp.MustCompile(`--- PASS: ` + scripts + `/(\S+) \((\S+)\)`)

// seen is a package that is built in only.
const seen = "internal/pawlseen"

// told is its text. A program tells it to a folder of the tests that it is made for, and
// in there of the script that it belongs to.
const told = `package pawlseen

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
)

var before [%d]atomic.Bool

func At(number int) {
	if before[number].Swap(true) {
		return
	}
	dir, script := %q, filepath.Base(os.Getenv("WORK"))
	if !strings.HasPrefix(script, "script-") {
		script = "none"
	}
	program, _ := os.Executable()
	tests, _, _ := strings.Cut(strings.TrimPrefix(program, dir+"/"), "/")
	to := filepath.Join(dir, "seen", tests, script)
	_ = os.MkdirAll(to, 0o777)
	_ = os.WriteFile(filepath.Join(to, strconv.Itoa(number)), nil, 0o666)
}
`

// tell makes the overlay with which the lines tell that they are reached. Those outside
// of functions cannot: for them the tests of packages run, and no scripts.
func (m *mutator) tell() error {
	files := map[string][]byte{seen + "/seen.go": fmt.Appendf(nil, told, len(m.lines)+1, m.dir)}
	calls := map[string]map[int]int{}
	for number, one := range m.lines {
		if calls[one.file] == nil {
			calls[one.file] = map[int]int{}
		}
		calls[one.file][number] = one.from
	}
	for file, places := range calls {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var outside []int
		if files[file], outside, err = telling(file, text, places); err != nil {
			return err
		}
		for _, number := range outside {
			m.anywhere = append(m.anywhere, m.lines[number].key())
		}
	}
	dir := filepath.Join(m.dir, "tell")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	name, err := replacing(dir, m.root, files)
	m.overlay = name
	return err
}

// telling adds to a file that it tells when the statements at some places are reached,
// each with its number.
func telling(name string, text []byte, places map[int]int) (_ []byte, outside []int, err error) {
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	calls := map[int]string{files.Position(parsed.Name.End()).Offset: "; import pawlseen \"" + module + seen + "\""}
	for number, at := range places {
		if to := statement(parsed, files.File(parsed.Pos()).Pos(at)); to.IsValid() {
			calls[files.Position(to).Offset] += fmt.Sprintf("pawlseen.At(%d); ", number)
		} else {
			outside = append(outside, number)
		}
	}
	for _, at := range slices.Backward(slices.Sorted(maps.Keys(calls))) {
		text = slices.Insert(slices.Clone(text), at, []byte(calls[at])...)
	}
	return append(text, "\nvar _ = pawlseen.At\n"...), outside, nil
}

// statement is where the innermost statement begins that holds a place and can have
// another before it.
func statement(parsed *ast.File, place token.Pos) (begin token.Pos) {
	ast.Inspect(parsed, func(n ast.Node) bool {
		if n == nil || place < n.Pos() || place >= n.End() {
			return false
		}
		var list []ast.Stmt
		switch n := n.(type) {
		case *ast.FuncDecl:
			if n.Body != nil && place == n.Body.Lbrace {
				begin = place + 1
			}
		case *ast.BlockStmt:
			list = n.List
		case *ast.CaseClause:
			list = n.Body
		case *ast.CommClause:
			list = n.Body
		}
		for _, s := range list {
			_, isCase := s.(*ast.CaseClause)
			_, isComm := s.(*ast.CommClause)
			if s.Pos() <= place && place < s.End() && !isCase && !isComm {
				begin = s.Pos()
			}
		}
		return true
	})
	return begin
}
