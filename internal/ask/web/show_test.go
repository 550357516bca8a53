package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/ask/config"
	"github.com/pawl-dev/pawl/internal/ask/config/statedir"
	"github.com/pawl-dev/pawl/internal/ask/planner"
	"github.com/pawl-dev/pawl/internal/ask/web/activity"
	"github.com/pawl-dev/pawl/internal/ask/web/patch"
	"github.com/pawl-dev/pawl/internal/ask/web/rest"
	"github.com/pawl-dev/pawl/internal/ask/web/view"
	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/workspace"
	"github.com/pawl-dev/pawl/internal/keep/journal"
	"github.com/pawl-dev/pawl/internal/keep/outputs"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// step stores the end of an iteration, and what the loop asks for next.
func (r *rig) step(id string, n int64, rec loop.Record, next loop.Command) {
	r.t.Helper()
	row, err := r.store.Run(r.t.Context(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	row.Iteration = rec.Number
	e, err := journal.New(id, n, noon.Add(time.Duration(n)*time.Second), journal.IterationEnded, struct {
		loop.Record
		Next loop.Command `json:"next"`
	}{rec, next})
	if err == nil {
		err = r.store.Commit(r.t.Context(), store.Step{Run: row, Event: e, Record: &rec})
	}
	if err != nil {
		r.t.Fatal(err)
	}
}

func record(number int, outcome loop.Outcome) loop.Record {
	return loop.Record{Number: number, Attempt: 1, Outcome: outcome, StartedAt: time.Now().UTC(), Elapsed: 2 * time.Second, Agent: "claude", Strategy: "default", Progress: -1, Score: -1, CostSource: "none"}
}

// Pages of runs are whole: each run is on one of them, however they are cut,
// and a run that starts meanwhile moves none.
func TestPagesOfRuns(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for i := range 25 {
		r.run(fmt.Sprintf("run%02d", i), func(row *store.Run, _ *loop.State) {
			row.Name, row.StartedAt = fmt.Sprintf("build %d", i), noon.Add(time.Duration(i/3)*time.Second)
		})
	}
	var got []string
	cursor := ""
	for range 10 {
		var page view.RunPage
		r.get("/runs?limit=4&cursor="+cursor, &page)
		for _, one := range page.Runs {
			got = append(got, one.ID)
		}
		if len(got) == 4 {
			r.run("late", func(row *store.Run, _ *loop.State) { row.Name, row.StartedAt = "late", noon.Add(time.Hour) })
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if len(got) != 25 || got[0] != "run24" || got[24] != "run00" {
		t.Errorf("got %d: %v", len(got), got)
	}
	for query, want := range map[string]int{
		"name=build%203": 1, "q=BUILD%201": 11, "q=run07": 1, "q=%25": 0, "status=running": 26, "status=completed": 0, "status=running,failed": 26, "kind=task": 0, "active=true": 26,
	} {
		var page view.RunPage
		r.get("/runs?limit=100&"+query, &page)
		if len(page.Runs) != want {
			t.Errorf("%s: %d runs, want %d", query, len(page.Runs), want)
		}
	}
	for _, bad := range []string{"limit=0", "limit=5000", "cursor=x", "status=odd", "unknown=1", "limit=a"} {
		if p := r.refused(http.MethodGet, "/runs?"+bad, "", http.StatusUnprocessableEntity); p.Code != "INVALID_REQUEST" || len(p.Details) == 0 {
			t.Errorf("%s: %+v", bad, p)
		}
	}
}

// A run's page has its question with the options, and what was asked of it.
func TestRunWithQuestion(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(row *store.Run, s *loop.State) {
		row.Status, row.Why, row.Owner = "blocked", "stuck", store.Owner{PID: 1, Start: "0", Boot: "b", Host: "h"}
		s.Status = loop.Blocked
		s.Policy.MaxCost, s.Limit = 5_000_000, 10
		s.Question = &loop.Question{Text: "What <b>now</b>?", Attempts: []string{"1 failed"}, Pattern: "the same", Choices: []control.Choice{
			{Text: "Try again, with guidance", Do: control.TryAgain, Advice: true}, {Text: "Reject", Do: control.TryAgain, Needs: true, Advice: true}, {Text: "Give up", Do: control.GiveUp},
		}}
	})
	var run view.RunDetail
	r.get("/runs/abc", &run)
	if len(run.Gates) != 1 || run.Gates[0].Name != "tests" {
		t.Errorf("the checks of a run of an older pawl are those of the configuration; got %+v", run.Gates)
	}
	if run.Question == nil || run.Question.Text != "What <b>now</b>?" || len(run.Question.Options) != 3 {
		t.Fatalf("the question is %+v", run.Question)
	}
	var options []string
	for _, o := range run.Question.Options {
		options = append(options, fmt.Sprintf("%d %s %s %v", o.Number, o.Does, o.Words, o.Ends))
	}
	if got := strings.Join(options, "; "); got != "1 retry welcome false; 2 retry needed false; 3 give up none true" {
		t.Errorf("the options are %s", got)
	}
	if run.Limits.CostUSD == nil || *run.Limits.CostUSD != 5 || run.Limits.Iterations != 10 || strings.Join(run.Actions, " ") != "answer resume raise message rollback" {
		t.Errorf("got %+v", run)
	}
	var inbox view.Inbox
	r.get("/inbox", &inbox)
	if len(inbox.Entries) != 1 || inbox.Entries[0].Kind != "blocked" || inbox.Entries[0].Question == nil || inbox.Entries[0].Run.ID != "abc123" {
		t.Errorf("the inbox is %+v", inbox)
	}
	r.run("newer1", func(row *store.Run, _ *loop.State) { row.StartedAt = noon.Add(time.Hour) })
	r.get("/inbox", &inbox)
	if len(inbox.Entries) != 0 {
		t.Errorf("a run that was left behind is in the inbox: %+v", inbox)
	}
}

// An iteration has everything that its page shows.
func TestIterations(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	one := record(1, loop.Failed)
	one.Gates = []loop.Gate{{Name: "tests", Required: true, Status: loop.GateFailed, ExitCode: 1, Test: true, Passed: 2, Total: 3, Elapsed: 42 * time.Second}, {Name: "lint", Status: loop.GateNotRun, Total: -1}}
	one.Failure = &failure.Analysis{Class: failure.TestFailure, Kind: "work", Severity: failure.High, Summary: "1 of 3 failed", Step: "tests", Fingerprint: "f", Items: []failure.Item{{File: "a.go", Line: 3, Message: "<img src=x onerror=alert(1)>"}}}
	one.Score, one.Verified = 666, true
	r.step("abc123", 2, one, loop.Command{Kind: loop.Run, Iteration: 2, Attempt: 1, Strategy: "diagnose", StrategyWhy: "a test failed", Feedback: &loop.Feedback{Instruction: "Find the cause first."}})
	two := record(2, loop.Success)
	two.Strategy, two.Cost, two.CostSource, two.Progress = "diagnose", 250_000, "reported", 80
	two.Review = &loop.Review{Verdict: loop.Rejected, Agent: "codex", Summary: "no tests", Items: []loop.Finding{{Item: failure.Item{Message: "add one"}, Severity: failure.High}}}
	r.step("abc123", 3, two, loop.Command{Kind: loop.Finish})
	var page view.IterationPage
	r.get("/runs/abc123/iterations", &page)
	if len(page.Iterations) != 2 {
		t.Fatalf("got %+v", page)
	}
	a, b := page.Iterations[0], page.Iterations[1]
	g := a.Gates[0]
	if g.Passed == nil || *g.Passed != 2 || *g.Total != 3 || g.Timeout != 60 || g.File != "gate-1.out" || a.Gates[1].Passed != nil || a.Gates[1].File != "" || *a.Score != 0.666 || a.CostUSD != nil || a.Progress != nil {
		t.Errorf("the first is %+v", a)
	}
	if a.Failure == nil || a.Failure.Step != "tests" || len(a.Failure.Items) != 1 || a.Failure.Items[0].Message != "<img src=x onerror=alert(1)>" || a.StrategyWhy != "" {
		t.Errorf("its failure is %+v", a.Failure)
	}
	if b.StrategyWhy != "a test failed" || b.Instruction != "Find the cause first." || *b.CostUSD != 0.25 || *b.Progress != 80 || b.Review.Verdict != "rejected" || b.Review.Items[0].Severity != "high" {
		t.Errorf("the second is %+v", b)
	}
	var marks []string
	for _, l := range a.Story {
		marks = append(marks, l.What+" "+l.Mark)
	}
	if got := strings.Join(marks, ", "); got != "agent passed, gate failed, gate not run, failure failed" {
		t.Errorf("its story is %s", got)
	}
	r.get("/runs/abc123/iterations?limit=1", &page)
	if page.NextCursor != "1.1" || len(page.Iterations) != 1 {
		t.Errorf("the first page is %+v", page)
	}
	r.get("/runs/abc123/iterations?limit=1&cursor=1.1", &page)
	if page.Iterations[0].Number != 2 || page.Iterations[0].StrategyWhy != "a test failed" {
		t.Errorf("the second page is %+v", page)
	}
	if p := r.refused(http.MethodGet, "/runs/abc123/iterations/7", "", http.StatusNotFound); p.Code != "ITERATION_NOT_FOUND" {
		t.Errorf("%+v", p)
	}
}

// Parts of a file come by bytes, never cut inside of a character; bytes that
// are no text do no harm, and a file of 100 MB is read in parts.
func TestPartsOfFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.left("abc123", 1, map[string]string{"agent.out": "aé€😀\x00\xff\x1b[31mz", "begun.json": `{"attempt":1}`})
	var whole strings.Builder
	var part view.FilePart
	for offset := int64(0); ; offset = part.Next {
		r.get(fmt.Sprintf("/runs/abc123/iterations/1/files/agent.out?limit=4&offset=%d", offset), &part)
		whole.WriteString(part.Text)
		if !part.More {
			break
		}
		if part.Next <= offset {
			t.Fatalf("no progress at %d: %+v", offset, part)
		}
	}
	if got := whole.String(); got != "aé€😀\x00\uFFFD\x1b[31mz" {
		t.Errorf("got %q", got)
	}
	r.get("/runs/abc123/iterations/1/files/agent.out?offset=-1", &part)
	if part.Text != "z" {
		t.Errorf("the end is %q", part.Text)
	}
	big := filepath.Join(r.dir, "runs", "abc123", "1", "gate-1.out")
	if err := os.WriteFile(big, []byte("begin"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 100<<20); err != nil {
		t.Fatal(err)
	}
	r.get("/runs/abc123/iterations/1/files/gate-1.out?offset=104857500&limit=1048576", &part)
	if part.Size != 100<<20 || len(part.Text) != 100 || part.More {
		t.Errorf("the end of 100 MB: %d bytes of %d", len(part.Text), part.Size)
	}
	req := r.asking(http.MethodGet, rest.Base+"/runs/abc123/iterations/1/files/gate-1.out/raw", "")
	req.Header.Set("Range", "bytes=0-4")
	w := r.send(req)
	if w.Code != http.StatusPartialContent || w.Body.String() != "begin" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") || !strings.HasPrefix(w.Header().Get("Content-Disposition"), "attachment") {
		t.Errorf("raw: %d %q %v", w.Code, w.Body, w.Header())
	}
	var files view.FileList
	r.get("/runs/abc123/iterations/1/files", &files)
	if len(files.Files) != 2 || files.Files[0].Name != "agent.out" {
		t.Errorf("the files are %+v", files)
	}
}

// A file that pawl has packed looks as it did before.
func TestPackedFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	text := strings.Repeat("many words\n", 1000)
	r.left("abc123", 1, map[string]string{"agent.out": text, "begun.json": `{"attempt":1}`})
	if err := outputs.Compact(filepath.Join(r.dir, "runs", "abc123", "1")); err != nil {
		t.Fatal(err)
	}
	var files view.FileList
	r.get("/runs/abc123/iterations/1/files", &files)
	if len(files.Files) != 1 || files.Files[0].Name != "agent.out" || files.Files[0].Size != int64(len(text)) {
		t.Errorf("the files are %+v", files)
	}
	var part view.FilePart
	r.get("/runs/abc123/iterations/1/files/agent.out?offset=-6", &part)
	if part.Text != "words\n" || part.Size != int64(len(text)) {
		t.Errorf("its end is %+v", part)
	}
	req := r.asking(http.MethodGet, rest.Base+"/runs/abc123/iterations/1/files/agent.out/raw", "")
	req.Header.Set("Range", "bytes=5-9")
	if w := r.send(req); w.Code != http.StatusPartialContent || w.Body.String() != "words" {
		t.Errorf("raw: %d %q %v", w.Code, w.Body, w.Header())
	}
	w := r.send(r.asking(http.MethodGet, rest.Base+"/runs/abc123/iterations/1/files/agent.out.gz", ""))
	if w.Code != http.StatusNotFound {
		t.Errorf("the packed file: %d", w.Code)
	}
}

// An attempt that was cut off keeps its files apart.
func TestFilesOfAnAttempt(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.left("abc123", 1, map[string]string{"agent.out": "second", "begun.json": `{"attempt":2}`})
	if err := os.MkdirAll(filepath.Join(r.dir, "runs", "abc123", "1", "1"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.dir, "runs", "abc123", "1", "1", "agent.out"), []byte("first"), 0o600); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{"": "second", "?attempt=2": "second", "?attempt=1": "first"} {
		var part view.FilePart
		r.get("/runs/abc123/iterations/1/files/agent.out"+query, &part)
		if part.Text != want {
			t.Errorf("%s: %s", query, part.Text)
		}
	}
	if p := r.refused(http.MethodGet, "/runs/abc123/iterations/1/files/agent.out?attempt=3", "", http.StatusNotFound); p.Code != "FILES_NOT_FOUND" {
		t.Errorf("%+v", p)
	}
}

// An iteration that begins has said nothing yet, and one of a workflow never does: its
// steps do. Where the files were removed, that is said.
func TestNoConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("begins", func(run *store.Run, _ *loop.State) { run.Iteration = 2 })
	r.run("steps", func(run *store.Run, _ *loop.State) {
		run.Name, run.Kind, run.Status, run.Iteration = "release", "workflow", string(loop.FailedRun), 1
	})
	r.run("ended", func(run *store.Run, _ *loop.State) {
		run.Name, run.Status, run.Iteration = "other", string(loop.Completed), 2
	})
	for _, at := range []string{"begins/iterations/2", "steps/iterations/1"} {
		var said view.Conversation
		if r.get("/runs/"+at+"/conversation?attempt=1&tail=true&limit=100", &said); len(said.Events) != 0 {
			t.Errorf("%s: %+v", at, said)
		}
	}
	for _, at := range []string{"begins/iterations/1", "steps/iterations/2", "ended/iterations/2"} {
		if p := r.refused(http.MethodGet, "/runs/"+at+"/conversation", "", http.StatusNotFound); p.Code != "FILES_NOT_FOUND" {
			t.Errorf("%s: %+v", at, p)
		}
	}
}

