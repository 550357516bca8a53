package mcp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/files"
)

const instructionsInside = `Pawl works with you on one task. get_task says what it is and which checks judge it.
Say what you came to with complete, ask or blocked, once, as the last thing that you do. Complete is a claim: checks decide.`

// NewInside makes a server for the agent of a run: it tells of its own task, and
// notes in a folder what the agent says. It reaches nothing else.
func NewInside(dir, version string) *Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "pawl", Version: version},
		&mcp.ServerOptions{Instructions: instructionsInside, Capabilities: &mcp.ServerCapabilities{}})
	s.AddReceivingMiddleware(recovered)
	mcp.AddTool(s, &mcp.Tool{Name: "get_task", Annotations: reading(),
		Description: "Your task: title, description, acceptance criteria, and the checks that judge your work."},
		func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, agent.Brief, error) {
			var b agent.Brief
			text, err := files.ReadBelow(dir, agent.BriefFile, 1<<20)
			if err == nil {
				err = json.Unmarshal(text, &b)
			}
			return nil, b, err
		})
	type words struct {
		Text string `json:"text" jsonschema:"in a few sentences"`
	}
	for _, t := range []struct{ name, kind, about string }{
		{"ask", agent.SaysAsk, "Ask a person a question that you cannot go on without. Then end."},
		{"blocked", agent.SaysBlocked, "Say that you cannot do the task, and why. Then end."},
		{"complete", agent.SaysComplete, "Say that the task is done. The checks run then, and decide."},
	} {
		mcp.AddTool(s, &mcp.Tool{Name: t.name, Description: t.about},
			func(_ context.Context, _ *mcp.CallToolRequest, in words) (*mcp.CallToolResult, any, error) {
				return note(dir, agent.Said{Kind: t.kind, Text: in.Text})
			})
	}
	type progress struct {
		Percent int `json:"percent" jsonschema:"how much of the task is done, 0 to 100"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "report_progress", Description: "Say how far you are."},
		func(_ context.Context, _ *mcp.CallToolRequest, in progress) (*mcp.CallToolResult, any, error) {
			return note(dir, agent.Said{Kind: agent.SaysProgress, Percent: in.Percent})
		})
	type followUp struct {
		Title       string `json:"title" jsonschema:"one line"`
		Description string `json:"description,omitempty"`
	}
	mcp.AddTool(s, &mcp.Tool{Name: "add_follow_up_task",
		Description: "Propose a task for later that is not part of yours. A person decides whether it is done."},
		func(_ context.Context, _ *mcp.CallToolRequest, in followUp) (*mcp.CallToolResult, any, error) {
			return note(dir, agent.Said{Kind: agent.SaysFollowUp, Title: in.Title, Text: in.Description})
		})
	return &Server{s}
}

// note leaves what an agent says for pawl, which reads it when the agent has ended.
func note(dir string, s agent.Said) (*mcp.CallToolResult, any, error) {
	line, err := json.Marshal(s)
	if err != nil {
		return nil, nil, err
	}
	if len(line) > maxNote {
		return nil, nil, fmt.Errorf("that is too long: at most %d bytes", maxNote)
	}
	if err := files.AppendBelow(dir, agent.SaidFile, append(line, '\n'), agent.SaidLimit-maxNote-1); err != nil {
		return nil, nil, fmt.Errorf("it was not noted: %v", err)
	}
	return said("Noted. Pawl reads it when you have ended.", false), nil, nil
}

// maxNote is the most bytes of one thing that an agent says.
const maxNote = 8 << 10
