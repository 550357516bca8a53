package planner

// Flags are the flags of a run; "" is not given. They are kept with the run, so that a
// resume starts from them.
type Flags struct {
	Max        string   `json:"max_iterations,omitempty"`
	Safety     string   `json:"safety,omitempty"`
	Timeout    string   `json:"timeout,omitempty"`
	Strategy   string   `json:"strategy,omitempty"`
	Checkpoint string   `json:"checkpoint_interval,omitempty"`
	MaxCost    string   `json:"max_cost,omitempty"`
	Agent      string   `json:"agent,omitempty"`
	AgentCmd   string   `json:"agent_cmd,omitempty"`
	Context    []string `json:"context,omitempty"`
	// Work is what a procedure is to do, in words. It is a run's own: newer flags do not change it.
	Work string `json:"work,omitempty"`
	// File is a workflow's, absolute; Iterate goes over it until it is done.
	File    string `json:"file,omitempty"`
	Iterate bool   `json:"iterate,omitempty"`
	// Unsandboxed is said anew with each start and resume, or it does not hold.
	Unsandboxed bool `json:"-"`
}

// Paths are the configuration keys that the flags set.
func (f Flags) Paths() map[string]string {
	m := map[string]string{}
	for path, v := range map[string]string{
		"loop.max_iterations": f.Max, "loop.safety": f.Safety, "loop.timeout": f.Timeout, "loop.strategy": f.Strategy,
		"loop.checkpoint_interval": f.Checkpoint, "loop.max_cost": f.MaxCost, "agent": f.Agent,
	} {
		if v != "" {
			m[path] = v
		}
	}
	return m
}

// Merge takes newer flags over older ones.
func (f Flags) Merge(newer Flags) Flags {
	for _, p := range []struct{ old, now *string }{
		{&f.Max, &newer.Max}, {&f.Safety, &newer.Safety}, {&f.Timeout, &newer.Timeout}, {&f.Strategy, &newer.Strategy},
		{&f.Checkpoint, &newer.Checkpoint}, {&f.MaxCost, &newer.MaxCost}, {&f.Agent, &newer.Agent},
		{&f.AgentCmd, &newer.AgentCmd},
	} {
		if *p.now != "" {
			*p.old = *p.now
		}
	}
	f.Unsandboxed = newer.Unsandboxed
	f.Iterate = f.Iterate || newer.Iterate
	if len(newer.Context) > 0 {
		f.Context = newer.Context
	}
	return f
}

// Raises is true when a limit is named.
func (f Flags) Raises() bool { return f.Max != "" || f.MaxCost != "" || f.Timeout != "" }

// Limits are the limits alone.
func (f Flags) Limits() Flags {
	return Flags{Max: f.Max, MaxCost: f.MaxCost, Timeout: f.Timeout}
}
