package delivery

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/pawl-dev/pawl/internal/decide/deliver"
	"github.com/pawl-dev/pawl/internal/do/workspace"
)

var orders = flag.Int("orders", 12, "how many orders of events TestAnyOrder plays")

// Whatever a person and agents do, in any order, and wherever pawl is killed: what the
// branch gets from pawl was judged green as it is, no byte of the person's is changed but
// by a delivery, and nothing is delivered twice.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]string{"rapid.checks": strconv.Itoa(*orders), "rapid.nofailfile": "true"} {
		if err := flag.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		p := &play{T: rt, d: newDesk(t), judged: map[string]bool{}}
		defer p.d.release()
		p.d.put("repo/gate.txt", "green\n")
		p.d.put("repo/b.txt", lines())
		p.d.put("repo/a.txt", lines())
		p.person("add", "-A")
		p.person("commit", "-qm", "second")
		if err := p.d.w.Begin(t.Context(), "r1"); err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(2, 7).Draw(rt, "iterations") {
			p.iterate()
		}
		p.putInOrder()
		p.exchange()
	})
}

func lines() string { return "1\n2\n3\n4\n5\n6\n7\n8\n9\n" }

// play is one order of events.
type play struct {
	*rapid.T
	d       *desk
	n       int             // iterations that ended
	green   bool            // the last one did
	commits int             // that the agent tried to make
	amended int             // that it tried to amend
	judged  map[string]bool // trees that the gate found green
}

func (p *play) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

func (p *play) top() string  { return p.d.w.Place().Top }
func (p *play) repo() string { return filepath.Join(p.d.dir, "repo") }

func runGit(dir string, args ...string) (string, error) {
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return strings.TrimSuffix(string(out), "\n"), err
}

// person runs git as a person does, who meets a refusal now and then.
func (p *play) person(args ...string) string {
	out, err := runGit(p.repo(), args...)
	if err != nil {
		p.Logf("git %s: %s", strings.Join(args, " "), out)
	}
	return out
}

// iterate is one round: exchange, agent and person, the gate, a delivery.
func (p *play) iterate() {
	if !p.exchange() {
		p.putInOrder()
		return
	}
	for range rapid.IntRange(1, 4).Draw(p.T, "deeds") {
		if rapid.Bool().Draw(p.T, "by the person") {
			p.personActs()
		} else {
			p.agentActs()
		}
	}
	p.n++
	p.d.w.ProtectUncommitted(p.d.t.Context(), func(string) {})
	snap, err := p.d.w.Tree().Snapshot(p.d.t.Context(), "r1", p.n, workspace.SnapshotOptions{})
	p.must(err)
	if p.green = p.gate(); p.green {
		p.judged[snap.Tree] = true
	}
	if rapid.Bool().Draw(p.T, "late") {
		p.personActs()
	}
	switch rapid.IntRange(0, 3).Draw(p.T, "then") {
	case 0:
		p.killedDelivery()
	case 1: // pawl ended, and the run is resumed later
		p.again()
	default:
		p.deliver(false)
	}
}

// gate judges the workspace. Two changes that are green each may be red together.
func (p *play) gate() bool {
	files := p.files(p.top())
	together := strings.Contains(files["a.txt"], "left") && strings.Contains(files["b.txt"], "right")
	return files["gate.txt"] == "green\n" && !together
}

// exchange is what comes before an iteration; false is that the run rests.
func (p *play) exchange() bool {
	for range 3 {
		switch p.deliver(false) {
		case deliver.Rest:
			return false
		case deliver.Combine:
		default:
			return p.bringIn()
		}
		if !p.bringIn() {
			return false
		}
		if p.green = p.gate(); !p.green {
			return true
		}
		seen, err := p.d.w.Here(p.d.t.Context())
		p.must(err)
		p.judged[seen.Tree] = true
		p.deliver(true)
	}
	return p.bringIn()
}

func (p *play) bringIn() bool {
	before := p.look()
	defer func() { p.sameButFor(before, p.look(), nil) }()
	for range 3 {
		in, err := p.d.w.BringIn(p.d.t.Context(), p.n)
		p.must(err)
		if in.Rests.Kind == deliver.Rest {
			return false
		}
		if len(in.Conflicts) == 0 {
			return true
		}
		for _, c := range in.Conflicts {
			choice := rapid.SampledFrom([]Choice{Mine, Agents}).Draw(p.T, "choice")
			if _, err := p.d.w.Settle(p.d.t.Context(), c.Path, choice, nil); err != nil {
				p.Fatal(err)
			}
		}
	}
	return false
}