// A conversation is read forward, backward and from its end.
func TestConversation(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	var lines strings.Builder
	for i := range 50 {
		fmt.Fprintf(&lines, `{"kind":"text","text":"%d"}`+"\n", i)
	}
	lines.WriteString("... 1234 bytes left out ...\n" + `{"kind":"end","text":"done"}` + "\n" + `{"kind":"text","text":"not whole`)
	r.left("abc123", 1, map[string]string{activity.EventsFile: lines.String(), "begun.json": `{"attempt":1}`})
	texts := func(c view.Conversation) string {
		var all []string
		for _, e := range c.Events {
			all = append(all, e.Text)
		}
		return strings.Join(all, " ")
	}
	var c view.Conversation
	r.get("/runs/abc123/iterations/1/conversation?limit=3", &c)
	if texts(c) != "0 1 2" {
		t.Errorf("the beginning is %s", texts(c))
	}
	r.get(fmt.Sprintf("/runs/abc123/iterations/1/conversation?limit=2&from=%d", c.Next), &c)
	if texts(c) != "3 4" {
		t.Errorf("what follows is %s", texts(c))
	}
	r.get("/runs/abc123/iterations/1/conversation?tail=true&limit=3", &c)
	if texts(c) != "48 49 done" {
		t.Errorf("the end is %s", texts(c))
	}
	r.get(fmt.Sprintf("/runs/abc123/iterations/1/conversation?limit=2&before=%d", c.Before), &c)
	if texts(c) != "46 47" {
		t.Errorf("before it is %s", texts(c))
	}
	r.left("abc123", 2, map[string]string{"begun.json": `{"attempt":1}`})
	r.get("/runs/abc123/iterations/2/conversation", &c)
	if len(c.Events) != 0 {
		t.Errorf("silence is %+v", c)
	}
}

