package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/keep/files"
)

// This file has the tools of an agent that loops by itself: it asks before each
// iteration, and pawl's guards say whether there is one more.
//
//	iteration_start     {taskId, maxIterations, …}  begins, or says where it was left
//	iteration_validate  {taskId, passed, flags}     records what its checks said
//	iteration_next      {taskId}                    may the next one begin? a refusal stays
//	iteration_complete  {taskId, completionPromise} the last checks must have passed

// The most that is kept of a task's iterations; thresholds are those of documents and
// of `pawl check --history`.
const (
	maxHistory   = 1000
	maxFlags     = 100
	maxText      = 4000 // bytes
	shownHistory = 20

	defaultBreaker   = 3
	defaultThrashing = 5
)

// iterations are the loops of agents, one file a task.
type iterations struct{ dir string }

// taskRef names the task in each call.
type taskRef struct {
	TaskID string `json:"taskId" jsonschema:"the task that is iterated on; any name"`
}

// iterationConfig is how far a loop may go.
type iterationConfig struct {
	MaxIterations           int      `json:"maxIterations" jsonschema:"the highest number that an iteration may have"`
	CompletionPromises      []string `json:"completionPromises,omitempty" jsonschema:"what iteration_complete accepts; any text when left out"`
	ValidationRules         []any    `json:"validationRules,omitempty" jsonschema:"kept for you, and given back by iteration_next"`
	CircuitBreakerThreshold *int     `json:"circuitBreakerThreshold,omitempty" jsonschema:"failed validations in a row that end the loop; 3 when left out, 0 is off"`
}

// validation is what the checks of an iteration said.
type validation struct {
	Passed bool   `json:"passed" jsonschema:"all checks passed"`
	Flags  []flag `json:"flags,omitempty" jsonschema:"what was found"`
}

type flag struct {
	RuleID   string `json:"ruleId,omitempty"`
	Message  string `json:"message" jsonschema:"what is wrong; name a file as file: PATH"`
	Severity string `json:"severity,omitempty"`
}

type historyEntry struct {
	Iteration        int        `json:"iteration"`
	ValidationResult validation `json:"validationResult"`
}

// iterationState is what is stored of a task. Names of fields stay.
type iterationState struct {
	taskRef
	iterationConfig
	IterationNumber int            `json:"iterationNumber"`
	Validated       bool           `json:"validated,omitempty"` // the current one is in History
	History         []historyEntry `json:"history,omitempty"`
	Completed       string         `json:"completed,omitempty"` // the promise
}

// iterationAnswer is what each of the tools answers.
type iterationAnswer struct {
	Continue           bool           `json:"continue" jsonschema:"work on iteration iterationNumber; false: stop"`
	BlockedBy          string         `json:"blockedBy,omitempty" jsonschema:"the guard that says no"`
	Message            string         `json:"message,omitempty"`
	IterationNumber    int            `json:"iterationNumber"`
	MaxIterations      int            `json:"maxIterations"`
	CompletionPromises []string       `json:"completionPromises,omitempty"`
	ValidationRules    []any          `json:"validationRules,omitempty"`
	History            []historyEntry `json:"history,omitempty" jsonschema:"the last iterations, oldest first"`
}

type startIn struct {
	taskRef
	iterationConfig
	Fresh bool `json:"fresh,omitempty" jsonschema:"forget an earlier loop on this task; only when a person has asked for it"`
}

type validateIn struct {
	taskRef
	validation
}

type completeIn struct {
	taskRef
	CompletionPromise string `json:"completionPromise" jsonschema:"one of completionPromises, as it was given"`
}

func addIterations(s *mcp.Server, stateDir string) {
	t := iterations{filepath.Join(stateDir, "iterations")}
	no := false
	tool := func(name, text string) *mcp.Tool {
		return &mcp.Tool{Name: name, Description: text,
			Annotations: &mcp.ToolAnnotations{DestructiveHint: &no, OpenWorldHint: &no}}
	}
	mcp.AddTool(s, tool("iteration_start", "Start a bounded loop on a task, or learn where it was left. "+
		"Then work, validate, and ask iteration_next before each further iteration."), toolHandler(t.startLoop))
	mcp.AddTool(s, tool("iteration_validate", "Record what the checks said about the current iteration."),
		toolHandler(t.recordValidation))
	mcp.AddTool(s, tool("iteration_next", "Ask whether the next iteration may start. continue false is final: stop, "+
		"and tell the person why. An iteration that was not validated counts as failed."), toolHandler(t.nextIteration))
	mcp.AddTool(s, tool("iteration_complete", "Say that the task is done. It is refused unless the last "+
		"validation passed."), toolHandler(t.completeLoop))
}

// toolHandler makes a tool of what it does.
func toolHandler[In any](do func(context.Context, In) (iterationAnswer, error),
) mcp.ToolHandlerFor[In, iterationAnswer] {
	return func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, iterationAnswer, error) {
		a, err := do(ctx, in)
		return nil, a, err
	}
}

func (t iterations) startLoop(ctx context.Context, in startIn) (iterationAnswer, error) {
	if in.MaxIterations < 1 {
		return iterationAnswer{}, errors.New("maxIterations must be at least 1")
	}
	return t.withState(ctx, in.TaskID, func(s *iterationState) (iterationAnswer, error) {
		if s.IterationNumber > 0 && !in.Fresh {
			a := s.answerNow()
			if a.Continue {
				a.Message = fmt.Sprintf("This loop was started before, and keeps its limits: it is at iteration %d.",
					s.IterationNumber)
			}
			return a, nil
		}
		*s = iterationState{taskRef: in.taskRef, iterationConfig: in.iterationConfig, IterationNumber: 1}
		return s.answerNow(), nil
	})
}

