package agent

// An agent that has pawl's tools (`pawl mcp --run FOLDER`) finds its task in the
// folder and leaves there what it says by them. All that is in it is the agent's to
// write, so it is read as hostile input.
const (
	BriefFile = "task.json"
	SaidFile  = "said.jsonl"
	SaidLimit = 64 << 10 // bytes that are read of what it says
)

// Brief is what the tools tell an agent of its own work.
type Brief struct {
	ID          string   `json:"id"`
	Title       string   `json:"title"`
	Description string   `json:"description,omitempty"`
	Acceptance  []string `json:"acceptance,omitempty"`
	Gates       []string `json:"gates,omitempty"`
	Iteration   int      `json:"iteration"`
}

// The kinds of what an agent says by a tool.
const (
	SaysProgress = "progress"
	SaysAsk      = "ask"
	SaysBlocked  = "blocked"
	SaysComplete = "complete"
	SaysFollowUp = "follow_up"
)

// Said is one thing that it says.
type Said struct {
	Kind    string `json:"kind"`
	Text    string `json:"text,omitempty"`
	Title   string `json:"title,omitempty"`
	Percent int    `json:"percent,omitempty"`
}
