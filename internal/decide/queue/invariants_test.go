package queue_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// world is a repository with gates, people and crashes, as far as a queue can
// tell. A tree is what is on it: tasks, and what people did, sorted.
type world struct {
	t    testing.TB
	rnd  *rand.Rand
	s    queue.State
	at   time.Time
	last queue.Event
	log  []string

	tip      string
	trees    map[string]string // of commits
	onto     map[string]string // the commit that a commit came after
	n        int               // commits made
	bad      map[string]bool   // tasks that are red
	redThere map[string]bool   // and those that are at the forge
	clash    map[string]bool   // "a b": red together
	meets    map[string]string // a conflicts with b
	gone     map[string]bool   // their commit is lost
	broken   bool              // the target is red

	green  map[string]bool // trees with a green verdict
	checks bool            // the forge has a say
	asked  map[string]int  // how often it was asked about a tree
	added  map[string]queue.Entry
	landed map[string]int
	queued map[string]bool
	blamed map[string]bool
	alarms int
	reds   int // red values of the target
}

func newWorld(t testing.TB, seed uint64) *world {
	w := &world{
		t: t, rnd: rand.New(rand.NewPCG(seed, 7)), at: time.Date(2026, 2, 6, 10, 0, 0, 0, time.UTC), tip: "c0",
		trees: map[string]string{"c0": ""}, onto: map[string]string{}, bad: map[string]bool{}, redThere: map[string]bool{}, clash: map[string]bool{}, meets: map[string]string{}, gone: map[string]bool{},
		asked: map[string]int{}, checks: seed%2 == 0, green: map[string]bool{}, added: map[string]queue.Entry{}, landed: map[string]int{}, queued: map[string]bool{}, blamed: map[string]bool{},
	}
	w.s.Target = "refs/heads/main"
	w.open()
	return w
}

func (w *world) chance(percent int) bool { return w.rnd.IntN(100) < percent }

func (w *world) fail(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("%s\n%s", fmt.Sprintf(format, args...), strings.Join(w.log[max(0, len(w.log)-60):], "\n"))
}

func (w *world) facts() queue.Facts {
	return queue.Facts{Tip: w.tip, Tree: w.trees[w.tip], Past: w.s.Tip == "" || w.isPast(w.s.Tip)}
}

func (w *world) isPast(commit string) bool {
	for at := w.tip; at != ""; at = w.onto[at] {
		if at == commit {
			return true
		}
	}
	return false
}

func (w *world) open() {
	f := w.facts()
	w.send(queue.Event{Kind: queue.Opened, Facts: &f, Policy: &queue.Policy{Batch: 4, Retries: 1, Timeout: time.Hour, Action: queue.Retry, Resolve: true, Checks: w.checks}})
}

// send takes a step and holds it to the promises.
func (w *world) send(e queue.Event) {
	w.t.Helper()
	e.At = w.at
	w.last = e
	before := w.s
	after, c := queue.Step(w.s, e)
	w.log = append(w.log, fmt.Sprintf("%s %s -> %s %v %s", e.Kind, describe(&e), c.Kind, c.IDs, c.Why))
	data, err := json.Marshal(after)
	if err != nil {
		w.fail("the state does not go through JSON: %v", err)
	}
	var back queue.State
	if err := json.Unmarshal(data, &back); err != nil {
		w.fail("the state does not come back: %v", err)
	}
	if again, _ := json.Marshal(back); !bytes.Equal(again, data) {
		w.fail("the state is another after JSON:\n%s\n%s", data, again)
	}
	w.s = after
	if c.Kind == "" {
		if !reflect.DeepEqual(before.Entries, after.Entries) || before.Seq != after.Seq {
			w.fail("an event that does not fit changed the state")
		}
		return
	}
	w.check(&before, c)
}

func describe(e *queue.Event) string {
	switch {
	case e.Entry != nil:
		return e.Entry.ID + fmt.Sprint(e.Entry.Needs)
	case e.Ask != nil:
		return string(e.Ask.Wish) + " " + e.Ask.ID
	case e.Verdict != nil:
		return fmt.Sprint(e.Verdict.Green, " ", e.Verdict.Tree)
	case e.Resolution != nil:
		return e.Resolution.ID + " " + e.Resolution.Commit
	}
	return ""
}

