// Command sim plays loops against simulated worlds and prints what each
// selector of strategies reaches (internal/simulate).  go run ./scripts/sim
package main

import (
	"flag"
	"fmt"

	"github.com/pawl-dev/pawl/internal/simulate"
)

func main() {
	loops := flag.Int("loops", 100_000, "loops of each selector in each set of worlds")
	seed := flag.Uint64("seed", 1, "the same seed gives the same table")
	flag.Parse()
	show("Worlds that the strategies were tuned with", simulate.Table(*loops, *seed, false))
	show("Worlds that nothing was tuned with", simulate.Table(*loops, *seed, true))
}

func show(title string, rows []simulate.Row) {
	fmt.Printf("%s, %d loops for each selector:\n\n%s\n%s\n", title, rows[0].Loops, simulate.Format(rows), simulate.FormatCauses(rows))
}
