package agents

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/pawl-dev/pawl/internal/do/agent"
	"github.com/pawl-dev/pawl/internal/do/agent/program"
)

// page is docs/agents.md.
func page() string {
	var b strings.Builder
	b.WriteString(head)
	rows := Table()
	for _, r := range rows {
		fmt.Fprintf(&b, "| [%s](#%s) | `%s` | %s | `%s`%s | %s | %s | %s |\n", r.Name, r.Name, r.Program, cmp.Or(r.Versions, "none"),
			r.Format, ended(r), cmp.Or(r.Tokens, "not known"), cmp.Or(r.Cost, "not known"), size(r.PromptLimit))
	}
	b.WriteString(money)
	for _, p := range Programs() {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", p.Name, withKey(p), withoutGateway(p))
	}
	b.WriteString(scenes)
	for _, r := range rows {
		fmt.Fprintf(&b, "\n## %s\n\nInstall: %s (%s).", r.Name, code(r.Install), r.Package)
		if r.Idle > 0 {
			fmt.Fprintf(&b, " It is silent for long while it works: an idle limit below %v ends good work.", minutes(r.Idle))
		}
		if hosts := Endpoints(r.Name, nil); len(hosts) > 0 {
			fmt.Fprintf(&b, " It calls `%s`.", strings.Join(hosts, "`, `"))
		}
		b.WriteString("\n")
		if len(r.Problems) > 0 {
			b.WriteString("\n")
		}
		for _, p := range r.Problems {
			fmt.Fprintf(&b, "- %s\n", p)
		}
	}
	b.WriteString(tail)
	return b.String()
}

// withKey is how the model calls of a program with a key are counted.
func withKey(p program.Program) string {
	switch {
	case p.Doors == nil:
		return "cannot be pointed at it"
	case p.Pointing.Path != "":
		return "yes, with `isolate: true`"
	}
	return "yes"
}

// withoutGateway is when pawl hears from the program itself what it uses.
func withoutGateway(p program.Program) string {
	switch {
	case p.Live, p.Usage != nil:
		return "after each call"
	case p.Facts.Tokens == agent.NotKnown:
		return "never"
	}
	return "at its end"
}

func ended(r Row) string {
	if r.Structured {
		return ""
	}
	return ", no end of its own"
}

