package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/board"
	"github.com/pawl-dev/pawl/internal/loop"
)

// item is a case of the board as it is stored, and for a task all that there is
// of it in the world.
type item struct {
	c      board.Case
	number int64
	needs  []int // items
	wanted []int // items that need this one
	parent int   // -1 is none
	kids   []int

	// The stored rank, by which the next ready task is found.
	score int
	place int // in the heap of ready tasks; -1 is none

	task
}

// task is what the world has of a task beside its case.
type task struct {
	files    []int // that its work touches
	reopened board.Entry
	activeAt time.Time
	marked   time.Time // activeAt as the machine's clock told it

	run      *loop.State
	touched  time.Time // when run was stored last
	base     int       // what landed when the work began
	answered bool
	agent    int // rises with each agent and each wait: what was planned for an earlier one is void
	alive    bool
	after    bool // the agent ended while pawl was away; its result is in its files
	begun    bool // its run is driven by this pawl

	works   int  // commits so far
	review  bool // waits for a person's review
	merged  bool // landed: on the target, or nothing was to be landed
	at      int  // the commit of the target that it landed with; 0 is none
	entered time.Time
	deed    int // rises with each status: a person's plan about an earlier one is void
}

// stock makes the board: operations, some of which need an earlier one, tasks in
// them and alone, that need up to three earlier tasks.
func (w *world) stock() {
	operations := w.o.Tasks / 40
	for i := range operations {
		op := w.add(board.Operation, i+1)
		if i > 0 && w.chance(150) {
			w.need(op, w.pick(i))
		}
	}
	for i := range w.o.Tasks {
		t := w.add(board.Task, i+1)
		it := &w.items[t]
		for range 1 + w.pick(3) {
			it.files = append(it.files, w.pick(w.files))
		}
		it.c.Priority = []int{0, 0, 0, 0, 0, 0, 5, -5}[w.pick(8)]
		switch w.pick(20) {
		case 0:
			it.c.Tags = []string{"critical"}
		case 1:
			it.c.Tags = []string{"quick-win"}
		}
		it.c.CreatedAt = w.clock.begin.Add(-time.Duration(w.pick(1000)) * time.Second)
		if operations > 0 && w.chance(700) {
			w.put(t, i*operations/w.o.Tasks)
		}
		for range w.pick(4) {
			if i > 0 {
				// Mostly near: chains stay short enough to end.
				near := max(0, i-1-w.pick(200+w.o.Tasks/10))
				w.need(t, operations+near)
			}
		}
	}
	for i := range w.items {
		w.count(i)
	}
	for i := range w.items {
		w.rank(i)
	}
}

func (w *world) add(t board.Type, n int) int {
	c := board.Case{ID: board.ID(t, int64(n)), Type: t, Title: "case", Status: board.Pending, CreatedAt: w.clock.begin}
	w.items = append(w.items, item{c: c, number: int64(n), parent: -1, place: -1})
	w.index[c.ID] = len(w.items) - 1
	return len(w.items) - 1
}

// put puts a task into an operation that it does not depend on.
func (w *world) put(t, op int) {
	w.items[t].parent = op
	w.items[t].c.Parent = w.items[op].c.ID
	w.items[op].kids = append(w.items[op].kids, t)
}

// need adds a dependency. There are no cycles: a task needs earlier tasks, which
// are in no later operation, and an operation needs earlier ones.
func (w *world) need(from, on int) {
	a, b := &w.items[from], &w.items[on]
	if slices.Contains(a.needs, on) {
		return
	}
	a.needs, b.wanted = append(a.needs, on), append(b.wanted, from)
	a.c.Needs = append(a.c.Needs, b.c.ID)
}

// count sets the counters of a case from scratch.
func (w *world) count(i int) {
	it := &w.items[i]
	it.c.Unmet, it.c.Unblocks, it.c.Children = len(it.needs), len(it.wanted), len(it.kids)
	if it.parent >= 0 {
		it.c.Held = len(w.items[it.parent].needs) > 0
	}
}

// view is a case as it is read: with what its operation says of it.
func (w *world) view(i int) *board.Case {
	it := &w.items[i]
	if it.parent >= 0 {
		op := &w.items[it.parent].c
		it.c.Siblings, it.c.SiblingsDone = op.Children, op.ChildrenDone
	}
	return &it.c
}

// rank stores whether a task is ready, and its score.
func (w *world) rank(i int) {
	it := &w.items[i]
	c := w.view(i)
	if !w.rules.Ready(c) {
		w.ready.remove(w, i)
		return
	}
	it.score, _ = board.Score(c)
	w.ready.put(w, i)
}