// deliver delivers the last iteration, and looks at what became of the person's things.
func (p *play) deliver(together bool) deliver.Kind {
	if p.n == 0 {
		return deliver.Nothing
	}
	before := p.look()
	got, err := p.d.w.Deliver(p.d.t.Context(), Verdict{Iteration: p.n, Green: p.green, Together: together})
	p.must(err)
	if got.Why == "" {
		p.Errorf("%s has no reason", got.Kind)
	}
	if got.Kind != deliver.Deliver {
		p.sameButFor(before, p.look(), nil)
		return got.Kind
	}
	p.delivered(before, got)
	again, err := p.d.w.Deliver(p.d.t.Context(), Verdict{Iteration: p.n, Green: p.green})
	if err != nil || again.Kind == deliver.Deliver {
		p.Errorf("delivered twice: %+v, %v", again, err)
	}
	return got.Kind
}

func (p *play) delivered(before look, d Delivered) {
	p.Helper()
	if !p.judged[d.After] {
		p.Errorf("what was delivered after iteration %d was not judged green: %+v", d.Iteration, d)
	}
	p.sameButFor(before, p.look(), &d)
}

// killedDelivery delivers in a process that is killed at a point, if it comes to it.
func (p *play) killedDelivery() {
	if !p.green {
		return
	}
	before := p.look()
	p.d.release()
	point := rapid.SampledFrom([]string{"intended", "branch", "files", "index", "agreed"}).Draw(p.T, "killed at")
	cmd := exec.Command(os.Args[0], deliverCommand, p.d.dir, point, strconv.Itoa(p.n)) //nolint:gosec // the test itself
	if out, err := cmd.CombinedOutput(); err == nil {
		p.Fatalf("%s", out)
	}
	p.take()
	after := p.look()
	_, d, finished := p.d.w.Finished()
	switch {
	case finished:
		p.delivered(before, d)
	case cmd.ProcessState.ExitCode() < 0:
		p.sameButFor(before, after, nil) // nothing had moved
	}
}

// again takes the workspace as a resumed run does.
func (p *play) again() {
	p.d.release()
	p.take()
}

func (p *play) take() {
	w, err := take(p.d.t.Context(), p.d.dir, p.d.db, nil)
	p.must(err)
	p.d.w = w
	p.must(w.Continue(p.d.t.Context(), "r1"))
}

func (p *play) oneOf(who, deeds string) string {
	return rapid.SampledFrom(strings.Fields(deeds)).Draw(p.T, who)
}

// agentActs does one thing in the workspace.
func (p *play) agentActs() {
	top := p.top()
	run := func(args ...string) { _, _ = runGit(top, args...) }
	switch p.oneOf("agent", "write write write remove commit commit amend reset rubbish branch") {
	case "write":
		p.write(top, "left")
	case "remove":
		_ = os.Remove(filepath.Join(top, "c.txt"))
	case "commit":
		run("add", "-A")
		p.commits++
		run("commit", "-qm", fmt.Sprint("work ", p.commits))
	case "amend":
		p.amended++ // else it is another commit only where a second passed
		run("commit", "-q", "--amend", "--no-edit", fmt.Sprintf("--date=@%d", 1_000_000_000+p.amended))
	case "reset":
		run("reset", "-q", "--hard", "HEAD~1")
	case "rubbish":
		name := rapid.SampledFrom([]string{"HEAD", "packed-refs", "config", "index"}).Draw(p.T, "file")
		_ = os.WriteFile(filepath.Join(top, ".git", name), []byte("rubbish\n"), 0o600)
	case "branch":
		run("switch", "-qc", fmt.Sprint("agent-", p.n))
	}
}

// personActs does one thing in the person's own repository.
func (p *play) personActs() {
	switch p.oneOf("person", "write write write remove stage commit commit amend stash pop reset soft switch move") {
	case "write":
		p.write(p.repo(), "right")
	case "remove":
		_ = os.Remove(filepath.Join(p.repo(), "c.txt"))
	case "stage":
		p.person("add", "-A")
	case "commit":
		p.person("add", "-A")
		p.person("commit", "-qm", "mine")
	case "amend":
		p.person("commit", "-q", "--amend", "-m", "amended")
	case "stash":
		p.person("stash", "-q", "-u")
	case "pop":
		p.person("stash", "pop", "-q")
	case "reset":
		p.person("reset", "-q", "--hard", "HEAD~1")
	case "soft":
		p.person("reset", "-q", "--soft", "HEAD~1")
	case "switch":
		p.person("switch", "-qC", "other")
	case "move":
		p.person("mv", "b.txt", "d.txt")
	}
}

// write changes a line of a file, or makes one.
func (p *play) write(top, word string) {
	name := rapid.SampledFrom([]string{"a.txt", "b.txt", "c.txt", "dir/d.txt", "gate.txt"}).Draw(p.T, "name")
	path := filepath.Join(top, name)
	data, _ := os.ReadFile(path)
	text := rapid.SampledFrom([]string{"green\n", "green\n", "red\n"}).Draw(p.T, "verdict")
	if name != "gate.txt" {
		all := strings.Split(string(data)+"\n", "\n")
		all[rapid.IntRange(0, len(all)-1).Draw(p.T, "line")] = word
		text = strings.TrimSuffix(strings.Join(all, "\n"), "\n")
	}
	_ = os.MkdirAll(filepath.Dir(path), 0o700)
	_ = os.WriteFile(path, []byte(text), 0o600)
}