// repository makes the rig's runs have snapshots; it returns them.
func (r *rig) repository(run string, versions ...map[string]string) (snaps []workspace.Snapshot) {
	r.t.Helper()
	root := r.t.TempDir()
	git := func(args ...string) {
		c := exec.CommandContext(r.t.Context(), "git", args...)
		c.Dir, c.Env = root, append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@b")
		if out, err := c.CombinedOutput(); err != nil {
			r.t.Fatalf("git %v: %s", args, out)
		}
	}
	git("init", "-q")
	tree, err := workspace.Open(r.t.Context(), root, workspace.Options{StateDir: statedir.Of(root, r.s.o.Env)})
	if err != nil {
		r.t.Fatal(err)
	}
	for n, files := range versions {
		for name, text := range files {
			path := filepath.Join(root, name)
			if text == "" {
				_ = os.Remove(path)
				continue
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				r.t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				r.t.Fatal(err)
			}
		}
		snap, err := tree.Snapshot(r.t.Context(), run, n, workspace.SnapshotOptions{})
		if err != nil {
			r.t.Fatal(err)
		}
		snaps = append(snaps, snap)
	}
	r.s.o.Tree, r.s.o.Root = tree, root
	return snaps
}

// steps records an iteration for each snapshot after the first.
func (r *rig) steps(run string, snaps []workspace.Snapshot) {
	r.t.Helper()
	for n := 1; n < len(snaps); n++ {
		rec := record(n, loop.Success)
		rec.TreeKnown, rec.TreeBefore, rec.TreeAfter = true, snaps[n-1].Tree, snaps[n].Tree
		r.step(run, int64(n+1), rec, loop.Command{})
	}
}

