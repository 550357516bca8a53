package run

import (
	"slices"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/workflow"
	"github.com/pawl-dev/pawl/internal/keep/store"
)

// flowOf reads a workflow, a step a word: its id, a letter for its kind (r run,
// a agent, p procedure, w workflow), and after a colon what it needs. "c?:a,b"
// asks about the status of what it needs.
func flowOf(t *testing.T, text string) *Flow {
	t.Helper()
	kinds := map[byte]workflow.Kind{
		'r': workflow.Run, 'a': workflow.Agent, 'p': workflow.Procedure, 'w': workflow.Nested,
	}
	var f workflow.File
	for _, word := range strings.Fields(text) {
		head, needs, _ := strings.Cut(word, ":")
		head, asks := strings.CutSuffix(head, "?")
		s := workflow.Step{ID: head[:len(head)-1], Where: "steps[0]"}
		s.Work = workflow.Work{Kind: kinds[head[len(head)-1]], Content: "x"}
		if needs != "" {
			s.Needs = strings.Split(needs, ",")
		}
		if asks {
			s.If = "failure()"
		}
		f.Steps = append(f.Steps, s)
	}
	plan, faults := workflow.New(f)
	if len(faults) > 0 {
		t.Fatalf("%+v", faults)
	}
	return &Flow{Plan: plan, Nested: map[string]*Flow{}}
}

// nodeOf finds the instance of a step.
func nodeOf(s *scope, id string) *node {
	return s.nodes[slices.IndexFunc(s.nodes, func(n *node) bool { return n.id == id })]
}

func scopeOf(t *testing.T, text string) *scope {
	t.Helper()
	return newScope(&pass{history: map[string][]*execution{}}, flowOf(t, text), "", nil)
}

// settle gives steps their results: "a=success b=failure c=skipped d=blocked".
func settle(s *scope, text string) {
	for _, word := range strings.Fields(text) {
		id, how, _ := strings.Cut(word, "=")
		n := nodeOf(s, id)
		switch how {
		case "blocked":
			n.phase = blocked
		case "deferred":
			n.phase = deferred
		case "running":
			n.phase = running
		case "missed": // it failed, and the workflow does without it
			n.phase, n.result = settled, workflow.Result{Outcome: "failure", Conclusion: "success"}
		default:
			n.phase, n.result = settled, workflow.Result{Outcome: how, Conclusion: how, Output: id + "'s"}
		}
	}
}

// What a step needs may keep it from starting before its condition is asked.
func TestWhatHindersAStep(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flow, results string
		open          bool
		want          phase
	}{
		{"ar br cr:a,b", "a=success", false, pending},
		{"ar br cr:a,b", "a=success b=running", false, pending},
		{"ar br cr:a,b", "a=success b=failure", true, pending},
		{"ar br cr:a,b", "a=blocked b=success", true, blocked},
		{"ar br cr?:a,b", "a=blocked b=success", true, pending},
		{"ar br cr:a,b", "a=blocked b=deferred", true, deferred},
		{"ar br cr?:a,b", "a=deferred b=success", true, deferred},
	} {
		s := scopeOf(t, c.flow)
		settle(s, c.results)
		n := nodeOf(s, "c")
		if open, got := s.hasNeedsDone(n), s.phaseByNeeds(n); open != c.open || got != c.want {
			t.Errorf("%s with %s: open %v, phase %d; want %v, %d", c.flow, c.results, open, got, c.open, c.want)
		}
	}
}

// Conditions ask whether what a step needs failed or was skipped, also where a
// failure further up led to the skip.
func TestWhatAConditionIsTold(t *testing.T) {
	t.Parallel()
	for results, want := range map[string][2]bool{ // failed, skipped
		"a=success b=success": {false, false},
		"a=success b=failure": {true, false},
		"a=success b=missed":  {false, false},
		"a=success b=skipped": {false, true},
		"a=failure b=skipped": {true, true},
		"a=blocked b=success": {true, false},
	} {
		s := scopeOf(t, "ar br cr:a,b")
		settle(s, results)
		if v := s.valuesFor(nodeOf(s, "c")); v.Failed != want[0] || v.Skipped != want[1] {
			t.Errorf("%s: failed %v, skipped %v", results, v.Failed, v.Skipped)
		}
	}
	s := scopeOf(t, "ar br:a cr:b")
	settle(s, "a=failure b=skipped")
	nodeOf(s, "b").failedBefore = true
	if v := s.valuesFor(nodeOf(s, "c")); !v.Failed {
		t.Error("a failure before what it needs does not count")
	}
}