// putInOrder is what a person does about a run that rests: the branch is there again, and
// a run begins anew where the old one cannot go on.
func (p *play) putInOrder() {
	p.person("switch", "-q", "main")
	if in, err := p.d.w.BringIn(p.d.t.Context(), p.n); err == nil && in.Rests.Kind != deliver.Rest {
		return
	}
	p.must(p.d.w.Begin(p.d.t.Context(), "r1"))
	p.n, p.green = 0, false
}

// look is all that a person has.
type look struct {
	files  map[string]string
	index  map[string]string
	head   map[string]string // of what is checked out, the index as it would be
	refs   map[string]string
	branch string
	agreed map[string]string // files that the workspace and the checkout had in common
	base   map[string]string // the same, the index as it would be
	theirs map[string]string // files of the workspace
}

func (p *play) look() look {
	l := look{
		files: p.files(p.repo()), theirs: p.files(p.top()), index: map[string]string{}, head: map[string]string{},
		refs: map[string]string{}, agreed: map[string]string{}, base: map[string]string{},
	}
	l.branch, _ = runGit(p.repo(), "symbolic-ref", "-q", "HEAD")
	for list, args := range map[*map[string]string][]string{
		&l.index: {"ls-files", "-s"}, &l.head: {"ls-tree", "-r", "HEAD"},
		&l.refs: {"for-each-ref", "--format=%(objectname)%09%(refname)"},
	} {
		out, err := runGit(p.repo(), args...)
		p.must(err)
		for line := range strings.Lines(out) {
			value, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			if f := strings.Fields(value); len(f) == 3 {
				value = strings.Replace(f[0]+" "+f[1], " blob", "", 1)
				if list == &l.head {
					value = f[0] + " " + f[2]
				}
			}
			(*list)[name] = value
		}
	}
	store := p.d.w.Person().Store.Dir
	entries, err := runGit(store, "--git-dir", store, "ls-tree", "-r", p.d.w.Agreed().Tree)
	p.must(err)
	for line := range strings.Lines(entries) {
		entry, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		f := strings.Fields(entry)
		l.base[name] = f[0] + " " + f[2]
		cmd := exec.Command("git", "--git-dir", store, "cat-file", "blob", p.d.w.Agreed().Tree+":"+name)
		out, err := cmd.Output()
		p.must(err)
		l.agreed[name] = string(out)
	}
	return l
}

func (p *play) files(top string) map[string]string {
	files := map[string]string{}
	p.must(fs.WalkDir(os.DirFS(top), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == ".git" {
			return fs.SkipDir
		}
		if e.Type().IsRegular() {
			data, err := os.ReadFile(filepath.Join(top, name))
			files[name] = string(data)
			return err
		}
		return nil
	}))
	return files
}

// sameButFor compares what the person has with before: only a delivery changes it, and
// only where the person had what the work began with.
func (p *play) sameButFor(before, after look, d *Delivered) {
	p.Helper()
	for _, name := range slices.Sorted(maps.Keys(union(before.files, after.files))) {
		was, wasThere := before.files[name]
		now, there := after.files[name]
		if was == now && wasThere == there {
			continue
		}
		base, had := before.agreed[name]
		theirs, have := before.theirs[name]
		if d == nil || was != base || wasThere != had || now != theirs || there != have {
			p.Errorf("%s was %q and is %q; both had %q, the agent has %q; delivered: %+v",
				name, was, now, base, theirs, d)
		}
	}
	for name := range union(before.refs, after.refs) {
		if before.refs[name] != after.refs[name] && (d == nil || name != before.branch || after.refs[name] != d.To) {
			p.Errorf("%s was %s and is %s; delivered: %+v", name, before.refs[name], after.refs[name], d)
		}
	}
	for name := range union(before.index, after.index) {
		was, now := before.index[name], after.index[name]
		nothingElse := was == before.head[name] || was == before.base[name] // is staged
		if was != now && (d == nil || !nothingElse || now != after.head[name]) {
			p.Errorf("the index has %q for %s, and had %q; delivered: %+v", now, name, was, d)
		}
	}
	log, err := runGit(p.repo(), "log", "--format=%s")
	p.must(err)
	seen := map[string]bool{}
	for subject := range strings.Lines(log) {
		if strings.HasPrefix(subject, "work ") && seen[subject] {
			p.Errorf("there twice: %s", subject)
		}
		seen[subject] = true
	}
}

func union(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}
