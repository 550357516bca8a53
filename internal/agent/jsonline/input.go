package jsonline

import (
	"math"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/loop"
)

const (
	maxPath = 4096      // of a file's name, in bytes
	maxUSD  = 1_000_000 // beyond what one run can cost
)

// Input adds what the input of a tool's call says by the usual names: the
// command that it runs (of several, a line each), and the files that it
// touches.
func Input(e *agent.Event, input []byte) {
	Object(input, func(key, v []byte) bool {
		switch string(key) {
		case "command":
			e.Command = Short(v, agent.CommandCap)
		case "commands":
			var all []string
			size := 0
			Array(v, func(one []byte) bool {
				all = append(all, Short(one, agent.CommandCap-size))
				size += len(all[len(all)-1]) + 1
				return size < agent.CommandCap
			})
			e.Command = strings.Join(all, "\n")
		case "path", "file_path", "filePath":
			if path := Short(v, maxPath); path != "" {
				e.Files = append(e.Files, path)
			}
		}
		return true
	})
}

// Cost reads an amount in USD. It returns false for what cannot be one: null,
// no number, less than nothing, more than a million.
func Cost(b []byte) (loop.MicroUSD, bool) {
	if len(b) == 0 || b[0] < '0' || b[0] > '9' {
		return 0, false
	}
	usd := Float(b)
	if usd > maxUSD {
		return 0, false
	}
	return loop.MicroUSD(math.Round(usd * 1e6)), true
}
