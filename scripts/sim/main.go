// Command sim plays loops against simulated worlds and prints what each
// selector of strategies reaches (internal/test/simulate).  go run ./scripts/sim
//
// With -board it plays a whole board at work instead, and holds it to its laws
// (internal/test/simulate/fleet); a law that is broken is told as a story, exit 1.
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/pawl-dev/pawl/internal/test/simulate"
	"github.com/pawl-dev/pawl/internal/test/simulate/fleet"
)

func main() {
	loops := flag.Int("loops", 100_000, "loops of each selector in each set of worlds")
	seed := flag.Uint64("seed", 1, "the same seed gives the same table")
	board := flag.Bool("board", false, "play a board at work, with crashes, conflicts and late people")
	tasks := flag.Int("tasks", 2000, "tasks of the board")
	agents := flag.Int("agents", 100, "agents at once")
	seeds := flag.Int("seeds", 10, "boards to play, from -seed on")
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
	fmt.Printf("seed %d: %d tasks, %d agents: all laws hold, in %s\n", o.Seed, o.Tasks, o.Agents, took.Round(time.Millisecond))
	for _, what := range slices.Sorted(maps.Keys(r)) {
		fmt.Printf("  %7d %s\n", r[what], what)
	}
}
