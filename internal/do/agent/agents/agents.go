// Package agents is the table of the coding agents and stream formats that
// pawl knows. It is data: what an agent is like is in its own package, and
// nothing is started or looked up on the machine here.
//
// A program is a folder beside this one, whose program.json says all of how it is started, and a
// word in programs.
package agents

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/decide/lists"
	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/acp"
	"github.com/pawl-dev/pawl/internal/do/agent/amp"
	"github.com/pawl-dev/pawl/internal/do/agent/claude"
	"github.com/pawl-dev/pawl/internal/do/agent/cline"
	"github.com/pawl-dev/pawl/internal/do/agent/codex"
	"github.com/pawl-dev/pawl/internal/do/agent/command"
	"github.com/pawl-dev/pawl/internal/do/agent/copilot"
	"github.com/pawl-dev/pawl/internal/do/agent/cursor"
	"github.com/pawl-dev/pawl/internal/do/agent/droid"
	"github.com/pawl-dev/pawl/internal/do/agent/gemini"
	"github.com/pawl-dev/pawl/internal/do/agent/goose"
	"github.com/pawl-dev/pawl/internal/do/agent/kimi"
	"github.com/pawl-dev/pawl/internal/do/agent/opencode"
	"github.com/pawl-dev/pawl/internal/do/agent/plain"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
	"github.com/pawl-dev/pawl/internal/do/agent/qwen"
	"github.com/pawl-dev/pawl/internal/do/agent/script"
	"github.com/pawl-dev/pawl/internal/do/agent/text"
)

// ParserOptions are a parser's input beside the stream.
type ParserOptions struct {
	// Prompt is the prompt of the agent; a text parser cuts its echo off. nil cuts nothing.
	Prompt []byte
}

// programs are the agent programs that pawl knows by name, in the order in which
// it prefers them.
var programs = []func() program.Program{
	func() program.Program { return claude.Program(os.Geteuid() == 0) },
	codex.Program, opencode.Program, gemini.Program, qwen.Program, copilot.Program, droid.Program, cline.Program,
	kimi.Program, cursor.Program, goose.Program, amp.Program, plain.Aider, plain.Crush, plain.Kiro, opencode.Kilo,
}

// played is the agent of tests and demonstrations, and the format that it prints.
const played = "script"

// Programs are the descriptions of all built-in agents that are programs of their own, read once.
var Programs = sync.OnceValue(func() []program.Program {
	return lists.Each(programs, func(read func() program.Program) program.Program { return read() })
})

// known are the programs by name.
var known = sync.OnceValue(func() map[string]program.Program {
	all := map[string]program.Program{}
	for _, p := range Programs() {
		all[p.Name] = p
	}
	return all
})

// format is a stream format, of a program or none.
type format struct {
	program.Format

	traits agent.Traits
}

// formats are the formats by name: those of programs, and those that any program
// may have.
var formats = sync.OnceValue(func() map[string]format {
	all := map[string]format{
		"acp": {*program.Lines(acp.NewParser), agent.Traits{Structured: true}},
		"text": {program.Format{
			New: func(prompt []byte) agent.Parser { return text.New(prompt) }, EchoCut: true,
		}, agent.Traits{}},
		played: {*program.Lines(script.NewParser), agent.Traits{Structured: true, LiveUsage: true}},
	}
	for _, p := range known() {
		if p.Own != nil {
			all[p.Parser] = format{*p.Own, agent.Traits{Structured: p.Structured, LiveUsage: p.Live}}
		}
	}
	return all
})

// Lookup returns the built-in agent of that name.
func Lookup(name string) (agent.Adapter, bool) {
	if name == played {
		return script.Adapter{Executable: os.Executable}, true
	}
	p, ok := known()[name]
	if !ok {
		return nil, false
	}
	return newAdapter(p), true
}

func newAdapter(p program.Program) program.Adapter {
	return program.Adapter{Program: p, Getenv: os.Getenv, Native: program.Beside(exec.LookPath, p.Wrapped...),
		Found: program.Finally(exec.LookPath)}
}

// Parser returns a fresh parser of the named stream format, for one run.
func Parser(name string, opts ParserOptions) (agent.Parser, error) {
	f, ok := formats()[name]
	if !ok {
		return nil, unknownFormat(name)
	}
	return bounding{f.New(opts.Prompt)}, nil
}

// bounding is a parser that bounds what the program makes it emit.
type bounding struct{ agent.Parser }

