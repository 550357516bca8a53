package config

import (
	"fmt"
	"strings"
	"testing"
)

// thousandSteps is a workflow in layers of ten, each step needing two of the
// layer before and using their results.
func thousandSteps() []byte {
	var b strings.Builder
	b.WriteString("name: thousand\nsteps:\n")
	for i := range 1000 {
		fmt.Fprintf(&b, "  - id: s%d\n    run: echo \"step %d\"\n", i, i)
		if a, z := i/10*10-2-i%8, i/10*10-1; i >= 10 {
			fmt.Fprintf(&b, "    needs: [s%d, s%d]\n    if: steps.s%d.outcome == 'success' && !cancelled()\n    env: {IN: \"${{ steps.s%d.output }}\"}\n",
				a, z, a, z)
		}
		b.WriteString("    timeout: 30s\n    retry: 2\n")
	}
	return []byte(b.String())
}

// BenchmarkWorkflow reads and plans 1,000 steps with their expressions.
func BenchmarkWorkflow(b *testing.B) {
	data := thousandSteps()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseWorkflow("w.yaml", data); err != nil {
			b.Fatal(err)
		}
	}
}