// A diff lists files with counts; what differs in one is asked for alone.
func TestDiff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	long := strings.Repeat("line of a file that is long enough to be known again\n", 20)
	r.repository("abc123",
		map[string]string{"a.txt": "one\ntwo\nthree\n", "gone.txt": "x\n", "old name.txt": long, "pic.bin": "\x00\x01"},
		map[string]string{"a.txt": "one\n2\nthree\nfour\n", "gone.txt": "", "old name.txt": "", "dir/new <b>.txt": long + "more\n", "pic.bin": "\x00\x02", "*.txt": "glob\n"},
	)
	var d view.Diff
	r.get("/runs/abc123/diff", &d)
	var lines []string
	for _, f := range d.Files {
		lines = append(lines, fmt.Sprintf("%s %s<%s +%d -%d %v", f.Status, f.Path, f.From, f.Added, f.Deleted, f.Binary))
	}
	want := "added *.txt< +1 -0 false; modified a.txt< +2 -1 false; renamed dir/new <b>.txt<old name.txt +1 -0 false; deleted gone.txt< +0 -1 false; modified pic.bin< +0 -0 true"
	if got := strings.Join(lines, "; "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	var f patch.FileDiff
	r.get("/runs/abc123/diff/file?path=a.txt", &f)
	if len(f.Hunks) != 1 || strings.Join(f.Hunks[0].Lines, "|") != " one|-two|+2| three|+four" || f.Hunks[0].NewLines != 4 {
		t.Errorf("a.txt: %+v", f)
	}
	r.get("/runs/abc123/diff/file?path=*.txt", &f)
	if len(f.Hunks) != 1 || f.Hunks[0].Lines[0] != "+glob" {
		t.Errorf("a name is no pattern: %+v", f)
	}
	r.get("/runs/abc123/diff/file?path=dir/new%20%3Cb%3E.txt&old=old%20name.txt", &f)
	if len(f.Hunks) != 1 || !strings.HasSuffix(strings.Join(f.Hunks[0].Lines, "|"), "|+more") {
		t.Errorf("the renamed one: %+v", f)
	}
	r.get("/runs/abc123/diff/file?path=pic.bin", &f)
	if !f.Binary || len(f.Hunks) != 0 {
		t.Errorf("the picture: %+v", f)
	}
	r.get("/runs/abc123/diff?from=1&to=1", &d)
	if len(d.Files) != 0 {
		t.Errorf("a state differs from itself: %+v", d)
	}
	for path, status := range map[string]int{
		"/runs/abc123/diff?to=9": http.StatusNotFound, "/runs/abc123/diff/file?path=none": http.StatusNotFound, "/runs/abc123/diff/file": http.StatusUnprocessableEntity,
		"/runs/abc123/diff/file?path=--output%3D%2Ftmp%2Fx": http.StatusNotFound, "/runs/abc123/iterations/1/diff": http.StatusNotFound,
	} {
		r.refused(http.MethodGet, path, "", status)
	}
	rec := record(1, loop.Success)
	rec.TreeKnown, rec.TreeBefore, rec.TreeAfter = true, d.From, "0000000000000000000000000000000000000000"
	r.step("abc123", 2, rec, loop.Command{})
	if p := r.refused(http.MethodGet, "/runs/abc123/iterations/1/diff", "", http.StatusNotFound); p.Code != "NO_DIFF" {
		t.Errorf("a dropped snapshot: %+v", p)
	}
	var snaps view.Snapshots
	r.get("/runs/abc123/snapshots", &snaps)
	if len(snaps.Snapshots) != 2 || snaps.Undo {
		t.Errorf("the snapshots are %+v", snaps)
	}
}