func size(bytes int64) string {
	switch {
	case bytes == 0:
		return "none known"
	case bytes%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", bytes>>20)
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", (bytes+1023)>>10)
}

func minutes(d time.Duration) string { return fmt.Sprintf("%d minutes", int(d/time.Minute)) }

// code marks the command at the start as such; a sentence stays one.
func code(install string) string {
	if !strings.HasPrefix(install, "npm ") {
		return install
	}
	end := len(install)
	if i := strings.IndexAny(install, ",("); i >= 0 {
		end = len(strings.TrimRight(install[:i], " "))
	}
	return "`" + install[:end] + "`" + install[end:]
}

const head = `# Agents

<!-- Made by internal/do/agent/agents from what the adapters say; go test ./internal/do/agent/agents -update writes it. -->

What pawl knows of each agent program. The versions are those that it was checked against: other versions mostly
work, and what is new in a stream is kept and never fatal. ` + "`pawl doctor`" + ` says which of them are on this machine.

A run has ended well when the program exits with 0 and its stream says so; a stream that just stops counts as cut off.
Where a program reports no cost, pawl estimates it from tokens and a table of prices (` + "`prices`" + ` in the configuration), and
a model without a price has an unknown cost.

| agent | program | versions | stream format | tokens | cost | longest prompt |
|---|---|---|---|---|---|---|
`

const money = `
## Money, limits and keys

With a key the program's model calls go through pawl's [gateway](gateway.md). Then every call is counted as the model
sees it, limits of money, tokens and calls hold before the next call, a provider in trouble is seen at once, and the key
is not in the box. Without it (a login, a provider of the program's own, ` + "`gateway.enabled: never`" + `) pawl knows what the
program tells, the program's login is in its box, and a limit of money or tokens holds as this table says:

- **after each call**: the iteration is ended as soon as the call that passes the limit is told.
- **at its end**: an iteration may pass the limit; the run ends after it.
- **never**: only limits on calls, turns and time hold. The cost is unknown, and shown as such.

| agent | through the gateway with a key | without it, tokens are known |
|---|---|---|
`

// scenes is what TestScenes of e2e shows.
const scenes = `
### Seen with the real programs

` + "`make e2e-all`" + ` plays each program through the gateway in fourteen scenes, and prints the calls, tokens and costs that the model's
server saw beside what pawl says: work, a gate that is red first, a rate limit, an overload, a stream that breaks, a bad key, a quota of
hours, a prompt that is too long, a page of a proxy, a refusal, an answer that is cut at its length, an empty one, a limit of money and
a limit of calls. On 2026-11-26, on Linux:

| program | metered by | calls: the server, pawl | limits of money and calls | trouble and answers that are none | key in the box |
|---|---|---|---|---|---|
| claude 2.1.328 | gateway | 35, 35 | hold | seen | no |
| codex 0.169.0 | gateway | 30, 30 | hold | seen | no |
| opencode 1.18.33 | gateway | 123, 123 | hold | seen; a prompt that stays too long ends as turns that repeat | no |
| gemini 0.61.0 | gateway | 33, 33 | hold | seen | no |
| qwen 0.24.4 | gateway | 40, 40 | hold | seen | no |
| copilot 1.0.102 | gateway | 35, 35 | hold | seen | no |
| droid 0.215.0 | gateway, with ` + "`isolate`" + ` | 95, 95 | hold | seen | no |
| cline 3.0.65 | gateway, with ` + "`isolate`" + ` | 37, 37 | hold | seen | no |
| kimi 2.1.0 | gateway | 47, 47 | hold | seen | no |
| kilo 7.7.7 | gateway | 35, 35 | hold | seen | no |

Costs are equal where the provider told its tokens. Of a stream that breaks before that they are an estimate by what came of it:
431 tokens of 440. Of an answer that a limit cuts they are one as well. A login's calls, and those of amp, crush, cursor, goose, aider and kiro, were not played.
`

const tail = `
## Where they call

At the level paranoid an agent reaches its model's endpoint and nothing else. The hosts above are those of the programs
without further settings; a base URL (` + "`ANTHROPIC_BASE_URL`, `OPENAI_BASE_URL`, `GOOGLE_GEMINI_BASE_URL`" + ` and the like) takes their place, a
region of Bedrock or Vertex names its own host, and a program that works with many providers calls those whose keys are
set. What is written in a program's own files is not known: name it in ` + "`agents.NAME.endpoints`" + `, which takes the place of all
this.

## Agents that run in circles

Programs have loops of their own that never end: a model that takes the same turn again and again, calls that overflow
each time, a connection that is tried for ever. Pawl ends such an iteration and says what it saw:

| what is seen | key | default |
|---|---|---|
| the same turn, with the same tool calls, results and words, and no file changed between | ` + "`loop.repeat_threshold`" + ` | 30 times |
| model calls that bring nothing new | ` + "`loop.max_empty_calls`" + ` | 30 |
| the program's own retries, with nothing new between | ` + "`loop.max_retries`, `loop.retry_timeout`" + ` | 20, 4 minutes |
| turns | ` + "`loop.max_turns`" + ` | 1000 |
| output; one message may have a quarter of it | ` + "`loop.max_output`" + ` | 2 GB |
| neither output nor a changed file | ` + "`loop.idle_timeout`, `agents.X.idle_timeout`" + ` | 10 minutes |

After retries without end pawl waits for the provider as it does for any limit; after calls that overflow the next
iteration is told to work with less. While a tool of a known program runs, its silence does not count as idle, up to the
iteration's time limit, unless ` + "`agents.X.idle_timeout`" + ` is set. Agents that print plain text take no turns that
could be compared.

## Messages to an agent at work

` + "`pawl message`" + ` reaches Claude Code while it works: with the result of the tool that runs, or before its next turn. Pawl gives
it the prompt and the messages as lines of JSON (` + "`--input-format stream-json`" + `) and closes them when it is done. This is so
where the command is the program as npm, its own installer or Homebrew put it; a wrapper gets the prompt as it is. All other programs have a message in the
next prompt: they read their prompt to its end before they begin, and ACP takes one prompt at a time.

## Any other program

` + "`command`" + ` runs any program with the prompt on stdin, or with ` + "`{prompt}`, `{prompt_file}` and `{model}`" + ` in its arguments.
` + "`output`" + ` names the stream format that it prints. With the format of a program above, the command is that program behind another
name, e.g. a wrapper: pawl adds the program's flags to it, hands over the prompt as that program takes it, and points it at
the gateway. It adds no flags to a command that has one of them, or a place for the prompt or the model.

It is done when the last thing it says has the line ` + "`<promise>COMPLETE</promise>`" + `, alone, and the gates pass; without that
line the next iteration begins. The prompt tells it so (` + "`pawl run build --dry-run`" + `).

## What an agent says at its end

Every agent, of whichever program, ends its last message with one of these lines, or with none when work is left:

| line | what pawl does |
|---|---|
| ` + "`<promise>COMPLETE</promise>`" + ` | runs the gates; green ends the run (or goes to a review, and to the queue) |
| ` + "`<promise>BLOCKED: why</promise>`" + ` | stops and [asks a person](iteration-control.md) |
| ` + "`<promise>PENDING: question</promise>`" + ` | asks a person; the answer is in the next prompt |
| ` + "`<promise>PROGRESS: 40</promise>`" + ` | shows it; it can stand beside another line |
| ` + "`<promise>APPROVE</promise>`" + `, ` + "`<promise>REJECT: why</promise>`" + ` | what a review says |

It counts alone on its line only: not in a sentence, a list, a quote or a block of code.

## Any program that speaks ACP

` + "`output: acp`" + ` talks to a program by the Agent Client Protocol (version 1), of which there are more than forty:

` + "```yaml" + `
agents:
  mine: {command: [prog, acp], output: acp}   # gemini --acp, opencode acp, goose acp, …
` + "```" + `

Pawl starts a bridge that opens one session in the working folder, sends the prompt, grants what the program asks for (in a
review only reading; nothing that the level calls [dangerous](safety.md#dangerous-commands): such a request is refused and
ends the iteration, as a tool call does), and at a stop sends ` + "`session/cancel`" + ` before any signal. ` + "`model`" + ` chooses among the models that the
program offers, ` + "`mode`" + ` among its modes; without it the widest is taken (codex-acp's usual one runs no command). The program has to be logged in, or to find its key in the environment. Prefer a program's own row above
where it has one: over ACP nobody tells when a rate limit ends, tokens and cost come only from programs that report them
(at the end), the number of model calls is counted from what is said between tools, and a program may pass a failed call off
as an answer: one that begins with ` + "`Error: `" + ` and names a status or a known kind is read as a failure. Longest prompt: 8 MiB.
Gemini CLI 0.61.0 and OpenCode 1.18.33 were driven this way.

A new program is a folder below internal/do/agent that says all that pawl knows of it, with a parser if its stream is of its
own; CONTRIBUTING.md says what else.

## Raising a version

` + "`scripts/record-agent codex 0.170.0`" + ` drives the pinned version and the new one through the same scenes of the scripted model
server, and prints what differs in what pawl reads and in the kinds and fields of the events. What got worse, or is new and
worth reading, is a change of the parser with a row in its tests; then the version is raised in scripts/install-agent and in the
adapter's facts, this page is written again, and ` + "`make e2e-all`" + ` plays every scenario.
`
