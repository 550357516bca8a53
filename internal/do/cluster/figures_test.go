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

	"go.temporal.io/api/workflowservice/v1"

	"github.com/pawl-dev/pawl/internal/do/cluster"
)

var (
	figures       = flag.Int("figures", 0, "print what a board of so many tasks reaches")
	figureWorkers = flag.Int("figure-workers", 20, "with so many workers")
	figureSlots   = flag.Int("figure-slots", 5, "of so many slots")
)

// TestFigures prints how fast many workers work tasks whose agents do next to nothing.
func TestFigures(t *testing.T) {
	const iterations = 8
	tasks, workers, slots := *figures, *figureWorkers, *figureSlots
	if tasks < 2 {
		t.Skip("it is for make bench-cluster")
	}
	m := newTeam(t, workers+1, tasks, 2*time.Minute, `
date +%s%N >> $DIR/at
echo "$PWD $(date +%s%N)" >> $DIR/began
if [ "$PAWL_ITERATION" -lt 8 ]; then
	exit 0
fi
echo done > "done.$(date +%N).$$"
echo "$PWD $(date +%s%N)" >> $DIR/freed
echo "<promise>COMPLETE</promise>"
`)
	m.countPushes()
	var most []int // kB of memory
	var processes []int
	for i := 1; i <= workers; i++ {
		m.machines[i].Offer.Slots = slots
		processes = append(processes, m.machines[i].start(t).Process.Pid)
	}
	o, err := m.machines[0].options(t.Context())
	must(t, err)
	o.Settings.MaxParallel = workers * slots
	before := m.stored()
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
	if slots == 1 {
		fmt.Printf("a slot that a task has left: %v until its next agent (median of %d)\n", m.freed(), tasks-workers)
	}
	for _, pid := range processes {
		most = append(most, peak(t, pid))
	}
	slices.Sort(most)
	after := m.stored()
	fmt.Printf("a task: %.0f transactions, %.1f kB in the database, %.1f kB of its log\n", per(after[0]-before[0], tasks),
		per(after[1]-before[1], tasks)/1e3, per(after[2]-before[2], tasks)/1e3)
	events, bytes := m.histories(tasks)
	text, err = os.ReadFile(filepath.Join(m.dir, "pushes"))
	must(t, err)
	fmt.Printf("a task: %.1f events and %.1f kB in the engine, %.1f refs pushed; a worker: at most %d MB of memory\n",
		per(events, tasks), per(bytes, tasks)/1e3, per(strings.Count(string(text), "\n"), tasks), most[len(most)/2]/1e3)
	if res.Tally.Landed != tasks || len(at) != tasks*iterations {
		t.Errorf("of %d tasks %d landed after %d iterations", tasks, res.Tally.Landed, len(at))
	}
}

// freed is the median time from the last agent of a task to the next agent on the same machine.
func (m *team) freed() time.Duration {
	m.t.Helper()
	read := func(name string) map[string][]int {
		text, err := os.ReadFile(filepath.Join(m.dir, name))
		must(m.t, err)
		times := map[string][]int{}
		for line := range strings.Lines(string(text)) {
			var dir string
			var at int
			_, err := fmt.Sscan(line, &dir, &at)
			must(m.t, err)
			for _, s := range m.machines {
				if strings.HasPrefix(dir, s.State+"/") {
					times[s.State] = append(times[s.State], at)
				}
			}
		}
		return times
	}
	began := read("began")
	var gaps []int
	for state, ends := range read("freed") {
		for _, end := range ends {
			if n := slices.IndexFunc(began[state], func(at int) bool { return at > end }); n >= 0 {
				gaps = append(gaps, began[state][n]-end)
			}
		}
	}
	slices.Sort(gaps)
	return time.Duration(gaps[len(gaps)/2]).Round(time.Millisecond)
}

func per(n, tasks int) float64 { return float64(n) / float64(tasks) }

// stored are the transactions of the database, its bytes, and those that its log has had.
func (m *team) stored() (n [3]int) {
	m.t.Helper()
	_, name, _ := strings.Cut(m.machines[0].Store, "@/")
	name, _, _ = strings.Cut(name, "?")
	text := m.database.SQL(m.t, name, `SELECT xact_commit + xact_rollback, pg_database_size(datname),
		(pg_current_wal_lsn() - '0/0')::bigint FROM pg_stat_database WHERE datname = current_database()`)
	_, err := fmt.Sscanf(strings.ReplaceAll(strings.TrimSpace(text), "|", " "), "%d %d %d", &n[0], &n[1], &n[2])
	must(m.t, err)
	return n
}

// histories are the events and bytes that the engine keeps of all tasks.
func (m *team) histories(tasks int) (events, bytes int) {
	m.t.Helper()
	c, err := cluster.Dial(m.t.Context(), m.machines[0].at(), nil)
	must(m.t, err)
	defer c.Close()
	all, err := c.ListWorkflow(m.t.Context(), &workflowservice.ListWorkflowExecutionsRequest{PageSize: int32(tasks)}) //nolint:gosec // few
	must(m.t, err)
	for _, w := range all.GetExecutions() {
		events += int(w.GetHistoryLength())
		bytes += int(w.GetHistorySizeBytes())
	}
	return events, bytes
}

// peak is the most memory that a process has had, in kB; 0 where that cannot be read.
func peak(t *testing.T, pid int) (kb int) {
	t.Helper()
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	_, value, _ := strings.Cut(string(text), "VmHWM:")
	_, _ = fmt.Sscan(value, &kb)
	return kb
}
