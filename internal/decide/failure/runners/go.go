package runners

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
)

// readGoTest reads `go test`, plain and with -v.
func readGoTest(t printed.Text) (Tests, bool) {
	g := goReader{at: map[string]*Body{}, of: map[*Body]string{}}
	for i := range t.LineCount() {
		g.readLine(t.LineAt(i))
	}
	if !g.seen {
		return Tests{}, false
	}
	return g.countTests(), true
}

type goResult struct {
	name string
	end  byte // 'P', 'F' or 'S'
}

type goReader struct {
	seen     bool
	results  []goResult
	at       map[string]*Body // what the tests said, by name
	current  string           // the test that speaks
	panics   bool             // the lines belong to a stack trace
	packages int              // that passed
	seenIn   []string         // the packages, in their order
	of       map[*Body]string // the package of a test that failed
	since    int              // the first result of the current package
	timedOut bool
}

func (g *goReader) readLine(l string) {
	said := strings.TrimLeft(l, " \t")
	switch {
	case strings.HasPrefix(said, "=== "): // RUN, CONT, NAME, PAUSE
		if f := strings.Fields(said); len(f) >= 3 {
			g.current, g.panics = f[2], false
		}
	case strings.HasPrefix(said, "--- "):
		g.readResult(said)
	case strings.HasPrefix(l, "ok  \t"), strings.HasPrefix(l, "FAIL\t"), strings.HasPrefix(l, "?   \t"):
		g.endPackage(l)
	case strings.HasPrefix(l, "panic: "), strings.HasPrefix(l, "fatal error: "):
		g.panics = true
		g.timedOut = strings.HasPrefix(l, "panic: test timed out")
		g.addTestLine(l)
		if said, ok := strings.CutPrefix(l, "panic: "); ok && !g.timedOut {
			said, _, _ = strings.Cut(said, " [recovered")
			g.currentBody().Item.Expected, g.currentBody().Item.Received = "no panic", said
		}
	case g.timedOut && strings.HasPrefix(l, "\t\t") && strings.HasSuffix(l, ")"): // running tests
		name, _, _ := strings.Cut(said, " (")
		g.current = name
		g.results = append(g.results, goResult{name, 'F'})
		g.addTestLine("test timed out")
	case g.panics:
		if strings.HasPrefix(l, "\t") {
			g.readFrame(said)
		}
	case said != "" && (l != said || strings.HasPrefix(g.current, "Example")):
		g.addTestLine(said)
	}
}

func (g *goReader) readResult(said string) {
	f := strings.Fields(said)
	if len(f) < 3 {
		return
	}
	end := f[1][0]
	if f[1] != "PASS:" && f[1] != "FAIL:" && f[1] != "SKIP:" {
		return
	}
	g.seen = true
	g.current, g.panics = f[2], false
	g.results = append(g.results, goResult{f[2], end})
}

func (g *goReader) endPackage(l string) {
	g.seen = true
	f := strings.Split(l, "\t")
	name, _, _ := strings.Cut(strings.TrimSpace(f[min(1, len(f)-1)]), " ")
	g.seenIn = append(g.seenIn, name)
	for _, r := range g.results[g.since:] {
		if b := g.at[r.name]; b != nil {
			g.of[b] = name
		}
	}
	g.since = len(g.results)
	if l[0] == 'o' && !strings.Contains(l, "[no tests to run]") {
		g.packages++
	}
	g.panics, g.timedOut, g.current = false, false, ""
	delete(g.at, "")
}

func (g *goReader) currentBody() *Body {
	b := g.at[g.current]
	if b == nil {
		if len(g.at) > 10_000 {
			return &Body{}
		}
		b = &Body{}
		g.at[g.current] = b
	}
	return b
}

func (g *goReader) addTestLine(l string) {
	if file, _, ok := strings.Cut(l, "Error Trace:"); ok && strings.TrimSpace(file) == "" { // testify
		return
	}
	b := g.currentBody()
	p, ok := places.In(l)
	if ok && p.From == 0 && strings.HasPrefix(p.Rest, ": ") {
		if b.Item.File == "" {
			b.Item.File, b.Item.Line = p.File, p.Line
		}
		l = p.Rest[2:]
	}
	b.ReadLine(l)
}

// readFrame takes the first call of the project's own code in a panic.
func (g *goReader) readFrame(said string) {
	b := g.currentBody()
	if p, ok := places.In(said); ok && !places.IsForeign(p.File) && b.Item.File == "" {
		b.Item.File, b.Item.Line = p.File, p.Line
	}
}

// inPackage is the file of a test with the folder of its package below what all
// packages of the output have in common: go test names only the file.
func (g *goReader) inPackage(b *Body) string {
	file := b.Item.File
	if file == "" || strings.Contains(file, "/") || len(g.seenIn) < 2 {
		return file
	}
	common := g.seenIn[0] + "/"
	for _, name := range g.seenIn {
		for common != "" && !strings.HasPrefix(name+"/", common) {
			common = common[:strings.LastIndexByte(strings.TrimSuffix(common, "/"), '/')+1]
		}
	}
	if rest, ok := strings.CutPrefix(g.of[b], common); ok && common != "" {
		return rest + "/" + file
	}
	return file
}

// countTests counts the leaves: a test with subtests is only their sum.
func (g *goReader) countTests() Tests {
	parents := map[string]bool{}
	for _, r := range g.results {
		for i := range len(r.name) {
			if r.name[i] == '/' {
				parents[r.name[:i]] = true
			}
		}
	}
	out := Tests{Runner: "go"}
	verbose := false
	for _, r := range g.results {
		verbose = verbose || r.end == 'P'
		if parents[r.name] && g.at[r.name] == nil {
			continue
		}
		if parents[r.name] && r.end != 'F' {
			continue
		}
		switch r.end {
		case 'P':
			out.Passed++
		case 'S':
			out.Skipped++
		case 'F':
			out.Failed++
			it := Item{Test: r.name}
			if b := g.at[r.name]; b != nil {
				it = b.Item
				it.Test = r.name
				it.File = g.inPackage(b)
			}
			out.Items = append(out.Items, it)
		}
	}
	if !verbose {
		out.Passed += g.packages
	}
	return out
}