// Line takes one line.
func (p bounding) Line(line []byte, cut bool, emit func(agent.Event)) {
	p.Parser.Line(line, cut, func(e agent.Event) { emit(e.Bounded()) })
}

// Record takes one line of the file in which the program notes what it uses.
func (p bounding) Record(line []byte, emit func(agent.Event)) {
	if r, ok := p.Parser.(agent.Recorder); ok {
		r.Record(line, func(e agent.Event) { emit(e.Bounded()) })
	}
}

// Close ends the stream.
func (p bounding) Close(emit func(agent.Event)) {
	p.Parser.Close(func(e agent.Event) { emit(e.Bounded()) })
}

// ReadsPrompt reports whether a format's parser needs ParserOptions.Prompt.
func ReadsPrompt(name string) bool { return formats()[name].EchoCut }

// Names are the built-in agents, sorted.
func Names() []string {
	names := []string{played}
	for name := range known() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Formats are the stream formats, sorted.
func Formats() []string { return slices.Sorted(maps.Keys(formats())) }

func unknownFormat(name string) error {
	return fmt.Errorf("cannot read agent output as %q: use one of %s", name, strings.Join(Formats(), ", "))
}

// HidesUse reports whether an agent's tokens are never known.
func HidesUse(a agent.Adapter) bool {
	of := a.About()
	if !of.Structured || of.Facts == nil {
		return !of.Structured && !of.LiveUsage
	}
	return !of.LiveUsage && of.Tokens == agent.NotKnown
}

// Table is every built-in agent that is a program of its own, sorted by name.
func Table() []agent.About {
	return lists.Pick(Names(), func(name string) (agent.About, bool) {
		a, _ := Lookup(name)
		of := a.About()
		return of, of.Facts != nil
	})
}

// Custom returns the agent of a user's own command line, whose output is
// read by the named parser; "" is text.
//
// A command that prints the format of a known program is that program behind
// another name: it gets the program's flags, unless it has them already.
func Custom(name string, argv []string, output string) (agent.Adapter, error) {
	output = cmp.Or(output, "text")
	f, ok := formats()[output]
	if !ok {
		return nil, unknownFormat(output)
	}
	if output == "acp" {
		return withRoutes(acp.New(name, argv, os.Executable), known()[Program(name, "", argv)]), nil
	}
	p, ok := programOfFormat(name, output)
	switch {
	case !ok:
		return command.New(name, argv, output, f.traits), nil
	case isHeadless(p, argv):
		return withRoutes(command.New(name, argv, output, f.traits), p), nil
	}
	p.Name = name
	return newAdapter(p), nil
}

// programOfFormat returns the program that prints a format: the one of the agent's name where it
// does, else the one that the format is named after.
func programOfFormat(name, format string) (program.Program, bool) {
	if p, ok := known()[name]; ok && p.Parser == format {
		return p, true
	}
	p, ok := known()[format]
	return p, ok && p.Own != nil
}

// isHeadless reports whether a command line makes the program work headless by itself: it has a
// place for the prompt or the model, or a word of pawl's own behind the program's name.
func isHeadless(p program.Program, argv []string) bool {
	own := argv
	for i, word := range argv {
		if path.Base(word) == p.Binary {
			own = argv[i+1:]
		}
	}
	return slices.ContainsFunc(own, func(word string) bool {
		place := strings.Contains(word, "{prompt") || strings.Contains(word, "{model}")
		return place || slices.Contains(p.Args, word)
	})
}

// routed is a user's own command line that runs a known program: variables point
// it at the gateway as they point the program.
type routed struct {
	agent.Adapter

	program program.Adapter
}

// withRoutes returns a with the variables that point p to the gateway. Flags are not pawl's to add.
func withRoutes(a agent.Adapter, p program.Program) agent.Adapter {
	p.Doors = slices.DeleteFunc(slices.Clone(p.Doors), func(d program.Door) bool { return len(d.Args) > 0 })
	if len(p.Doors) == 0 {
		return a
	}
	return routed{a, newAdapter(p)}
}

// Routes returns the routes of the program.
func (r routed) Routes(isolated bool, see func(string) string) (routes []agent.Route, can bool) {
	return r.program.Routes(isolated, see)
}

// Start makes the user's command line.
func (r routed) Start(in agent.Invocation) (agent.Start, error) {
	start, err := r.Adapter.Start(in)
	if err == nil {
		r.program.Point(&start, in)
	}
	return start, err
}