// A patch that is too large is cut, and says so; one of 10,000 lines is whole.
func TestLargeDiff(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	r.repository("abc123", map[string]string{"x": "x\n"}, map[string]string{"long.txt": strings.Repeat("a line\n", 10_000), "huge.txt": strings.Repeat("a line that is somewhat longer\n", 200_000)})
	var f patch.FileDiff
	r.get("/runs/abc123/diff/file?path=long.txt", &f)
	if f.Truncated || len(f.Hunks) != 1 || len(f.Hunks[0].Lines) != 10_000 {
		t.Errorf("%v, %d hunks", f.Truncated, len(f.Hunks))
	}
	r.get("/runs/abc123/diff/file?path=huge.txt", &f)
	if !f.Truncated || len(f.Hunks) != 1 || len(f.Hunks[0].Lines) > 200_000 {
		t.Errorf("%v, %d hunks", f.Truncated, len(f.Hunks))
	}
}

// Cost is summed up by the person's day and by agent; what is not known stays so.
func TestUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", nil)
	now := time.Now().UTC().Truncate(24 * time.Hour).Add(23*time.Hour + 30*time.Minute)
	for i, c := range []struct {
		at     time.Time
		agent  string
		cost   loop.MicroUSD
		source string
	}{
		{now.AddDate(0, 0, -1), "claude", 500_000, "reported"}, {now.AddDate(0, 0, -1), "aider", 0, "none"}, {now.AddDate(0, 0, -40), "claude", 1, "reported"}, {now.AddDate(0, 0, -2), "claude", 250_000, "estimated"},
	} {
		rec := record(i+1, loop.Success)
		rec.StartedAt, rec.Agent, rec.Cost, rec.CostSource, rec.TokensIn = c.at, c.agent, c.cost, c.source, 10
		r.step("abc123", int64(i+2), rec, loop.Command{})
	}
	days := func(query string) string {
		var u view.UsageStats
		r.get("/stats/usage?"+query, &u)
		var all []string
		for _, one := range u.Usage {
			cost := "?"
			if one.CostUSD != nil {
				cost = fmt.Sprint(*one.CostUSD)
			}
			all = append(all, fmt.Sprintf("%s %s %s %d", one.Day, one.Agent, cost, one.Iterations))
		}
		return strings.Join(all, "; ")
	}
	a, b, c := now.AddDate(0, 0, -2).Format(time.DateOnly), now.AddDate(0, 0, -1).Format(time.DateOnly), now.Format(time.DateOnly)
	if got, want := days(""), fmt.Sprintf("%s claude 0.25 1; %s aider ? 1; %s claude 0.5 1", a, b, b); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := days("offset=60"), fmt.Sprintf("%s claude 0.25 1; %s aider ? 1; %s claude 0.5 1", b, c, c); got != want {
		t.Errorf("an hour ahead: got %s, want %s", got, want)
	}
	var sum view.SummaryStats
	r.get("/stats/summary?by=agent&zone=Etc/Nowhere&offset=60", &sum)
	if len(sum.Groups) != 2 || sum.Groups[1].Key != "claude" || sum.Groups[1].Iterations != 3 || sum.Total.Iterations != 4 || *sum.Total.CostUSD != 0.750001 || sum.StrategyAccuracy != nil {
		t.Errorf("the summary is %+v", sum)
	}
	r.get("/stats/summary?days=30", &sum)
	if len(sum.Groups) != 0 || sum.Total.Iterations != 3 {
		t.Errorf("the summary of 30 days is %+v", sum)
	}
	if got, want := days("zone=UTC&offset=60"), days(""); got != want {
		t.Errorf("a zone comes before the offset: got %s, want %s", got, want)
	}
	var over view.Overview
	r.get("/overview", &over)
	if over.Name != "repo" || len(over.Gates) != 1 || len(over.Active) != 1 || over.Git {
		t.Errorf("the overview is %+v", over)
	}
	var failures view.FailureStats
	r.get("/stats/failures", &failures)
	var guards view.GuardStats
	r.get("/stats/guards", &guards)
	var tried view.TrialStats
	r.get("/stats/trial", &tried)
	if tried.Results == nil || tried.Compared == nil {
		t.Errorf("without a trial: %+v", tried)
	}
	var strategies view.StrategyStats
	r.get("/stats/strategies", &strategies)
	var through view.ThroughputStats
	r.get("/stats/throughput?days=365", &through)
	if failures.Failures == nil || guards.Guards == nil || strategies.Strategies == nil || through.Days == nil {
		t.Error("an empty list is not a list")
	}
}

