package simulate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/strategy"
)

// loopsOfProject is how many loops one repository sees, an hour apart.
const loopsOfProject = 200

// player plays loops, one after the other, and may learn.
type player interface {
	play(p *project, w *world, start time.Time) tally
	forget() // a new repository
}

// Row is what one player reached over all loops.
type Row struct {
	Player string
	// All loops, those that could succeed, and those that did.
	Loops, Curable, Succeeded int
	// Of the loops that succeeded.
	Iterations int
	Time       time.Duration
	// Cost of all loops; Wasted is that of loops in which nothing could help.
	Cost, Wasted loop.MicroUSD
	// Choices after a failure, and those after which it did not come again.
	Choices, Right int
	// Causes has the same for each cause, in the order of the worlds; none below that.
	Causes []Row
}

// Table plays loops with each player in the same worlds. Worlds are those that
// the strategies were tuned with, or those that were held out.
func Table(loops int, seed uint64, held bool) []Row {
	causes := tuned
	if held {
		causes = heldOut
	}
	players := []struct {
		name string
		player
	}{
		{"by keyword", &byKeyword{}},
		{"conservative", &ours{mode: strategy.Conservative}},
		{"aggressive", &ours{mode: strategy.Aggressive}},
		{"auto", &ours{mode: strategy.Auto}},
	}
	rows := make([]Row, len(players))
	for i, p := range players {
		rows[i] = playAll(p.player, causes, loops, seed)
		rows[i].Player = p.name
	}
	return rows
}

func playAll(pl player, causes []cause, loops int, seed uint64) Row {
	row := Row{Causes: make([]Row, len(causes))}
	for i := range causes {
		row.Causes[i].Player = causes[i].name
	}
	r := rng(seed)
	var p *project
	start := time.Unix(1_700_000_000, 0).UTC()
	for i := range loops {
		if i%loopsOfProject == 0 {
			p = newProject(causes, &r)
			pl.forget()
		}
		w := newWorld(p, &r)
		hopeless := w.obstacle.hopeless()
		t := pl.play(p, w, start)
		start = start.Add(time.Hour)
		row.add(&t, hopeless)
		at := slices.IndexFunc(causes, func(c cause) bool { return c.name == w.cause })
		row.Causes[at].add(&t, hopeless)
	}
	return row
}

func (r *Row) add(t *tally, hopeless bool) {
	r.Loops++
	r.Cost += t.cost
	r.Choices += t.choices
	r.Right += t.right
	if hopeless {
		r.Wasted += t.cost
		return
	}
	r.Curable++
	if t.success {
		r.Succeeded++
		r.Iterations += t.iterations
		r.Time += t.time
	}
}

// Success is the share of curable loops that succeeded, in per mille.
func (r *Row) Success() int { return r.Succeeded * 1000 / max(r.Curable, 1) }

// RightShare is the share of right choices, in per mille.
func (r *Row) RightShare() int { return r.Right * 1000 / max(r.Choices, 1) }

// CostOfSuccess is what was paid for each success, failed loops included.
func (r *Row) CostOfSuccess() loop.MicroUSD {
	return r.Cost / loop.MicroUSD(max(r.Succeeded, 1))
}

// Format prints rows as a Markdown table.
func Format(rows []Row) string {
	var b strings.Builder
	b.WriteString("| selector | loops that succeed | iterations to success | time to success | cost of a success | cost where nothing could help | right choices |\n")
	b.WriteString("|---|---|---|---|---|---|---|\n")
	for i := range rows {
		r := &rows[i]
		n := max(r.Succeeded, 1)
		fmt.Fprintf(&b, "| %s | %s | %.2f | %s | $%.2f | $%.0f | %s |\n", r.Player, percent(r.Success()),
			float64(r.Iterations)/float64(n),
			(r.Time / time.Duration(n)).Round(time.Second), float64(r.CostOfSuccess())/1e6, float64(r.Wasted)/1e6,
			percent(r.RightShare()))
	}
	return b.String()
}

// FormatCauses prints what each player reaches against each cause: loops that
// succeed, and what a success costs.
func FormatCauses(rows []Row) string {
	var b strings.Builder
	b.WriteString("| cause |")
	for i := range rows {
		b.WriteString(" " + rows[i].Player + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(rows)) + "\n")
	for at := range rows[0].Causes {
		b.WriteString("| " + rows[0].Causes[at].Player + " |")
		for i := range rows {
			c := &rows[i].Causes[at]
			if c.Curable == 0 {
				fmt.Fprintf(&b, " nothing helps; $%.2f a loop |", float64(c.Cost)/1e6/float64(max(c.Loops, 1)))
				continue
			}
			fmt.Fprintf(&b, " %s, $%.2f |", percent(c.Success()), float64(c.CostOfSuccess())/1e6)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func percent(mille int) string { return fmt.Sprintf("%d.%d %%", mille/10, mille%10) }
