package ending

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/do/engine/lanes"
	"github.com/pawl-dev/pawl/internal/do/engine/runplan"
	"github.com/pawl-dev/pawl/internal/do/gate"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// GateExec is how a gate's job ended.
func GateExec(res supervisor.Result) gate.Exec {
	return gate.Exec{
		ExitCode: res.Exit.Code, Signal: res.Exit.Signal, TimedOut: res.Exit.Ended == loop.EndedTimeout,
		Stopped: res.Exit.Ended == loop.EndedStop || lanes.WasLost(res), NotStarted: res.Error,
		Elapsed: res.Elapsed, Output: res.Stdout.Text(),
	}
}

// ReadGate reads from the folder of an attempt how its gate n, from 1, ended; false
// while it has not.
func ReadGate(dir *os.Root, n int, c runplan.Check) (loop.Gate, bool) {
	var res supervisor.Result
	data, err := dir.ReadFile(fmt.Sprintf("gate-%d.result.json", n))
	if err != nil || json.Unmarshal(data, &res) != nil {
		return loop.Gate{}, false
	}
	s := gate.Spec{Name: c.Name, Required: c.Required, Timeout: c.Timeout, Origin: c.Origin}
	return gate.Judge(s, GateExec(res)), true
}