// The board: what is added is found, edited, moved and taken off; what cannot
// be is refused in the board's words.
func TestCases(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var one, two view.CaseDetail
	r.ask(http.MethodPost, "/cases", `{"title":"<script>alert(1)</script>","tags":["ui"],"priority":3,"acceptance":["it works"]}`, &one)
	r.ask(http.MethodPost, "/cases", `{"title":"second","needs":["task-001"]}`, &two)
	if one.Title != "<script>alert(1)</script>" || !one.Ready || two.Ready || two.NotReady == "" || strings.Join(one.Actions, " ") != "block defer edit remove" {
		t.Errorf("got %+v and %+v", one, two)
	}
	r.ask(http.MethodPatch, "/cases/2", `{"description":"long","tags":[]}`, &two)
	if two.Title != "second" || two.Description != "long" || len(two.History) != 2 {
		t.Errorf("edited: %+v", two)
	}
	r.ask(http.MethodPost, "/cases/task-002/actions", `{"action":"block","why":"wait for it"}`, &two)
	if two.Status != "blocked" || two.Why != "wait for it" {
		t.Errorf("blocked: %+v", two)
	}
	var page view.CasePage
	for query, want := range map[string]int{"": 2, "status=blocked": 1, "status=blocked,pending": 2, "tag=ui": 1, "ready=true": 1, "q=SECOND": 1, "q=task-00": 2, "type=operation": 0, "limit=1": 1} {
		r.get("/cases?"+query, &page)
		if len(page.Cases) != want {
			t.Errorf("%s: %d cases", query, len(page.Cases))
		}
	}
	r.get("/cases?limit=1", &page)
	first := page
	r.get("/cases?limit=1&cursor="+first.NextCursor, &page)
	if first.Total != 2 || page.Cases[0].ID != "task-002" || page.NextCursor != "" {
		t.Errorf("the pages are %+v and %+v", first, page)
	}
	for _, c := range []struct {
		method, path, body, code string
		status                   int
	}{
		{"POST", "/cases", `{"title":""}`, "INVALID_CASE", 422},
		{"POST", "/cases", `{"title":"x","needs":["nobody"]}`, "INVALID_CASE", 422},
		{"PATCH", "/cases/1", `{"needs":["task-002"]}`, "CYCLE", 422},
		{"POST", "/cases/1/actions", `{"action":"land"}`, "INVALID_REQUEST", 422},
		{"POST", "/cases/1/actions", `{"action":"retry"}`, "REFUSED", 409},
		{"DELETE", "/cases/1", ``, "REFUSED", 409},
		{"GET", "/cases/task-999", ``, "CASE_NOT_FOUND", 404},
		{"GET", "/cases/zzz", ``, "CASE_NOT_FOUND", 404},
		{"POST", "/cases/import", `{"text":"no list at all"}`, "", 422},
	} {
		if p := r.refused(c.method, c.path, c.body, c.status); c.code != "" && p.Code != c.code {
			t.Errorf("%s %s %s: %+v", c.method, c.path, c.body, p)
		}
	}
	var imported view.Imported
	text, err := json.Marshal(map[string]string{"text": "- [ ] three\n- [ ] four\n"})
	if err != nil {
		t.Fatal(err)
	}
	r.ask(http.MethodPost, "/cases/import", string(text), &imported)
	if len(imported.IDs) != 2 {
		t.Errorf("imported %+v", imported)
	}
	var gone view.Removed
	r.ask(http.MethodDelete, "/cases/2", "", &gone)
	r.refused(http.MethodGet, "/cases/2", "", http.StatusNotFound)
}

