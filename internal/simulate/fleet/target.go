package fleet

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/queue"
)

// commit is one of the target: a merge of a task's work, or a person's own.
// Its parent is older.
type commit struct {
	parent int
	tree   uint64
	task   int // -1: a person's
	work   string
	at     int // how many changes are on the target with it
}

// work is what a task's loop, an agent for conflicts or a person made of it.
type work struct {
	task  int
	base  int  // commit.at of the target that it was made on
	bad   bool // green by itself, red on the target
	empty bool // the target has it already
	gone  bool // the commit is not to be found any more
}

// target is the branch, and what is known of trees.
type target struct {
	commits []commit
	tip     int
	works   map[string]work
	bad     map[uint64]bool // trees whose gates are red, each time
	green   map[uint64]bool // trees with a green record
	record  map[uint64]bool // stored verdicts
	touched []int           // by file: commit.at of the last change
	last    []int           // by file: the task of that change; -1 a person
}

func newTarget(files int) *target {
	t := &target{
		commits: []commit{{parent: -1, tree: 1, task: -1}}, works: map[string]work{}, bad: map[uint64]bool{}, green: map[uint64]bool{},
		record: map[uint64]bool{}, touched: make([]int, files), last: make([]int, files),
	}
	for i := range t.last {
		t.last[i] = -1
	}
	return t
}

// name and number are a commit in the queue's words, and back; -1 is none.
func name(commit int) string { return "m" + strconv.Itoa(commit) }

func number(name string) int {
	if len(name) < 2 || name[0] != 'm' {
		return -1
	}
	n, err := strconv.Atoi(name[1:])
	if err != nil {
		return -1
	}
	return n
}

func treeName(tree uint64) string { return strconv.FormatUint(tree, 36) }

func treeNumber(name string) uint64 {
	n, _ := strconv.ParseUint(name, 36, 64)
	return n
}

// mix makes a number of two that looks like none of them.
func mix(a, b uint64) uint64 {
	x := a*0x9e3779b97f4a7c15 ^ b + 0xbf58476d1ce4e5b9
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return mix(h, 1)
}

// grow makes a commit on another one.
func (t *target) grow(on, task int, work string, bad bool) int {
	p := t.commits[on]
	tree := mix(p.tree, hash(work))
	if bad || t.bad[p.tree] {
		t.bad[tree] = true
	}
	t.commits = append(t.commits, commit{parent: on, tree: tree, task: task, work: work, at: p.at + 1})
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
	f := queue.Facts{Tip: name(t.tip), Tree: treeName(t.commits[t.tip].tree), Past: true}
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
	w.target.works[id] = work{
		task: i, base: it.base, bad: w.chance(4), empty: w.chance(5), gone: w.chance(1),
	}
	return id
}

// clash is what the merge of work onto a tree meets in the files that it
// touches: nothing, a simple conflict, a medium or a complex one. The same two
// sides meet the same way each time.
type clash int

const (
	clean clash = iota
	light
	middling
	heavy
)

func (w *world) clash(id string, touched, last []int, ahead map[int]int) (worst clash, inBatch bool) {
	t := w.target
	k := t.works[id]
	for _, f := range w.items[k.task].files {
		other, fresh := ahead[f]
		if !fresh {
			if touched[f] <= k.base || last[f] == k.task {
				continue
			}
			other = last[f]
		}
		var c clash
		switch h := mix(hash(id), uint64(f)<<32^uint64(other+2)) % 100; { //nolint:gosec // small and positive
		case h < 75:
		case h < 88:
			c = light
		case h < 97:
			c = middling
		default:
			c = heavy
		}
		if c > worst {
			worst, inBatch = c, fresh
		}
	}
	return worst, inBatch
}

