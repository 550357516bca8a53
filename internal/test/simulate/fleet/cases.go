package fleet

import (
	"cmp"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/board"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// item is a task: its case as it is stored, and all that there is of it in the
// world.
type item struct {
	c      board.Case
	needs  []int // items
	wanted []int // items that need this one

	reopened board.Entry
	activeAt time.Time
	marked   time.Time // activeAt as the machine's clock told it

	run      *loop.State
	touched  time.Time // when run was stored last
	answered bool
	agent    int // rises with each agent and each wait: what was planned for an earlier one is void
	alive    bool
	after    bool // the agent ended while pawl was away; its result is in its files
	begun    bool // its run is driven by this pawl

	works  int  // commits so far
	merged bool // landed: on the target, or nothing was to be landed
	at     int  // the commit of the target that it landed with; 0 is none
	deed   int  // rises with each status: a person's plan about an earlier one is void
}

// stock makes the board: tasks that need up to three earlier ones.
func (w *world) stock() {
	for i := range w.o.Tasks {
		w.add()
		it := &w.items[i]
		it.c.Priority = []int{0, 0, 0, 0, 0, 0, 5, -5}[w.pick(8)]
		it.c.CreatedAt = w.clock.begin.Add(-time.Duration(w.pick(1000)) * time.Second)
		for range w.pick(4) {
			if i > 0 {
				// Mostly near: chains stay short enough to end.
				w.need(i, max(0, i-1-w.pick(200+w.o.Tasks/10)))
			}
		}
	}
}

func (w *world) add() {
	c := board.Case{ID: board.ID(board.Task, int64(len(w.items)+1)), Type: board.Task, Title: "case",
		Status: board.Pending}
	w.index[c.ID] = len(w.items)
	w.items = append(w.items, item{c: c})
}

// need adds a dependency.
func (w *world) need(from, on int) {
	a, b := &w.items[from], &w.items[on]
	if slices.Contains(a.needs, on) {
		return
	}
	a.needs, b.wanted = append(a.needs, on), append(b.wanted, from)
	a.c.Needs = append(a.c.Needs, b.c.ID)
}

// view is a case as it is read: its counters are what other cases are.
func (w *world) view(i int) *board.Case {
	it := &w.items[i]
	it.c.Unmet, it.c.Unblocks = w.undone(it.needs), w.undone(it.wanted)
	return &it.c
}

func (w *world) undone(items []int) (n int) {
	for _, i := range items {
		if w.items[i].c.Status != board.Done {
			n++
		}
	}
	return n
}

// best is the ready task that goes first and is not excluded; -1 is none.
func (w *world) best(exclude []string) int {
	best, most := -1, 0
	for i := range w.items {
		if w.items[i].c.Status != board.Pending {
			continue
		}
		c := w.view(i)
		if !w.rules.Ready(c) || slices.Contains(exclude, c.ID) {
			continue
		}
		score, _ := board.Score(c)
		if best >= 0 {
			first := &w.items[best].c
			if cmp.Or(cmp.Compare(first.Priority, c.Priority), cmp.Compare(most, score),
				c.CreatedAt.Compare(first.CreatedAt)) >= 0 {
				continue
			}
		}
		best, most = i, score
	}
	return best
}

// move carries out a change with all that it means for other cases, as who
// stores them does.
func (w *world) move(i int, a board.Action, by board.Actor, why string) error {
	it := &w.items[i]
	c, entry, err := w.rules.Move(*w.view(i), board.Change{Action: a, By: by, Why: why, At: w.clock.now})
	if err != nil {
		return err
	}
	was := it.c.Status
	it.c = c
	it.deed++
	w.tell(c.ID, "%s %s: %s -> %s (%s)", by, a, was, c.Status, entry.Why)
	switch c.Status {
	case board.Pending:
		it.reopened = entry
	case board.Active:
		it.activeAt, it.marked = w.clock.now, w.clock.wall()
	default:
	}
	if was == board.Done {
		w.left++
	}
	if c.Status == board.Done {
		w.left--
	}
	if c.Status == board.Done && !it.merged {
		w.broken(Landed, []string{c.ID}, "%s is done and did not land", c.ID)
	}
	w.expect(i)
	return nil
}

// unmet are what a task needs that has not landed. It looks at the world and not
// at the board.
func (w *world) unmet(i int) []string {
	var list []string
	for _, n := range w.items[i].needs {
		if !w.items[n].merged {
			list = append(list, w.items[n].c.ID)
		}
	}
	return list
}