// What a person has given up waits for nobody, the task with it.
func TestInboxWithoutWhatWasGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var c view.Case
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &c)
	r.ask(http.MethodPost, "/cases/1/actions", `{"action":"block","why":"no key"}`, &c)
	for id, name := range map[string]string{"abc123": c.ID, "def456": "build"} {
		r.run(id, func(row *store.Run, _ *loop.State) {
			row.Name, row.Status, row.Why = name, string(loop.FailedRun), loop.GivenUp
		})
	}
	var inbox view.Inbox
	r.get("/inbox", &inbox)
	if len(inbox.Entries) != 0 {
		t.Errorf("the inbox is %+v", inbox)
	}
}

// A task whose run asks something is one need, not two.
func TestInboxNamesATaskOnce(t *testing.T) {
	r := newRig(t)
	var c view.Case
	r.ask(http.MethodPost, "/cases", `{"title":"Send mails"}`, &c)
	r.ask(http.MethodPost, "/cases/1/actions", `{"action":"block","why":"no key"}`, &c)
	r.run("abc123", func(row *store.Run, s *loop.State) {
		row.Name, row.Status = c.ID, string(loop.Blocked)
		s.Question = &loop.Question{Text: "Which key?"}
	})
	var inbox view.Inbox
	r.get("/inbox", &inbox)
	if len(inbox.Entries) != 1 {
		t.Fatalf("the inbox is %+v", inbox)
	}
	if n := inbox.Entries[0]; n.Title != "task-001: Send mails" || n.Case == nil || n.Run == nil || n.Question == nil {
		t.Errorf("the need is %+v", n)
	}
}

