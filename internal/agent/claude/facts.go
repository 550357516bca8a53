package claude

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
)

// Facts are what was measured.
func (Adapter) Facts() agent.Facts {
	return agent.Facts{
		Program:     "claude",
		Package:     "npm @anthropic-ai/claude-code",
		Versions:    "2.1.328, 2.1.197",
		Format:      "claude",
		Tokens:      "input with each message, output estimated until the end",
		Cost:        "reported at the end, from list prices",
		PromptLimit: maxPrompt,
		Problems: []string{
			"The time of a reset is told only with a subscription's login, not with an API key.",
			"An interrupt may end it with status 0 and no result: such a run counts as cut off.",
			"A stream that breaks is asked for again without streaming, in silence, for up to three minutes.",
			"The shells of its tools are sessions of their own and outlive it when it is killed: pawl ends them.",
			"With Node 20, npm installs 2.1.197 without a word.",
		},
	}
}

// IdleTimeout is nothing special: the start and end of each tool are told, so
// that the silence between is known for what it is.
func (Adapter) IdleTimeout() time.Duration { return 0 }