// conflict is a clash as git would tell it.
func (c clash) conflict(file int) *queue.Conflict {
	f := queue.File{Path: "f" + strconv.Itoa(file), Kinds: []string{"contents"}}
	f.Hunks = []queue.Hunk{{Base: []string{"a = 1"}, Ours: []string{"a = 2"}, Theirs: []string{"a = 3"}}}
	if c == heavy {
		f.Binary = true
	}
	return &queue.Conflict{Files: []queue.File{f}}
}

// prepare merges entries onto the target, in memory.
func (w *world) prepare(ids []string) *queue.Prepare {
	t := w.target
	p := &queue.Prepare{Facts: w.facts()}
	head := t.tip
	ahead := map[int]int{}
	for _, id := range ids {
		e, ok := w.queue.Find(id)
		if !ok {
			continue
		}
		m, on := w.merge(&e, head, ahead)
		head = on
		p.Steps = append(p.Steps, m)
	}
	p.Head, p.Result = name(head), treeName(t.commits[head].tree)
	return p
}

func (w *world) merge(e *queue.Entry, head int, ahead map[int]int) (queue.Merged, int) {
	t := w.target
	k := t.works[e.Commit]
	m := queue.Merged{ID: e.ID}
	c, later := w.clash(e.Commit, t.touched, t.last, ahead)
	file := w.items[k.task].files[0]
	bad := k.bad
	switch {
	case k.gone:
		m.Lost = "its commit is gone"
		return m, head
	case k.empty:
		m.Empty, m.Commit = true, name(head)
		return m, head
	case later && c > clean:
		m.Later = true
		return m, head
	case c >= middling || c == light && e.Plain:
		m.Conflict = c.conflict(file)
		return m, head
	case c == light:
		m.Settled = []string{"f" + strconv.Itoa(file)}
		bad = bad || mix(hash(e.Commit), 7)%10 == 0 // what a rule settled may be wrong
	}
	head = t.grow(head, k.task, e.Commit, bad)
	m.Commit = name(head)
	for _, f := range w.items[k.task].files {
		ahead[f] = k.task
	}
	return m, head
}

// verify runs the gates on a tree, or finds their record.
func (w *world) verify(c queue.Command) *queue.Verdict {
	t, tree := w.target, treeNumber(c.Tree)
	v := &queue.Verdict{Tree: c.Tree, Retried: c.Again}
	if green, known := t.record[tree]; known && (green || !c.Again && !c.Fresh) {
		v.Green, v.Cached, v.Retried = green, true, false
		return v
	}
	v.Green = !t.bad[tree] && !w.chance(15) // some gates are flaky
	if !v.Green {
		w.report.Reds++
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
		w.broken(Verified, c.IDs, "the target is moved to %s, whose tree %s has no green record", c.To, treeName(t.commits[to].tree))
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
	w.tell(it.c.ID, "lands as %s (%s)", name(at), c.work)
	if it.at > 0 && t.holds(it.at, at) {
		w.broken(Once, []string{it.c.ID}, "%s lands a second time, with %s", it.c.ID, c.work)
	}
	if open := w.unmet(c.task); len(open) > 0 {
		w.broken(Order, append([]string{it.c.ID}, open...), "%s lands before %v", it.c.ID, open)
	}
	it.merged, it.at = true, at
	w.report.Landings++
	for _, f := range it.files {
		t.touched[f], t.last[f] = c.at, c.task
	}
}

// personMoves commits on the target from outside: a change of a person's own,
// now and then a red one, and rarely in the place of the last ones.
func (w *world) personMoves() {
	t := w.target
	on := t.tip
	w.report.Moved++
	if rewrite := w.chance(40); rewrite && t.commits[on].parent >= 0 {
		w.report.Rewritten++
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
	f := w.pick(w.files)
	t.touched[f], t.last[f] = t.commits[next].at, -1
	t.tip = next
	w.tell("", "a person moves the target to %s (red: %t)", name(next), t.bad[t.commits[next].tree])
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
	w.report.Deeds++
	w.tell("", "a person repairs the target: %s", name(next))
}