// A task's run has its title, is found by it, waits for nobody once it is answered, and stays when its task is removed.
func TestRunOfATask(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	var c view.Case
	r.ask(http.MethodPost, "/cases", `{"title":"Send Mails"}`, &c)
	r.ask(http.MethodPost, "/cases/1/actions", `{"action":"block","why":"it asks"}`, &c)
	r.run("abc123", func(row *store.Run, s *loop.State) {
		row.Kind, row.Name, row.Status, s.Status = "task", c.ID, string(loop.Pending), loop.Pending
		s.Question = &loop.Question{Text: "Which key?"}
	})
	var runs view.RunPage
	r.get("/runs?q=send+mails", &runs)
	if len(runs.Runs) != 1 || runs.Runs[0].Work != "Send Mails" || len(runs.Runs[0].Coming) != 0 {
		t.Fatalf("the runs are %+v", runs)
	}
	var done view.Done
	r.ask(http.MethodPost, "/runs/abc123/answer", `{"text":"The second"}`, &done)
	if done.Run == nil || strings.Join(done.Run.Coming, " ") != "answer" {
		t.Errorf("after the answer: %+v", done)
	}
	var inbox view.Inbox
	r.get("/inbox", &inbox)
	if len(inbox.Entries) != 0 {
		t.Errorf("what was answered is in the inbox: %+v", inbox)
	}
	var gone view.Removed
	r.ask(http.MethodDelete, "/cases/1", "", &gone)
	r.get("/runs", &runs)
	if len(runs.Runs) != 1 || len(runs.Runs[0].Actions) != 0 {
		t.Errorf("the run of a removed task is %+v", runs)
	}
}

// A workflow of the project is found with its inputs; what is no workflow, and what a link leads to, is not.
func TestWorkflowFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	dir := t.TempDir()
	r.s.o.Root = dir
	text := "name: release\nsteps:\n  - {id: build, run: \"echo {{context.version}}\"}\n"
	for name, data := range map[string]string{"release.yaml": text, "other.yaml": "steps: 7\n", "notes.yaml": "a: 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(dir, "release.yaml"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	var found view.Workflows
	r.get("/workflows", &found)
	if len(found.Workflows) != 1 || found.Workflows[0].File != "release.yaml" || strings.Join(found.Workflows[0].Inputs, " ") != "version" {
		t.Errorf("the workflows are %+v", found)
	}
	var done view.Done
	r.ask(http.MethodPost, "/runs", `{"workflow":"release.yaml","context":["version=2"]}`, &done)
	if got := r.did(); !strings.Contains(got, "run --context=version=2 -- "+filepath.Join(dir, "release.yaml")) {
		t.Errorf("it launched %s", got)
	}
	r.refused(http.MethodPost, "/runs", `{"workflow":"../other/release.yaml"}`, http.StatusConflict)
}

// Evidence is shown where it is here; of another machine's the page names the worker.
func TestEvidenceOfAnotherMachine(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.run("abc123", func(*store.Run, *loop.State) {})
	rec := record(1, loop.Success)
	rec.Evidence = []loop.Evidence{{File: "agent.notes.md", Bytes: 3}}
	rec.Pushed = &loop.Pushed{Worker: "two-5678"}
	r.step("abc123", 2, rec, loop.Command{})
	const at = "/runs/abc123/iterations/1"
	var got view.Iteration
	r.get(at, &got)
	const where = "on the machine of worker two-5678"
	if !strings.Contains(got.Gone, where) {
		t.Errorf("the iteration says %q", got.Gone)
	}
	if p := r.refused("GET", at+"/evidence/agent.notes.md", "", http.StatusNotFound); !strings.Contains(p.Message, where) {
		t.Errorf("the file: %s", p.Message)
	}
	r.left("abc123", 1, map[string]string{})
	if err := os.Mkdir(filepath.Join(r.dir, "runs", "abc123", "1", "evidence"), 0o700); err != nil {
		t.Fatal(err)
	}
	r.left("abc123", 1, map[string]string{"evidence/agent.notes.md": "It"})
	got = view.Iteration{}
	if r.get(at, &got); got.Gone != "" {
		t.Errorf("here, and it says %q", got.Gone)
	}
	if w := r.send(r.asking("GET", rest.Base+at+"/evidence/agent.notes.md", "")); w.Body.String() != "It" {
		t.Errorf("the file is %d %q", w.Code, w.Body)
	}
}

// A first start shows what is missing, with what helps: a configuration, checks, an agent, its login.
func TestFirstStart(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	lacks := func() string {
		var o view.Overview
		r.get("/overview", &o)
		var all []string
		for _, l := range o.Lacks {
			if len(l.Do) == 0 {
				t.Errorf("nothing helps with %q", l.What)
			}
			all = append(all, l.What)
		}
		return strings.Join(all, " ")
	}
	p, err := r.s.o.Planner("", planner.Flags{})
	if err != nil {
		t.Fatal(err)
	}
	own := config.Agent{Command: []string{"true"}, Output: "text"}
	p.Config.Agent, p.Config.Agents.Named = "mine", map[string]config.Agent{"mine": own}
	if is := lacks(); !strings.Contains(is, "has no pawl.yaml") {
		t.Errorf("it lacks %q", is)
	}
	p.Config.File = "/repo/pawl.yaml"
	p.Config.Verification.Commands = nil
	if is := lacks(); strings.Contains(is, "pawl.yaml") || !strings.Contains(is, "No check") {
		t.Errorf("with a configuration: %q", is)
	}
}
