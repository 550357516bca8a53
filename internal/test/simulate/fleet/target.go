package fleet

import (
	"fmt"
	"hash/fnv"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/queue"
)

// commit is one of the target: a merge of a task's work, or a person's own.
// Its parent is older.
type commit struct {
	parent int
	tree   string
	task   int // -1: a person's
	work   string
}

// work is what a task's loop, an agent for conflicts or a person made of it.
type work struct {
	task int
	bad  bool // green by itself, red on the target
}

// target is the branch, and what is known of trees.
type target struct {
	commits []commit
	tip     int
	works   map[string]work
	bad     map[string]bool // trees whose gates are red, each time
	green   map[string]bool // trees with a green record
	record  map[string]bool // stored verdicts
}

func newTarget() *target {
	return &target{
		commits: []commit{{parent: -1, tree: "t", task: -1}}, works: map[string]work{},
		bad: map[string]bool{}, green: map[string]bool{}, record: map[string]bool{},
	}
}

// number is the commit that the queue's words name; -1 is none.
func number(name string) int {
	if n, err := strconv.Atoi(name); err == nil {
		return n
	}
	return -1
}

// digest makes a number of some values: always the same one, and it looks like chance.
func digest(of ...any) uint64 {
	h := fnv.New64a()
	fmt.Fprintln(h, of...)
	return h.Sum64()
}

// grow makes a commit on another one.
func (t *target) grow(on, task int, work string, bad bool) int {
	p := t.commits[on]
	tree := strconv.FormatUint(digest(p.tree, work), 36)
	if bad || t.bad[p.tree] {
		t.bad[tree] = true
	}
	t.commits = append(t.commits, commit{parent: on, tree: tree, task: task, work: work})
	return len(t.commits) - 1
}

// holds is true when old is new or an ancestor of it.
func (t *target) holds(old, now int) bool {
	for now > old {
		now = t.commits[now].parent
	}
	return now == old && old >= 0
}

// facts is what the queue can see of the target.
func (w *world) facts() queue.Facts {
	t := w.target
	f := queue.Facts{Tip: strconv.Itoa(t.tip), Tree: t.commits[t.tip].tree, Past: true}
	if seen := number(w.queue.Tip); seen >= 0 {
		f.Past = t.holds(seen, t.tip)
	}
	return f
}

// newWork makes a commit of a task's own.
func (w *world) newWork(i int) string {
	it := &w.items[i]
	it.works++
	id := fmt.Sprintf("w%d-%d", i, it.works)
	w.target.works[id] = work{task: i, bad: w.chance(4)}
	return id
}

// prepare merges entries onto the target, in memory.
func (w *world) prepare(ids []string) *queue.Prepare {
	t := w.target
	p := &queue.Prepare{Facts: w.facts()}
	head := t.tip
	for _, id := range ids {
		e, ok := w.queue.Find(id)
		if !ok {
			continue
		}
		m, on := w.merge(&e, head)
		head = on
		p.Steps = append(p.Steps, m)
	}
	p.Head, p.Result = strconv.Itoa(head), t.commits[head].tree
	return p
}

// merge meets a conflict now and then: on what is ahead of it in its batch, or on
// the target. The same two sides meet the same way each time.
func (w *world) merge(e *queue.Entry, head int) (queue.Merged, int) {
	t := w.target
	k := t.works[e.Commit]
	m := queue.Merged{ID: e.ID}
	switch h := digest(e.Commit, t.commits[head].tree) % 100; {
	case h > 4:
		head = t.grow(head, k.task, e.Commit, k.bad)
		m.Commit = strconv.Itoa(head)
	case head != t.tip:
		m.Later = true
	default:
		hunk := queue.Hunk{Base: []string{"a = 1"}, Ours: []string{"a = 2"}, Theirs: []string{"a = 3"}}
		m.Conflict = &queue.Conflict{Files: []queue.File{{Path: "f", Kinds: []string{"contents"},
			Hunks: []queue.Hunk{hunk}, Binary: h == 0}}}
	}
	return m, head
}