func (w *world) check(before *queue.State, c queue.Command) {
	w.t.Helper()
	if c.Kind == queue.DoLand && c.From != c.To && !w.green[c.Tree] {
		w.fail("it lands the tree %q, which has no green record (G1, G3)", c.Tree)
	}
	if c.Kind == queue.DoLand && w.trees[c.To] != c.Tree {
		w.fail("it lands another tree than the one that was verified (G3)")
	}
	if w.s.Window < 1 || w.s.Window > w.s.Policy.Batch {
		w.fail("the window is %d", w.s.Window)
	}
	seen := map[string]bool{}
	for _, e := range w.s.Entries {
		if seen[e.ID] {
			w.fail("%s is in the queue twice", e.ID)
		}
		seen[e.ID] = true
	}
	for _, id := range c.IDs {
		if c.Kind == queue.DoPrepare {
			if e, ok := w.s.Find(id); !ok || e.Status != queue.Waiting || len(e.Needs) > 0 {
				w.fail("it tries %s, which is not ready", id)
			}
		}
	}
	for _, n := range w.s.Out.Notes {
		switch n.Kind {
		case queue.NoteRed:
			b := before.Batch
			if b == nil && len(before.Checking) > 0 {
				b = &before.Checking[0]
			}
			if b == nil || !w.color(w.trees[b.Tip]) {
				w.fail("%s is blamed on a red target (G7)", n.ID)
			}
			w.blamed[n.ID] = true
		case queue.NoteStopped:
			w.alarms++
		}
	}
	for _, l := range w.s.Out.Landings {
		w.landed[l.Task]++
		if w.landed[l.Task] > 1 {
			w.fail("%s landed %d times", l.Task, w.landed[l.Task])
		}
		delete(w.queued, l.Task)
	}
	for id := range w.queued {
		if !seen[id] {
			w.fail("%s is lost", id)
		}
	}
}

// color is what the gates say of a tree.
func (w *world) color(tree string) bool {
	on := strings.Fields(tree)
	if slices.Contains(on, "broken") && !slices.Contains(on, "repaired") {
		return false
	}
	for _, a := range on {
		if w.bad[a] {
			return false
		}
		for _, b := range on {
			if w.clash[a+" "+b] {
				return false
			}
		}
	}
	return true
}

func (w *world) commit(onto, tree string) string {
	w.n++
	id := fmt.Sprintf("c%d", w.n)
	w.trees[id], w.onto[id] = tree, onto
	return id
}

func plus(tree, word string) string {
	on := append(strings.Fields(tree), word)
	slices.Sort(on)
	return strings.Join(slices.Compact(on), " ")
}

func (w *world) add(i int) {
	id := fmt.Sprintf("t%02d", i)
	e := queue.Entry{ID: id, Title: id, Commit: "k" + id, Priority: w.rnd.IntN(3)}
	for _, other := range slices.Sorted(maps.Keys(w.added)) {
		if w.landed[other] == 0 && !w.bad[other] && len(e.Needs) == 0 && w.chance(10) {
			e.Needs = append(e.Needs, other)
		}
	}
	w.bad[id] = w.chance(15)
	w.redThere[id] = w.checks && w.chance(10)
	if j := w.rnd.IntN(i + 1); w.chance(15) && j != i {
		w.clash[fmt.Sprintf("t%02d %s", j, id)] = true
	}
	if j := w.rnd.IntN(i + 1); w.chance(15) && j != i {
		w.meets[id] = fmt.Sprintf("t%02d", j)
	}
	w.gone[id] = w.chance(3)
	w.added[id], w.queued[id] = e, true
	w.send(queue.Event{Kind: queue.Added, Entry: &e})
}

// perform answers the open command as a repository would.
func (w *world) perform() {
	c := w.s.Command
	if c.Kind != queue.DoWait && w.chance(3) {
		w.send(queue.Event{Kind: queue.Stumbled, For: c.Seq, Why: "no space"})
		return
	}
	switch c.Kind {
	case queue.DoWait:
		if !c.Until.IsZero() {
			if c.Until.After(w.at) {
				w.at = c.Until
			}
			w.send(queue.Event{Kind: queue.WaitOver, For: c.Seq})
		}
	case queue.DoLook:
		f := w.facts()
		w.send(queue.Event{Kind: queue.Looked, For: c.Seq, Facts: &f})
	case queue.DoPrepare:
		w.prepare(c)
	case queue.DoVerify:
		ok := w.color(c.Tree)
		if !c.Again && ok && w.chance(10) {
			ok = false // flaky
		} else if ok && !w.checks {
			w.green[c.Tree] = true
		}
		w.send(queue.Event{Kind: queue.Verified, For: c.Seq, Verdict: &queue.Verdict{Tree: c.Tree, Green: ok, Retried: c.Again,
			Summary: "red"}})
	case queue.DoCheck:
		w.check1(c)
	case queue.DoLand:
		w.landOrNot(c)
	case queue.DoForesee:
		w.send(queue.Event{Kind: queue.Foreseen, For: c.Seq})
	}
}