func (t iterations) recordValidation(ctx context.Context, in validateIn) (iterationAnswer, error) {
	return t.withBegun(ctx, in.TaskID, func(s *iterationState) (iterationAnswer, error) {
		in.Flags = in.Flags[:min(len(in.Flags), maxFlags)]
		for i := range in.Flags {
			in.Flags[i].Message = strings.ToValidUTF8(in.Flags[i].Message[:min(len(in.Flags[i].Message), maxText)], "")
		}
		s.recordResult(in.validation)
		return s.answerNow(), nil
	})
}

func (t iterations) nextIteration(ctx context.Context, in taskRef) (iterationAnswer, error) {
	return t.withBegun(ctx, in.TaskID, func(s *iterationState) (iterationAnswer, error) {
		if !s.Validated {
			s.recordResult(validation{Flags: []flag{{Message: "it was not validated"}}})
		}
		if a := s.answerNow(); !a.Continue {
			return a, nil
		}
		s.IterationNumber, s.Validated = s.IterationNumber+1, false
		return s.answerNow(), nil
	})
}

func (t iterations) completeLoop(ctx context.Context, in completeIn) (iterationAnswer, error) {
	return t.withBegun(ctx, in.TaskID, func(s *iterationState) (iterationAnswer, error) {
		n := len(s.History)
		switch {
		case len(s.CompletionPromises) > 0 && !slices.Contains(s.CompletionPromises, in.CompletionPromise):
			return iterationAnswer{}, fmt.Errorf("not complete: completionPromise must be one of %q",
				s.CompletionPromises)
		case !s.Validated || !s.History[n-1].ValidationResult.Passed:
			return iterationAnswer{}, fmt.Errorf("not complete: the last validation of iteration %d has not passed; "+
				"run the checks and call iteration_validate", s.IterationNumber)
		}
		s.Completed = in.CompletionPromise
		return s.answerNow(), nil
	})
}

// recordResult keeps what was said about the current iteration; the last word counts.
func (s *iterationState) recordResult(v validation) {
	if s.Validated {
		s.History = s.History[:len(s.History)-1]
	}
	s.Validated = true
	s.History = append(s.History, historyEntry{s.IterationNumber, v})
	s.History = s.History[max(0, len(s.History)-maxHistory):]
}

// answerNow says how the task is, and whether the guards allow an iteration more.
func (s *iterationState) answerNow() iterationAnswer {
	a := iterationAnswer{Continue: true, IterationNumber: s.IterationNumber, MaxIterations: s.MaxIterations,
		CompletionPromises: s.CompletionPromises, ValidationRules: s.ValidationRules,
		History: s.History[max(0, len(s.History)-shownHistory):]}
	if s.Completed != "" {
		a.Continue, a.Message = false, "The task is complete: "+s.Completed
		return a
	}
	next := s.IterationNumber
	if s.Validated {
		next++
	}
	entries := lists.Each(s.History, func(e historyEntry) loop.Entry {
		messages := lists.Each(e.ValidationResult.Flags, func(f flag) string { return f.Message })
		return loop.Entry{Passed: e.ValidationResult.Passed, Messages: messages}
	})
	limits := loop.Thresholds{Max: s.MaxIterations, Breaker: defaultBreaker, Thrashing: defaultThrashing}
	if s.CircuitBreakerThreshold != nil {
		limits.Breaker = *s.CircuitBreakerThreshold
	}
	if trip, tripped := loop.CheckHistory(next, limits, entries); tripped {
		a.Continue, a.BlockedBy, a.Message = false, trip.Guard, trip.Message
	}
	return a
}

// deed changes what is stored of a task, or refuses to.
type deed func(*iterationState) (iterationAnswer, error)

// withBegun works on a task whose loop has begun and is not complete.
func (t iterations) withBegun(ctx context.Context, task string, do deed) (iterationAnswer, error) {
	return t.withState(ctx, task, func(s *iterationState) (iterationAnswer, error) {
		if s.IterationNumber == 0 {
			return iterationAnswer{}, fmt.Errorf("no loop on %q was started: call iteration_start", task)
		}
		if s.Completed != "" {
			return s.answerNow(), nil
		}
		return do(s)
	})
}

// withState reads the state of a task, changes it and stores it, while other processes wait.
func (t iterations) withState(ctx context.Context, task string, do deed) (a iterationAnswer, err error) {
	if task == "" || len(task) > 200 {
		return a, errors.New("taskId must have 1 to 200 bytes")
	}
	lock, err := files.Lock(ctx, filepath.Join(t.dir, ".lock"))
	if err != nil {
		return a, fmt.Errorf("cannot store iterations: %v", err)
	}
	defer func() { _ = lock.Close() }()
	sum := sha256.Sum256([]byte(task))
	path := filepath.Join(t.dir, hex.EncodeToString(sum[:16])+".json")
	var s iterationState
	data, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return a, fmt.Errorf("cannot read the iterations of %q: %v; remove %s to start over", task, err, path)
	}
	if a, err = do(&s); err != nil {
		return iterationAnswer{}, err
	}
	if data, err = json.Marshal(s); err == nil {
		err = files.Replace(path, data, 0o600, true)
	}
	return a, err
}
