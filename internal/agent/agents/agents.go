// Package agents is the table of the coding agents and stream formats that
// pawl knows. It is data: what an agent is like is in its own package, and
// nothing is started or looked up on the machine here.
//
// A program has a row in builtin, reached, folders and ownVariables, and a stream
// of its own one in formats and marks. No test fails without folders and
// ownVariables, but then the program's login is not hidden from other agents, and
// it does not get its own variables.
package agents

import (
	"fmt"
	"os"
	"os/exec"
	"sort"
	"strings"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/acp"
	"github.com/pawl-dev/pawl/internal/agent/aider"
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

// builtin makes the adapters of the agents that pawl knows by name.
var builtin = map[string]func() agent.Adapter{
	"aider":    known(aider.Program),
	"amp":      known(amp.Program),
	"claude":   known(func() program.Program { return claude.Program(os.Geteuid() == 0) }),
	"cline":    known(cline.Program),
	"codex":    known(codex.Program),
	"copilot":  known(copilot.Program),
	"crush":    known(plain.Crush),
	"cursor":   known(cursor.Program),
	"droid":    known(droid.Program),
	"gemini":   known(gemini.Program),
	"goose":    known(goose.Program),
	"kilo":     known(opencode.Kilo),
	"kiro":     known(plain.Kiro),
	"opencode": known(opencode.Program),
	"qwen":     known(qwen.Program),
	"script":   func() agent.Adapter { return script.Adapter{Executable: os.Executable} },
}

// known is the adapter of a program that is data.
func known(data func() program.Program) func() agent.Adapter {
	return func() agent.Adapter {
		p := data()
		return program.Adapter{Program: p, Getenv: os.Getenv, Native: program.Beside(exec.LookPath, p.Wrapped...)}
	}
}

// format is one stream format.
type format struct {
	parser func(ParserOptions) agent.Parser
	traits command.Traits
	prompt bool // the parser cuts the prompt's echo off
}

var (
	whole = command.Traits{Structured: true}                  // a stream with an end of its own
	live  = command.Traits{Structured: true, LiveUsage: true} // and with tokens before it
)

var formats = map[string]format{
	"acp":      jsonLines(acp.NewParser, whole),
	"amp":      jsonLines(amp.NewParser, live),
	"claude":   jsonLines(claude.NewParser, whole),
	"cline":    jsonLines(cline.NewParser, live),
	"codex":    jsonLines(codex.NewParser, whole),
	"copilot":  jsonLines(copilot.NewParser, whole),
	"cursor":   jsonLines(cursor.NewParser, whole),
	"droid":    jsonLines(droid.NewParser, whole),
	"gemini":   jsonLines(gemini.NewParser, whole),
	"goose":    jsonLines(goose.NewParser, whole),
	"opencode": jsonLines(opencode.NewParser, live),
	"qwen":     jsonLines(qwen.NewParser, live),
	"script":   jsonLines(script.NewParser, live),

	"text": {parser: func(o ParserOptions) agent.Parser { return text.New(o.Prompt) }, prompt: true},
	"aider": {parser: func(o ParserOptions) agent.Parser { return aider.NewParser(o.Prompt) }, prompt: true,
		traits: command.Traits{LiveUsage: true}},
}

// jsonLines is a format whose parser needs nothing but the stream.
func jsonLines[P agent.Parser](parser func() P, traits command.Traits) format {
	return format{parser: func(ParserOptions) agent.Parser { return parser() }, traits: traits}
}

// Lookup returns the built-in agent of that name.
func Lookup(name string) (agent.Adapter, bool) {
	build, ok := builtin[name]
	if !ok {
		return nil, false
	}
	return build(), true
}

// Custom returns the agent of a user's own command line, whose output is
// read by the named parser; "" is text.
func Custom(name string, argv []string, output string) (agent.Adapter, error) {
	if output == "" {
		output = "text"
	}
	f, ok := formats[output]
	if !ok {
		return nil, unknownFormat(output)
	}
	if output == "acp" {
		return acp.New(name, argv, os.Executable), nil
	}
	return command.New(name, argv, output, f.traits), nil
}

// Parser returns a fresh parser of the named stream format, for one run.
func Parser(name string, opts ParserOptions) (agent.Parser, error) {
	f, ok := formats[name]
	if !ok {
		return nil, unknownFormat(name)
	}
	return &sniffer{Parser: f.parser(opts), format: name}, nil
}

// ReadsPrompt is true for a format whose parser needs ParserOptions.Prompt.
func ReadsPrompt(name string) bool { return formats[name].prompt }

// Names are the built-in agents, sorted.
func Names() []string { return keys(builtin) }

// Formats are the stream formats, sorted.
func Formats() []string { return keys(formats) }

func unknownFormat(name string) error {
	return fmt.Errorf("cannot read agent output as %q: use one of %s", name, strings.Join(Formats(), ", "))
}

func keys[V any](m map[string]V) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
