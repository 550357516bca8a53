// Package cline runs Cline headless (`cline --json PROMPT`) and reads its
// stream. It starts nothing itself.
//
// What the program does, as pawl relies on it:
//   - The prompt must be an argument, so it is at most 128 KiB; an open stdin
//     hangs it, so that is the null device.
//   - `run_result` ends the stream, with the final text and the run's tokens,
//     whose input counts the cached ones too; `run_aborted` may follow it.
//   - A failure has no HTTP status: only a class, mostly "unknown", and the
//     provider's words. Its retries do not show, and take about a minute.
//   - Waiting for a model it ignores TERM; with a tool running it ends after
//     the tool's 30 s, with exit 0 and a completed result.
//   - A login made by `cline auth` is in the data folder: another folder needs
//     another login, so pawl gives it one only on request.
package cline

import (
	"time"

	"github.com/pawl-dev/pawl/internal/agent"
	"github.com/pawl-dev/pawl/internal/agent/program"
)

// Program is Cline.
func Program() program.Program {
	return program.Program{
		Name: "cline", Binary: "cline",
		Args:   []string{"--json"},
		Allow:  []string{"--auto-approve", "true"},
		Model:  "-m",
		Prompt: program.Argument,
		Env:    []string{"CLINE_NO_AUTO_UPDATE=1", "CLINE_TELEMETRY_DISABLED=1"},
		State:  program.State{Flag: "--data-dir"},
		Doors: []program.Door{
			door(program.ToAnthropic.With("ANTHROPIC_API_KEY"), "anthropic", "/v1"),
			door(program.ToOpenAI, "openai-compatible", ""),
		},
		Pointing: agent.File{Path: "settings/providers.json", Content: `{"version":1,{parts}}`},
		Closed:   []string{"CLINE_API_KEY"},
		Grace:    5 * time.Second,
		Parser:   "cline", Structured: true, Live: true,
		Own:       program.Lines(NewParser),
		Folders:   []string{".cline"},
		Variables: []string{"CLINE_*"},
		Services:  program.Keyed(program.Service{Hosts: []string{"api.cline.bot"}}),
		Install:   "npm install -g cline, then run cline auth",
		Facts: agent.Facts{
			Package: "npm cline", Versions: "3.0.65",
			Tokens: "after each model call", Cost: "reported where the program has a price; else estimated from tokens",
			Problems: []string{
				"The prompt shows in the list of processes.",
				"It tells no HTTP status and no reset time of a limit.",
				"It ignores TERM while it waits for a model, and is killed after the grace.",
				"In a folder of its own (isolate) it needs a key of Anthropic or OpenAI, with which it goes through the gateway, " +
					"or cline auth --data-dir first. With a login or a key of its own it is not metered.",
			},
		},
	}
}

// door is a provider in the program's own settings.
func door(d program.Door, provider, path string) program.Door {
	d.Part = `"lastUsedProvider":"` + provider + `","providers":{"` + provider + `":{"settings":{"provider":"` + provider +
		`","apiKey":"` + agent.GatewayToken + `","model":"{model}","baseUrl":"{url}` + path +
		`"},"updatedAt":"2026-01-01T00:00:00.000Z","tokenSource":"manual"}}`
	return d
}