// A step sees the results of all that it builds on, and of nothing else.
func TestWhichResultsAStepSees(t *testing.T) {
	t.Parallel()
	s := scopeOf(t, "ar br:a cr:b dr")
	settle(s, "a=success b=success d=success")
	v := s.valuesFor(nodeOf(s, "c"))
	if len(v.Steps) != 2 || v.Steps["a"].Output != "a's" || v.Steps["b"].Output != "b's" {
		t.Errorf("%+v", v.Steps)
	}
}

// The instances of a matrix are one step to those after it.
func TestInstancesTogether(t *testing.T) {
	t.Parallel()
	step := &workflow.Planned{Step: workflow.Step{ID: "a"}}
	all := map[string]workflow.Result{}
	for _, r := range []workflow.Result{
		{Outcome: "success", Conclusion: "success", Output: "one", Outputs: map[string]string{"n": "1", "x": "y"}},
		{Outcome: "skipped", Conclusion: "skipped"},
		{Outcome: "failure", Conclusion: "success", Output: "two", Outputs: map[string]string{"n": "2"}},
	} {
		all["a"] = mergeResult(all, &node{in: &workflow.Instance{Step: step}, result: r})
	}
	got := all["a"]
	if got.Outcome != "failure" || got.Conclusion != "success" || got.Output != "one\ntwo" {
		t.Errorf("%+v", got)
	}
	if got.Outputs["n"] != "2" || got.Outputs["x"] != "y" {
		t.Errorf("outputs %v", got.Outputs)
	}
}

// A workflow is complete when every step that it needs is done or skipped.
func TestCount(t *testing.T) {
	t.Parallel()
	for results, want := range map[string]struct {
		steps loop.Steps
		left  int
	}{
		"a=success b=success": {loop.Steps{Total: 2, Done: 2, Complete: true}, 0},
		"a=success b=skipped": {loop.Steps{Total: 2, Done: 1, Skipped: 1, Complete: true}, 0},
		"a=success b=missed":  {loop.Steps{Total: 2, Done: 1, Missed: 1, Complete: true}, 0},
		"a=success b=failure": {loop.Steps{Total: 2, Done: 1}, 1},
		"a=success":           {loop.Steps{Total: 2, Done: 1}, 1},
		"a=failure b=blocked": {loop.Steps{Total: 2}, 2},
	} {
		s := scopeOf(t, "ar br")
		settle(s, results)
		got := s.countSteps()
		same := got.Total == want.steps.Total && got.Done == want.steps.Done && got.Skipped == want.steps.Skipped &&
			got.Missed == want.steps.Missed && got.Complete == want.steps.Complete
		if !same || s.countLeft() != want.left {
			t.Errorf("%s: %+v and %d left; want %+v and %d", results, *got, s.countLeft(), want.steps, want.left)
		}
	}
}

