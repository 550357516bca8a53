// Package agents is the table of the coding agents and stream formats that
// pawl knows. It is data: what an agent is like is in its own package, and
// nothing is started or looked up on the machine here.
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
	"claude": func() agent.Adapter { return claude.Adapter{Root: os.Geteuid() == 0, Getenv: os.Getenv} },
	"script": func() agent.Adapter { return script.Adapter{Executable: os.Executable} },

	"codex": func() agent.Adapter {
		return codex.Adapter{Getenv: os.Getenv, Native: program.Beside(exec.LookPath, codex.Binaries()...)}
	},
	"gemini":   func() agent.Adapter { return gemini.Adapter{Getenv: os.Getenv} },
	"kilo":     func() agent.Adapter { return opencode.NewKilo() },
	"opencode": func() agent.Adapter { return opencode.New() },

	"aider": known(aider.Program),
	"amp":   known(amp.Program),
	"cline": known(cline.Program),
	"copilot": func() agent.Adapter {
		return program.Adapter{Program: copilot.Program(), Getenv: os.Getenv, Native: program.Beside(exec.LookPath, copilot.Binaries()...)}
	},
	"crush":  known(plain.Crush),
	"cursor": known(cursor.Program),
	"droid":  known(droid.Program),
	"goose":  known(goose.Program),
	"kiro":   known(plain.Kiro),
	"qwen":   known(qwen.Program),
}

// known is the adapter of a program that is data.
func known(p func() program.Program) func() agent.Adapter {
	return func() agent.Adapter { return program.Adapter{Program: p(), Getenv: os.Getenv} }
}

// format is one stream format.
type format struct {
	parser func(ParserOptions) agent.Parser
	traits command.Traits
	prompt bool // the parser cuts the prompt's echo off
}

var formats = map[string]format{
	"text": {
		parser: func(o ParserOptions) agent.Parser { return text.New(o.Prompt) }, prompt: true,
	},
	"acp": {
		parser: func(ParserOptions) agent.Parser { return acp.NewParser() },
		traits: command.Traits{Structured: true},
	},
	"claude": {
		parser: func(ParserOptions) agent.Parser { return claude.NewParser() },
		traits: command.Traits{Structured: true},
	},
	"aider": {
		parser: func(o ParserOptions) agent.Parser { return aider.NewParser(o.Prompt) }, prompt: true,
		traits: command.Traits{LiveUsage: true},
	},
	"amp":      {parser: func(ParserOptions) agent.Parser { return amp.NewParser() }, traits: command.Traits{Structured: true, LiveUsage: true}},
	"cline":    {parser: func(ParserOptions) agent.Parser { return cline.NewParser() }, traits: command.Traits{Structured: true, LiveUsage: true}},
	"codex":    {parser: func(ParserOptions) agent.Parser { return codex.NewParser() }, traits: command.Traits{Structured: true}},
	"copilot":  {parser: func(ParserOptions) agent.Parser { return copilot.NewParser() }, traits: command.Traits{Structured: true}},
	"cursor":   {parser: func(ParserOptions) agent.Parser { return cursor.NewParser() }, traits: command.Traits{Structured: true}},
	"droid":    {parser: func(ParserOptions) agent.Parser { return droid.NewParser() }, traits: command.Traits{Structured: true}},
	"gemini":   {parser: func(ParserOptions) agent.Parser { return gemini.NewParser() }, traits: command.Traits{Structured: true}},
	"goose":    {parser: func(ParserOptions) agent.Parser { return goose.NewParser() }, traits: command.Traits{Structured: true}},
	"opencode": {parser: func(ParserOptions) agent.Parser { return opencode.NewParser() }, traits: command.Traits{Structured: true, LiveUsage: true}},
	"qwen":     {parser: func(ParserOptions) agent.Parser { return qwen.NewParser() }, traits: command.Traits{Structured: true, LiveUsage: true}},
	"script": {
		parser: func(ParserOptions) agent.Parser { return script.NewParser() },
		traits: command.Traits{Structured: true, LiveUsage: true},
	},
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
