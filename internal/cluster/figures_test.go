package cluster_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var figures = flag.Int("figures", 0, "print what a board of so many tasks reaches with 20 workers of 5 slots")

// TestFigures prints how fast many workers work tasks whose agents do next to nothing.
func TestFigures(t *testing.T) {
	const workers, slots = 20, 5
	tasks := *figures
	if tasks < 2 {
		t.Skip("it is for make bench-cluster")
	}
	m := newTeam(t, workers+1, tasks, 2*time.Minute, `
date +%s%N >> $DIR/at
echo done > "done.$(date +%N).$$"
echo "<promise>COMPLETE</promise>"
`)
	for i := 1; i <= workers; i++ {
		m.machines[i].Offer.Slots = slots
		m.machines[i].start(t)
	}
	o, err := m.machines[0].options(t.Context())
	must(t, err)
	o.Settings.MaxParallel = workers * slots
	began := time.Now()
	res, err := m.machines[0].pilot(context.WithoutCancel(t.Context()), o)
	must(t, err)
	took := time.Since(began)
	must(t, o.Store.Close())
	text, err := os.ReadFile(filepath.Join(m.dir, "at"))
	must(t, err)
	var at []int
	for _, line := range strings.Fields(string(text)) {
		n, err := strconv.Atoi(line)
		must(t, err)
		at = append(at, n)
	}
	slices.Sort(at)
	worked := time.Duration(at[len(at)-1] - at[0])
	fmt.Printf("%d workers of %d slots: %d iterations, %.1f a second; %d tasks landed, %.1f a second\n", workers, slots,
		len(at), float64(len(at)-1)/worked.Seconds(), res.Tally.Landed, float64(res.Tally.Landed)/took.Seconds())
	if res.Tally.Landed != tasks || len(at) != tasks {
		t.Errorf("of %d tasks %d landed after %d iterations", tasks, res.Tally.Landed, len(at))
	}
}
