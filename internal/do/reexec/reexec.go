package reexec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/acp"
	"github.com/pawl-dev/pawl/internal/do/agent/agents"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/sandbox"
	"github.com/pawl-dev/pawl/internal/do/supervisor"
)

// Supervise is the command that makes pawl a supervisor.
const Supervise = supervisor.Command

// restBound is how long a supervisor waits for the rest of pawl.
const restBound = 20 * time.Second

// now is the little program that this process is; nil when it is none.
var now *program

// program is a little program while it runs.
type program struct {
	status chan int // its exit status
	ask    sync.Once
	asked  chan struct{}        // closed when it needs the rest
	rest   chan supervisor.Rest // what main hands over; one, and it stays
}

func init() { //nolint:gochecknoinits // the point of this package is to run before the others are initialised
	args := os.Args[1:]
	if len(args) == 1 && args[0] == sandbox.Command {
		// The thread that enters the box executes the command; here it is the first one.
		exitProgram(sandbox.Main(os.Stderr))
	}
	if len(args) < 2 {
		return
	}
	p := &program{status: make(chan int, 1), asked: make(chan struct{}), rest: make(chan supervisor.Rest, 1)}
	main := p.findByName(args)
	if main == nil {
		return
	}
	now = p
	// Not on this goroutine: while packages are initialised it is bound to its
	// thread, and all that it waits for would be a switch of threads.
	go func() { p.status <- main() }()
	select {
	case code := <-p.status:
		exitProgram(code)
	case <-p.asked:
	}
}

// exitProgram ends the program: where a little program runs, nothing else ever does.
func exitProgram(code int) { os.Exit(code) } //nolint:forbidigo // main is not reached

// findByName is the little program of a command line; nil when it names none.
func (p *program) findByName(args []string) func() int {
	switch args[0] {
	case Supervise:
		return func() int { return p.supervise(args[1]) }
	case acp.Command:
		return func() int { return acp.Main(args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()) }
	case script.Command:
		return func() int { return script.Main(args[1:], os.Stdin, os.Stdout, os.Stderr, os.Environ()) }
	}
	return nil
}

// Finish is for main, before anything else: when this process is a little
// program, it hands over what that asked for, waits for its end and returns
// its exit status; else it returns false at once.
func Finish(rest supervisor.Rest) (int, bool) {
	if now == nil {
		return 0, false
	}
	now.rest <- rest
	return <-now.status, true
}

func (p *program) supervise(runDir string) int {
	if err := supervisor.Serve(context.Background(), runDir, parserFor, p.awaitRest); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "pawl: %v\n", err)
		return 1
	}
	return 0
}

// awaitRest is the rest of pawl, which it lets come up.
func (p *program) awaitRest() (supervisor.Rest, error) {
	p.ask.Do(func() { close(p.asked) })
	timer := time.NewTimer(restBound)
	defer timer.Stop()
	select {
	case rest := <-p.rest:
		p.rest <- rest
		return rest, nil
	case <-timer.C:
		return supervisor.Rest{}, errors.New("cannot open the way to the agent's models: the rest of pawl did " +
			"not come up; try again when the machine is less busy")
	}
}

// parserFor makes the parser of a job's stream; a text parser needs to know
// the prompt, whose echo it cuts off.
func parserFor(name string, job supervisor.Job) (agent.Parser, error) {
	var o agents.ParserOptions
	if agents.ReadsPrompt(name) && job.Prompt != "" {
		data, err := os.ReadFile(job.Prompt)
		if err != nil {
			return nil, fmt.Errorf("cannot read the prompt to cut its echo off: %v", err)
		}
		o.Prompt = data
	}
	return agents.Parser(name, o)
}