// verify runs the gates on a tree, or finds their record.
func (w *world) verify(c queue.Command) *queue.Verdict {
	t, tree := w.target, c.Tree
	v := &queue.Verdict{Tree: c.Tree, Retried: c.Again}
	if green, known := t.record[tree]; known && (green || !c.Again && !c.Fresh) {
		v.Green, v.Cached, v.Retried = green, true, false
		return v
	}
	v.Green = !t.bad[tree] && !w.chance(15) // some gates are flaky
	if !v.Green {
		w.report["red verdicts"]++
		v.Summary = "tests: 1 of 9 failed"
	}
	if v.Green || c.Again {
		t.record[tree] = v.Green
	}
	if v.Green {
		t.green[tree] = true
	}
	return v
}

// advance moves the target, if it is where it was seen. It is the one place
// where work lands.
func (w *world) advance(c queue.Command) (moved bool, refused *queue.Refusal) {
	t := w.target
	from, to := number(c.From), number(c.To)
	switch {
	case t.holds(to, t.tip):
		return true, nil // it is there already
	case from != t.tip:
		return false, &queue.Refusal{Moved: true, Why: "the target was moved"}
	}
	if !t.green[t.commits[to].tree] {
		w.broken(Verified, c.IDs, "the target is moved to %s, whose tree %s has no green record", c.To, t.commits[to].tree)
	}
	if !t.holds(from, to) {
		w.broken(Verified, c.IDs, "the target is moved from %s to %s, which does not follow", c.From, c.To)
	}
	var way []int
	for at := to; at != from && at >= 0; at = t.commits[at].parent {
		way = append(way, at)
	}
	slices.Reverse(way)
	for _, at := range way {
		w.lands(at)
	}
	t.tip = to
	return true, nil
}

// lands takes note of one commit that is on the target now.
func (w *world) lands(at int) {
	t := w.target
	c := &t.commits[at]
	it := &w.items[c.task]
	w.tell(it.c.ID, "lands as %s (%s)", strconv.Itoa(at), c.work)
	if it.at > 0 && t.holds(it.at, at) {
		w.broken(Once, []string{it.c.ID}, "%s lands a second time, with %s", it.c.ID, c.work)
	}
	if open := w.unmet(c.task); len(open) > 0 {
		w.broken(Order, append([]string{it.c.ID}, open...), "%s lands before %v", it.c.ID, open)
	}
	it.merged, it.at = true, at
	w.report["landings"]++
}

// personMoves commits on the target from outside: a change of a person's own,
// now and then a red one, and rarely in the place of the last ones.
func (w *world) personMoves() {
	t := w.target
	on := t.tip
	w.report["moves of the target"]++
	if rewrite := w.chance(40); rewrite && t.commits[on].parent >= 0 {
		w.report["rewritten targets"]++
		if gone := t.commits[on].task; gone >= 0 && w.items[gone].c.Status != board.Done {
			w.items[gone].merged, w.items[gone].at = false, 0 // nobody had taken note that it landed
		}
		on = t.commits[on].parent
	}
	red := w.chance(80)
	id := "p" + strconv.Itoa(len(t.commits))
	next := t.grow(on, -1, id, red)
	if w.target.bad[t.commits[on].tree] && !red { // it repairs what was red
		delete(t.bad, t.commits[next].tree)
	}
	t.tip = next
	w.tell("", "a person moves the target to %s (red: %t)", strconv.Itoa(next), t.bad[t.commits[next].tree])
	if t.bad[t.commits[next].tree] {
		w.later(time.Hour, w.repair)
	}
}

// repair makes a red target green again.
func (w *world) repair() {
	t := w.target
	if !t.bad[t.commits[t.tip].tree] {
		return
	}
	next := t.grow(t.tip, -1, "r"+strconv.Itoa(len(t.commits)), false)
	delete(t.bad, t.commits[next].tree)
	t.tip = next
	w.report["actions of people"]++
	w.tell("", "a person repairs the target: %s", strconv.Itoa(next))
}
