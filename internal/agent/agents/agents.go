// Package agents is the table of the coding agents and stream formats that
// pawl knows. It is data: what an agent is like is in its own package, and
// nothing is started or looked up on the machine here.
//
// A program is a folder beside this one, whose Program says all that pawl knows of
// it, and a word in programs.
package agents

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/acp"
	"github.com/pawl-dev/pawl/internal/agent/amp"
	"github.com/pawl-dev/pawl/internal/agent/claude"
	"github.com/pawl-dev/pawl/internal/agent/cline"
	"github.com/pawl-dev/pawl/internal/agent/codex"
	"github.com/pawl-dev/pawl/internal/agent/command"
	"github.com/pawl-dev/pawl/internal/agent/copilot"
	"github.com/pawl-dev/pawl/internal/agent/cursor"
	"github.com/pawl-dev/pawl/internal/agent/droid"
	"github.com/pawl-dev/pawl/internal/agent/gemini"
	"github.com/pawl-dev/pawl/internal/agent/goose"
	"github.com/pawl-dev/pawl/internal/agent/kimi"
	"github.com/pawl-dev/pawl/internal/agent/opencode"
	"github.com/pawl-dev/pawl/internal/agent/plain"
	"github.com/pawl-dev/pawl/internal/agent/program"
	"github.com/pawl-dev/pawl/internal/agent/qwen"
	"github.com/pawl-dev/pawl/internal/agent/script"
	"github.com/pawl-dev/pawl/internal/agent/text"
)

// ParserOptions are what a parser needs beside the stream.
type ParserOptions struct {
	// Prompt is what the agent was told; a text parser cuts its echo off. nil
	// cuts nothing.
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

// Programs are all agent programs that pawl knows, the preferred ones first.
func Programs() []program.Program {
	all := make([]program.Program, len(programs))
	for i, data := range programs {
		all[i] = data()
	}
	return all
}

// known are the programs by name. They are only read.
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

	traits command.Traits
}

// formats are the formats by name: those of programs, and those that any program
// may have.
var formats = sync.OnceValue(func() map[string]format {
	all := map[string]format{
		"acp": {*program.Lines(acp.NewParser), command.Traits{Structured: true}},
		"text": {program.Format{
			New: func(prompt []byte) agent.Parser { return text.New(prompt) }, EchoCut: true,
		}, command.Traits{}},
		played: {*program.Lines(script.NewParser), command.Traits{Structured: true, LiveUsage: true}},
	}
	for _, p := range known() {
		if p.Own != nil {
			all[p.Parser] = format{*p.Own, command.Traits{Structured: p.Structured, LiveUsage: p.Live}}
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
	return adapter(p), true
}

func adapter(p program.Program) program.Adapter {
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

// ReadsPrompt is true for a format whose parser needs ParserOptions.Prompt.
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