// check1 is the forge, which is asked a few times before it knows. What is red for it alone
// is so by the number of its commits.
func (w *world) check1(c queue.Command) {
	b := w.s.Checking[0]
	tree := b.Result
	if b.Target {
		tree = b.Tree
	}
	if w.asked[tree]++; w.asked[tree]%3 != 0 {
		w.send(queue.Event{Kind: queue.Checked, For: c.Seq, Busy: w.chance(50)})
		return
	}
	ok := w.color(tree) && !w.there(tree)
	if ok {
		w.green[tree] = true
	}
	w.send(queue.Event{Kind: queue.Checked, For: c.Seq, Verdict: &queue.Verdict{Tree: tree, Green: ok, Summary: "red there",
		Absent: !ok && w.chance(10)}})
}

// there is true for a tree that is red at the forge, and green here.
func (w *world) there(tree string) bool {
	return slices.ContainsFunc(strings.Fields(tree), func(id string) bool { return w.redThere[id] })
}

func (w *world) prepare(c queue.Command) {
	onto := w.tip
	if c.From != "" {
		onto = c.From
	}
	p := &queue.Prepare{Facts: w.facts(), Head: onto, Result: w.trees[onto]}
	if p.Past {
		for _, id := range c.IDs {
			m := queue.Merged{ID: id}
			e, _ := w.s.Find(id)
			solved := strings.Contains(e.Commit, "solved")
			meets := w.meets[id]
			on := func(tree string) bool { return meets != "" && slices.Contains(strings.Fields(tree), meets) }
			switch {
			case w.gone[id]:
				m.Lost = "gone"
			case !solved && c.From == "" && on(w.trees[onto]):
				m.Conflict = conflictOf("2")
			case !solved && on(p.Result):
				m.Later = true
			case slices.Contains(strings.Fields(p.Result), id):
				m.Empty, m.Commit = true, p.Head
			default:
				p.Result = plus(p.Result, id)
				p.Head = w.commit(p.Head, p.Result)
				m.Commit = p.Head
			}
			p.Steps = append(p.Steps, m)
		}
		if p.Head != onto { // one step on the first-parent line
			p.Head = w.commit(onto, p.Result)
		}
	}
	w.send(queue.Event{Kind: queue.Prepared, For: c.Seq, Prepared: p})
}

func (w *world) landOrNot(c queue.Command) {
	switch {
	case w.tip == c.To:
		w.send(queue.Event{Kind: queue.Landed, For: c.Seq})
	case w.tip != c.From:
		w.send(queue.Event{Kind: queue.Refused, For: c.Seq, Refusal: &queue.Refusal{Moved: true}})
	case w.chance(10) && c.From != c.To:
		w.send(queue.Event{Kind: queue.Refused, For: c.Seq, Refusal: &queue.Refusal{Why: "a.txt", IDs: c.IDs[:1]}})
	default:
		for _, id := range c.IDs {
			for _, need := range w.added[id].Needs {
				if w.landed[need] == 0 {
					w.fail("%s lands before %s, which it needs", id, need)
				}
			}
		}
		w.tip = c.To
		if w.chance(10) {
			w.open() // killed after the target was moved
			return
		}
		w.send(queue.Event{Kind: queue.Landed, For: c.Seq})
	}
}