// move carries out a change with all that it means for other cases, as who
// stores them does.
func (w *world) move(i int, a board.Action, by board.Actor, why string) error {
	it := &w.items[i]
	c, entry, err := w.rules.Move(*w.view(i), board.Change{Action: a, By: by, Why: why, At: w.clock.now})
	if err != nil {
		return err
	}
	w.report.Board++
	was := it.c.Status
	it.c = c
	it.deed++
	it.entered, it.review = w.clock.now, false
	w.tell(c.ID, "%s %s: %s -> %s (%s)", by, a, was, c.Status, entry.Why)
	switch c.Status {
	case board.Pending:
		it.reopened = entry
	case board.Active:
		it.activeAt, it.marked = w.clock.now, w.clock.wall()
	default:
	}
	if (was == board.Done) != (c.Status == board.Done) {
		w.finished(i, c.Status == board.Done)
	}
	w.rank(i)
	w.heldBy(i)
	if it.c.Status == board.Done && !it.merged && it.c.Type == board.Task {
		w.broken(Landed, []string{c.ID}, "%s is done and did not land", c.ID)
	}
	w.expect(i)
	return nil
}

// finished hands on that a case is done, or is so no more.
func (w *world) finished(i int, done bool) {
	it := &w.items[i]
	by := 1
	if done {
		by = -1
	}
	for _, d := range it.wanted {
		w.items[d].c.Unmet += by
		w.rank(d)
		w.heldBy(d)
	}
	for _, n := range it.needs {
		w.items[n].c.Unblocks += by
		w.rank(n)
	}
	if it.parent < 0 {
		return
	}
	op := &w.items[it.parent]
	before := board.NearComplete(op.c.Children, op.c.ChildrenDone)
	op.c.ChildrenDone -= by
	if board.NearComplete(op.c.Children, op.c.ChildrenDone) != before {
		for _, k := range op.kids {
			w.rank(k)
		}
	}
	if op.c.ChildrenDone == op.c.Children {
		if err := w.move(it.parent, board.Finish, board.Pawl, ""); err != nil {
			w.broken(Table, []string{op.c.ID}, "%v", err)
		}
	}
}

// heldBy hands down whether an operation holds up what it has.
func (w *world) heldBy(i int) {
	it := &w.items[i]
	if it.c.Type != board.Operation {
		return
	}
	holds := it.c.Holds()
	for _, k := range it.kids {
		if w.items[k].c.Held != holds {
			w.items[k].c.Held = holds
			w.rank(k)
		}
	}
}

// unmet are what a task needs, or its operation does, that has not landed.
func (w *world) unmet(i int) []string {
	var list []string
	from := []int{i}
	if p := w.items[i].parent; p >= 0 {
		from = append(from, p)
	}
	for _, f := range from {
		for _, n := range w.items[f].needs {
			if !w.over(n) {
				list = append(list, w.items[n].c.ID)
			}
		}
	}
	return list
}

// over is true for a task that landed, and an operation all of which did. It
// looks at the world and not at the board.
func (w *world) over(i int) bool {
	it := &w.items[i]
	if it.c.Type == board.Task {
		return it.merged
	}
	for _, k := range it.kids {
		if !w.items[k].merged {
			return false
		}
	}
	return len(it.kids) > 0 || it.c.Status == board.Done
}

// readyHeap is the ready tasks, the one that goes first on top.
type readyHeap struct{ at []int }

func (h *readyHeap) less(w *world, a, b int) bool {
	x, y := &w.items[h.at[a]], &w.items[h.at[b]]
	return cmp.Or(cmp.Compare(y.c.Priority, x.c.Priority), cmp.Compare(y.score, x.score), x.c.CreatedAt.Compare(y.c.CreatedAt), cmp.Compare(x.number, y.number)) < 0
}

func (h *readyHeap) swap(w *world, a, b int) {
	h.at[a], h.at[b] = h.at[b], h.at[a]
	w.items[h.at[a]].place, w.items[h.at[b]].place = a, b
}

func (h *readyHeap) put(w *world, i int) {
	it := &w.items[i]
	if it.place < 0 {
		it.place = len(h.at)
		h.at = append(h.at, i)
	}
	h.settle(w, it.place)
}

func (h *readyHeap) remove(w *world, i int) {
	at := w.items[i].place
	if at < 0 {
		return
	}
	last := len(h.at) - 1
	h.swap(w, at, last)
	h.at = h.at[:last]
	w.items[i].place = -1
	if at < last {
		h.settle(w, at)
	}
}

func (h *readyHeap) settle(w *world, at int) {
	for at > 0 && h.less(w, at, (at-1)/2) {
		h.swap(w, at, (at-1)/2)
		at = (at - 1) / 2
	}
	for {
		down := 2*at + 1
		if down+1 < len(h.at) && h.less(w, down+1, down) {
			down++
		}
		if down >= len(h.at) || !h.less(w, down, at) {
			return
		}
		h.swap(w, at, down)
		at = down
	}
}

// best is the ready task that goes first and is not excluded; -1 is none.
func (h *readyHeap) best(w *world, exclude []string) int {
	var aside []int
	found := -1
	for len(h.at) > 0 {
		top := h.at[0]
		if !slices.Contains(exclude, w.items[top].c.ID) {
			found = top
			break
		}
		aside = append(aside, top)
		h.remove(w, top)
	}
	for _, i := range aside {
		h.put(w, i)
	}
	return found
}
