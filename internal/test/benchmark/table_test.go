package benchmark

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"
)

// limit is what a figure should keep to.
type limit struct {
	least bool
	value float64
}

func atMost(v float64) *limit  { return &limit{value: v} }
func atLeast(v float64) *limit { return &limit{least: true, value: v} }

// figure is one line of the table; without a limit it explains another.
type figure struct {
	name  string
	value float64
	unit  string
	limit *limit
}

func (f figure) verdict() string {
	switch {
	case f.limit == nil:
		return ""
	case f.limit.least == (f.value >= f.limit.value) || f.value == f.limit.value:
		return "ok"
	}
	return "short"
}

func (f figure) target() string {
	if f.limit == nil {
		return ""
	}
	sign := "≤"
	if f.limit.least {
		sign = "≥"
	}
	return sign + " " + number(f.limit.value) + " " + f.unit
}

// number has three digits that count.
func number(v float64) string {
	switch {
	case v >= 1_000_000:
		return strconv.FormatFloat(v/1_000_000, 'f', 2, 64) + " M"
	case v >= 100 || v == float64(int64(v)):
		return strconv.FormatFloat(v, 'f', 0, 64)
	case v >= 10:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// sheet collects figures in the order in which they are first reported.
type sheet struct {
	mu   sync.Mutex
	rows []figure
}

var figures sheet

// report puts a figure into the table, and into the benchmark's own line.
func report(b *testing.B, name string, value float64, unit string, l *limit) {
	b.Helper()
	b.ReportMetric(value, strings.ReplaceAll(name+"_"+unit, " ", "_"))
	f := figure{name, value, unit, l}
	figures.mu.Lock()
	defer figures.mu.Unlock()
	if i := slices.IndexFunc(figures.rows, func(r figure) bool { return r.name == name }); i >= 0 {
		figures.rows[i] = f
		return
	}
	figures.rows = append(figures.rows, f)
}

func (s *sheet) print(w io.Writer) {
	if len(s.rows) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, "\nfigure\tmeasured (median)\ttarget\t")
	for _, f := range s.rows {
		fmt.Fprintf(t, "%s\t%s %s\t%s\t%s\n", f.name, number(f.value), f.unit, f.target(), f.verdict())
	}
	_ = t.Flush()
}

// median of values, which it sorts.
func median(values []float64) float64 {
	slices.Sort(values)
	n := len(values)
	if n%2 == 1 {
		return values[n/2]
	}
	return (values[n/2-1] + values[n/2]) / 2
}

// cost is what one candidate took in one round.
type cost struct{ wall, cpu time.Duration }

// interleave runs every candidate once in each round, in turn, and returns the
// medians of each in microseconds for one of n.
func interleave(rounds, n int, candidates ...func() cost) (wall, cpu []float64) {
	walls, cpus := make([][]float64, len(candidates)), make([][]float64, len(candidates))
	for range rounds {
		for i, run := range candidates {
			c := run()
			walls[i] = append(walls[i], float64(c.wall.Nanoseconds())/1e3/float64(n))
			cpus[i] = append(cpus[i], float64(c.cpu.Nanoseconds())/1e3/float64(n))
		}
	}
	for i := range candidates {
		wall = append(wall, median(walls[i]))
		cpu = append(cpu, median(cpus[i]))
	}
	return wall, cpu
}

// A figure says ok on its side of the limit and on the limit itself.
func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		f    figure
		want string
	}{
		{figure{value: 2, limit: atMost(2)}, "ok"},
		{figure{value: 1, limit: atMost(2)}, "ok"},
		{figure{value: 2.01, limit: atMost(2)}, "short"},
		{figure{value: 50, limit: atLeast(50)}, "ok"},
		{figure{value: 51, limit: atLeast(50)}, "ok"},
		{figure{value: 49, limit: atLeast(50)}, "short"},
		{figure{value: 49}, ""},
	} {
		if got := c.f.verdict(); got != c.want {
			t.Errorf("%+v: %q, want %q", c.f, got, c.want)
		}
	}
	if m := median([]float64{9, 1, 5}); m != 5 {
		t.Errorf("median of three is %v", m)
	}
	if m := median([]float64{9, 1, 5, 3}); m != 4 {
		t.Errorf("median of four is %v", m)
	}
}