// Who does a step's work when the run has moved on to a fallback.
func TestWhoDoesTheWork(t *testing.T) {
	t.Parallel()
	tried := func(agent string, provider bool) *execution {
		return &execution{record: stepRecord{Agent: agent, Failure: &failure.Analysis{Provider: provider}}}
	}
	for _, c := range []struct {
		name, named, current string
		last                 *execution
		want                 string
	}{
		{"the run's own", "", "own", nil, "own"},
		{"the run's own, after a fallback", "own", "spare", nil, "spare"},
		{"another one", "other", "own", tried("other", true), "other"},
		{"another one that was not tried", "other", "spare", nil, "other"},
		{"another one whose work failed", "other", "spare", tried("other", false), "other"},
		{"another one whose provider failed", "other", "spare", tried("other", true), "spare"},
		{"somebody else's provider failed", "other", "spare", tried("own", true), "other"},
	} {
		if got := agentFor(c.named, "own", c.current, c.last); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// How a job ends is how its execution does; the iteration's own time ends both.
func TestJudged(t *testing.T) {
	t.Parallel()
	wrong := &failure.Analysis{Summary: "wrong"}
	for _, c := range []struct {
		ended     loop.Ended
		failure   *failure.Analysis
		iteration bool
		status    string
		pass      loop.Ended
	}{
		{loop.NotEnded, nil, true, store.StepSuccess, loop.NotEnded},
		{loop.NotEnded, wrong, true, store.StepFailure, loop.NotEnded},
		{loop.EndedStop, wrong, false, store.StepCancelled, loop.NotEnded},
		{loop.EndedLost, wrong, false, store.StepInterrupted, loop.NotEnded},
		{loop.EndedLease, nil, false, store.StepInterrupted, loop.NotEnded},
		{loop.EndedTimeout, wrong, false, store.StepFailure, loop.NotEnded},
		{loop.EndedTimeout, wrong, true, store.StepFailure, loop.EndedTimeout},
	} {
		p, e := &pass{}, &execution{}
		p.setStatus(e, loop.Exit{Ended: c.ended}, c.failure, c.iteration)
		if e.Status != c.status || p.ended != c.pass || e.record.Failure != c.failure {
			t.Errorf("%q: %s, the pass %q", c.ended, e.Status, p.ended)
		}
	}
	p, e := &pass{timeUp: &failure.Analysis{Summary: "ended by pawl"}}, &execution{}
	if p.setStatus(e, loop.Exit{Ended: loop.EndedTimeout}, wrong, true); e.record.Failure != p.timeUp {
		t.Errorf("a limit that is pawl's own is told as %q", e.record.Failure.Summary)
	}
	if p.setStatus(e, loop.Exit{Ended: loop.EndedTimeout}, wrong, false); e.record.Failure != wrong {
		t.Errorf("a step's own limit is told as %q", e.record.Failure.Summary)
	}
}

// A refusal takes back the work of the last agents, and what builds on it.
func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ flow, below, wrong, again string }{
		{flow: "ar br:a", wrong: "", again: ""},
		{flow: "aa br:a", wrong: "a", again: "b"},
		{flow: "aa ba:a cr:b", wrong: "b", again: "c"},
		{flow: "aa bp cr:a,b", wrong: "a b", again: "c"},
		{flow: "aa br:a ca:b", wrong: "c", again: ""},
		{flow: "ar bw:a cr:b", below: "xa yr:x", wrong: "b/x", again: "b b/y c"},
		{flow: "ar bw:a cr:b", below: "xr yr:x", wrong: "", again: ""},
	} {
		f := flowOf(t, c.flow)
		b := &refusal{history: map[string][]*execution{}, iteration: 2}
		done := func(f *Flow, prefix string) {
			for _, in := range f.Plan.Instances {
				e := &execution{StepRun: store.StepRun{Status: store.StepSuccess, Iteration: 1}}
				e.record.Kind = string(in.Step.Kind)
				b.history[prefix+in.ID] = []*execution{e}
			}
		}
		done(f, "")
		if c.below != "" {
			f.Nested["b"] = flowOf(t, c.below)
			done(f.Nested["b"], "b/")
		}
		b.refuseFlow(f, "")
		if wrong, again := strings.Join(b.wrong, " "), strings.Join(b.again, " "); wrong != c.wrong || again != c.again {
			t.Errorf("%s (%s): refused %q, again %q; want %q, %q", c.flow, c.below, wrong, again, c.wrong, c.again)
		}
		// A name that was not known when the workflow was planned: all in there.
		if c.wrong == "b/x" {
			delete(f.Nested, "b")
			b.wrong, b.again = nil, nil
			if b.refuseFlow(f, ""); strings.Join(b.wrong, " ") != "b/x b/y" {
				t.Errorf("of an unknown workflow %q is refused", b.wrong)
			}
		}
		// What was made after the refusal stays.
		b.iteration = 0
		b.wrong, b.again = nil, nil
		if b.refuseFlow(f, ""); b.wrong != nil {
			t.Errorf("%s: later work is refused: %q", c.flow, b.wrong)
		}
	}
}
