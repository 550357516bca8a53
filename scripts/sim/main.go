// Command sim plays loops against simulated worlds and prints what each
// selector of strategies reaches (internal/simulate).  go run ./scripts/sim
//
// With -board it plays a whole board at work instead, and holds it to its laws
// (internal/simulate/fleet); a law that is broken is told as a story, exit 1.
package main

import (
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/pawl-dev/pawl/internal/simulate"
	"github.com/pawl-dev/pawl/internal/simulate/fleet"
)

func main() {
	loops := flag.Int("loops", 100_000, "loops of each selector in each set of worlds")
	seed := flag.Uint64("seed", 1, "the same seed gives the same table")
	board := flag.Bool("board", false, "play a board at work, with crashes, conflicts and late people")
	tasks := flag.Int("tasks", 100_000, "tasks of the board")
	agents := flag.Int("agents", 1000, "agents at once")
	seeds := flag.Int("seeds", 1, "boards to play, from -seed on")
	flag.Parse()
	if *board {
		for n := range *seeds {
			work(fleet.Options{Seed: *seed + uint64(n), Tasks: *tasks, Agents: *agents}) //nolint:gosec // not negative
		}
		return
	}
	show("Worlds that the strategies were tuned with", simulate.Table(*loops, *seed, false))
	show("Worlds that nothing was tuned with", simulate.Table(*loops, *seed, true))
}

func show(title string, rows []simulate.Row) {
	fmt.Printf("%s, %d loops for each selector:\n\n%s\n%s\n", title, rows[0].Loops, simulate.Format(rows), simulate.FormatCauses(rows))
}

// work plays one board and says what came of it.
func work(o fleet.Options) {
	began := time.Now()
	r, broken := fleet.Play(o)
	took := time.Since(began)
	if broken != nil {
		fmt.Println(fleet.Explain(broken).Tell())
		os.Exit(1)
	}
	fmt.Printf("seed %d: %d tasks, %d agents: all laws hold over %d events in %s (%.1f million a minute)\n",
		o.Seed, o.Tasks, o.Agents, r.Events, took.Round(time.Millisecond), float64(r.Events)/took.Minutes()/1e6)
	fmt.Printf("  %s of work: %d iterations, %d waits for the provider, %d moves on the board, %d sessions, %d deeds of people\n",
		r.Time.Round(time.Hour), r.Iterations, r.Waits, r.Board, r.Sessions, r.Deeds)
	fmt.Printf("  %d landings in %d batches, %d red verdicts, %d conflicts; the target was moved by others %d times, %d of them rewritten\n",
		r.Landings, r.Batches, r.Reds, r.Conflicts, r.Moved, r.Rewritten)
	fmt.Printf("  pawl was killed %d times: %d runs were adopted, %d iterations lost; at most %d agents at once, %d in the queue, %d passed over; the clock was set %d times\n",
		r.Crashes, r.Adopted, r.Lost, r.MostLive, r.MostQueued, r.MostPassed, r.ClocksSet)
}