// disturb is somebody else: people, other processes, crashes.
func (w *world) disturb() {
	var ids []string
	for _, e := range w.s.Entries {
		ids = append(ids, e.ID)
	}
	slices.Sort(ids)
	pick := func() string {
		if len(ids) == 0 {
			return "t99"
		}
		return ids[w.rnd.IntN(len(ids))]
	}
	switch w.rnd.IntN(10) {
	case 0:
		w.open()
	case 1:
		w.send(w.last)
	case 2:
		w.send(queue.Event{Kind: queue.Verified, For: w.s.Seq - 1, Verdict: &queue.Verdict{Green: true}})
	case 3:
		w.send(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishHold, ID: pick()}})
	case 4:
		w.send(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishRelease, ID: pick()}})
	case 5:
		w.send(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishRetry, ID: pick()}})
	case 6:
		w.tip = w.commit(w.tip, plus(w.trees[w.tip], fmt.Sprintf("p%d", w.n)))
		if w.broken {
			w.reds++
		}
	case 7:
		w.breakOrRepair()
	case 8:
		w.resolveOne()
	case 9:
		w.send(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishVerify}})
	}
}

func (w *world) breakOrRepair() {
	tree := w.trees[w.tip]
	if slices.Contains(strings.Fields(tree), "broken") {
		tree = strings.Join(slices.DeleteFunc(strings.Fields(tree), func(s string) bool { return s == "broken" }), " ")
		w.broken = false
	} else {
		tree, w.broken = plus(tree, "broken"), true
		w.reds++
	}
	w.tip = w.commit(w.tip, plus(tree, fmt.Sprintf("p%d", w.n)))
}

func (w *world) resolveOne() {
	for _, e := range w.s.Entries {
		if e.Status == queue.Resolving {
			r := queue.Resolution{ID: e.ID, Attempt: e.Attempts, Commit: e.Commit + "-solved"}
			if w.chance(20) {
				r.Commit = ""
			}
			w.send(queue.Event{Kind: queue.Resolved, Resolution: &r})
			return
		}
	}
}

// run is a life: tasks come in, things happen, then it is quiet until the queue
// has nothing to do.
func run(t testing.TB, seed uint64) {
	w := newWorld(t, seed)
	const tasks = 25
	for i := 0; i < tasks; {
		switch {
		case w.chance(20):
			w.add(i)
			i++
		case w.chance(15):
			w.disturb()
		default:
			w.perform()
		}
	}
	if w.broken {
		w.breakOrRepair()
	}
	for _, e := range w.s.Entries {
		if e.Status == queue.OnHold {
			w.send(queue.Event{Kind: queue.Asked, Ask: &queue.Ask{Wish: queue.WishRelease, ID: e.ID}})
		}
	}
	for range 3000 {
		idle := w.s.Command.Kind == queue.DoWait && w.s.Command.Until.IsZero()
		agents := slices.ContainsFunc(w.s.Entries, func(e queue.Entry) bool { return e.Status == queue.Resolving })
		if idle && !agents || w.settled() {
			break
		}
		w.perform()
		w.resolveOne()
	}
	if w.alarms > w.reds {
		w.fail("%d alarms for %d red values of the target (G7)", w.alarms, w.reds)
	}
	for _, id := range slices.Sorted(maps.Keys(w.added)) {
		e := w.added[id]
		if w.landed[id] > 0 || w.hopeless(id, 0) {
			continue
		}
		now, _ := w.s.Find(id)
		w.fail("%s did not land, and nothing is wrong with it: %+v, needs %v (G5)", id, now, e.Needs)
	}
	for _, commit := range slices.Sorted(maps.Keys(w.trees)) {
		if w.landed[commit] > 0 && !w.isPast(commit) {
			w.fail("a landing is no ancestor of the target (G4)")
		}
	}
}

// settled is true when all that is left has something wrong with it.
func (w *world) settled() bool {
	for _, e := range w.s.Entries {
		if !w.hopeless(e.ID, 0) {
			return false
		}
	}
	return w.s.Command.Kind == queue.DoWait
}

// hopeless is true for a task that cannot land with what is on the target, or
// that needs such a one.
func (w *world) hopeless(id string, deep int) bool {
	if w.bad[id] || w.redThere[id] || w.gone[id] || deep > 30 {
		return true
	}
	on := append(strings.Fields(w.trees[w.tip]), id)
	for _, a := range on {
		if w.clash[a+" "+id] || w.clash[id+" "+a] {
			return true
		}
	}
	if e, ok := w.s.Find(id); ok && e.Status == queue.Parked {
		return true // an agent failed at its conflict
	}
	return slices.ContainsFunc(w.added[id].Needs, func(need string) bool { return w.landed[need] == 0 && w.hopeless(need, deep+1) })
}

func TestPromisesHold(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		run(t, seed)
	}
}

func FuzzPromises(f *testing.F) {
	for seed := range uint64(10) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) { run(t, seed) })
}
