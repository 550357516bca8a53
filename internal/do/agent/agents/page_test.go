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
			fmt.Fprintf(&b, " It can work for a long time without output: an idle limit below %v would end good work.", minutes(r.Idle))
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
	case len(p.Doors) == 0:
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

func ended(r agent.About) string {
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

Choose an agent program, and set it as ` + "`agent` in `pawl.yaml`. `pawl doctor`" + ` says which programs are on this machine. The
versions below are those that pawl was checked against. Other versions mostly work: pawl keeps unknown events of a stream, and
does not fail because of them.

An agent has ended well if the program exits with 0 and its stream says so; a stream that just stops counts as cut off. If a
program reports no cost, pawl estimates the cost from its tokens and a table of prices (` + "`prices`" + ` in the configuration). The cost
of a model without a price is unknown.

| agent | program | versions | stream format | tokens | cost | longest prompt |
|---|---|---|---|---|---|---|
`

const money = `
## Money, limits and keys

If you use an API key, the program's model calls go through pawl's [gateway](gateway.md). Then every call is counted as the
model sees it, limits on money, tokens and calls hold before the next call, trouble of a provider is seen at once, and the key
is not in the sandbox.

Without the gateway (with a login, a provider of the program's own, or ` + "`gateway.enabled: never`" + `) pawl knows only what the program
reports, and the program's login is in its sandbox. The last column of the table says when a limit on money or tokens holds:

- **after each call**: the iteration ends as soon as the program reports the call that exceeds the limit.
- **at its end**: an iteration may exceed the limit; the run ends after that iteration.
- **never**: only limits on calls, turns and time hold. The cost is unknown, and shown as unknown.

| agent | through the gateway with a key | tokens are known without it |
|---|---|---|
`

// scenes is what TestScenes of e2e shows.
const scenes = `
### Tested with the real programs

` + "`make e2e-all`" + ` runs each program through the gateway in fourteen scenarios, and compares the calls, tokens and costs that the model
server saw with those that pawl reports. The scenarios are: work, a gate that is red first, a rate limit, an overload, a broken
stream, a bad key, a quota of hours, a prompt that is too long, an error page of a proxy, a refusal, an answer cut off at its length
limit, an empty answer, a limit on money and a limit on calls. Results on 2026-11-26, on Linux:

| program | metered by | calls: the server, pawl | limits on money and calls | trouble and invalid answers | key in the sandbox |
|---|---|---|---|---|---|
| claude 2.1.328 | gateway | 35, 35 | hold | seen | no |
| codex 0.169.0 | gateway | 30, 30 | hold | seen | no |
| opencode 1.18.33 | gateway | 123, 123 | hold | seen; a prompt that stays too long ends as repeated turns | no |
| gemini 0.61.0 | gateway | 33, 33 | hold | seen | no |
| qwen 0.24.4 | gateway | 40, 40 | hold | seen | no |
| copilot 1.0.102 | gateway | 35, 35 | hold | seen | no |
| droid 0.215.0 | gateway, with ` + "`isolate`" + ` | 95, 95 | hold | seen | no |
| cline 3.0.65 | gateway, with ` + "`isolate`" + ` | 37, 37 | hold | seen | no |
| kimi 2.1.0 | gateway | 47, 47 | hold | seen | no |
| kilo 7.7.7 | gateway | 35, 35 | hold | seen | no |

The costs are equal where the provider reported its tokens. If a stream breaks before that, pawl estimates the tokens from what
arrived (431 of 440). It also estimates them for an answer that a limit cuts off. Calls with a login, and the programs amp, crush,
cursor, goose, aider and kiro, were not tested.
`

const tail = `
## Where they call

At the level ` + "`paranoid`" + ` an agent reaches only its model's endpoint. The hosts named above are those that the programs call by
default. A base URL (` + "`ANTHROPIC_BASE_URL`, `OPENAI_BASE_URL`, `GOOGLE_GEMINI_BASE_URL`" + ` and the like) replaces them. A region of
Bedrock or Vertex has its own host. A program that works with many providers calls those whose keys are set. Pawl does not know
hosts that are set in a program's own files: name them in ` + "`agents.NAME.endpoints`" + `, which replaces all of the above.

## Agents that loop inside an iteration

Agent programs have loops of their own that may never end: a model that repeats the same turn, calls that overflow the context
each time, a connection that is retried for ever. Pawl ends such an iteration and says why:

| what pawl detects | key | default |
|---|---|---|
| the same turn, with the same tool calls, results and words, and no file changed between | ` + "`loop.repeat_threshold`" + ` | 30 times |
| model calls that bring nothing new | ` + "`loop.max_empty_calls`" + ` | 30 |
| the program's own retries, without any change between | ` + "`loop.max_retries`, `loop.retry_timeout`" + ` | 20, 4 minutes |
| turns | ` + "`loop.max_turns`" + ` | 1000 |
| output; a single message may have a quarter of this | ` + "`loop.max_output`" + ` | 2 GB |
| neither output nor a changed file | ` + "`loop.idle_timeout`, `agents.X.idle_timeout`" + ` | 10 minutes |

After endless retries pawl waits for the provider, as it does at any limit. After calls that overflow, the next prompt tells the
agent to work with less. While a tool of a known program runs, its silence does not count as idle, up to the iteration's time
limit, unless ` + "`agents.X.idle_timeout`" + ` is set. Pawl cannot compare turns of agents that print plain text.

## Messages to an agent at work

` + "`pawl message`" + ` reaches Claude Code while it works: with the result of the tool that is running, or before its next turn. Pawl
sends it the prompt and the messages as lines of JSON (` + "`--input-format stream-json`" + `) and closes its input when it is done. This
works if the command is the program as npm, its own installer or Homebrew installed it; a wrapper gets the plain prompt. All other
programs get a message in the next prompt, because they read their whole prompt before they begin, and ACP takes one prompt at a
time.

## Any other program

` + "`command`" + ` runs any program with the prompt on stdin, or with ` + "`{prompt}`, `{prompt_file}` and `{model}`" + ` in its arguments.
` + "`output`" + ` names the stream format that it prints. If this is the format of a program above, pawl takes the command for that program
under another name, such as a wrapper: it adds the program's flags, passes the prompt in that program's way, and points the command
at the gateway. It adds no flags if the command already has one of them, or has a placeholder for the prompt or the model.

The work is done when the agent's last message has a line ` + "`<promise>COMPLETE</promise>`" + `, with nothing else on it, and the gates pass.
Without that line the next iteration begins. The prompt tells the agent so (` + "`pawl run build --dry-run`" + `).

A script can be an agent. It works in its current folder, and has ` + "`PAWL_ITERATION`" + `, ` + "`PAWL_RUN`" + ` and, for a task of
the board, ` + "`PAWL_CASE`" + ` in its environment:

` + "```" + `text
prompt=$(cat)                                    # the task, what was red last time, how to end
my-model --prompt "$prompt" --edit .             # changes files here; may commit
if ./quick-check; then echo '<promise>COMPLETE</promise>'; fi
` + "```" + `

## What an agent says at its end

Every agent, whatever its program, ends its last message with one of these lines, or with none if there is work left:

| line | what pawl does |
|---|---|
| ` + "`<promise>COMPLETE</promise>`" + ` | runs the gates; if they are green, the run ends (or the work goes to a review, and to the merge queue) |
| ` + "`<promise>BLOCKED: why</promise>`" + ` | stops and [asks a person](iteration-control.md) |
| ` + "`<promise>PENDING: question</promise>`" + ` | asks a person; the answer is in the next prompt |
| ` + "`<promise>PROGRESS: 40</promise>`" + ` | shows it as a percentage; it can be given together with another line |
| ` + "`<promise>APPROVE</promise>`, `<promise>REJECT: why</promise>`" + ` | the verdict of a review |

A line counts only if nothing else is on it: not in a sentence, a list, a quote or a block of code.

## Any program that speaks ACP

` + "`output: acp`" + ` uses the Agent Client Protocol (version 1), which more than forty programs speak:

` + "```yaml" + `
agents:
  mine: {command: [prog, acp], output: acp}   # gemini --acp, opencode acp, goose acp, …
` + "```" + `

Pawl starts a bridge, which opens one session in the working folder and sends the prompt. The bridge grants what the program asks
for: in a review only reading, and never what the level calls [dangerous](safety.md#dangerous-commands). A dangerous request is
refused and ends the iteration, as a tool call does. At a stop the bridge sends ` + "`session/cancel`" + ` before any signal.

` + "`model`" + ` chooses one of the models that the program offers, and ` + "`mode`" + ` one of its modes. By default pawl takes the mode with the
widest permissions (codex-acp's usual mode runs no commands). The program must be logged in, or find its key in the
environment. If it asks for a login and offers one by a key that it has there, pawl chooses that.

If a program has a row of its own above, prefer that to ACP. Over ACP nothing says when a rate limit ends. Tokens and cost are
known only if the program reports them, at its end. The number of model calls is estimated from the messages between tool calls. A
program may present a failed call as an answer: pawl reads an answer that begins with ` + "`Error: `" + ` and names a status or a known kind
of error as a failure. Longest prompt: 8 MiB. Gemini CLI 0.61.0 and OpenCode 1.18.33 were tested this way.

To add a program, add a folder below internal/do/agent that contains everything that pawl knows about it, with a parser if its
stream has a format of its own. CONTRIBUTING.md describes the rest.

## Raising a version

` + "`scripts/record-agent codex 0.170.0`" + ` runs the pinned version and the new one through the same scenarios of the scripted model
server. It prints the differences in what pawl reads and in the kinds and fields of the events. If something got worse, or something
new is worth reading, change the parser and add a row to its tests. Then raise the version in scripts/install-agent and in the
adapter's facts, write this page again, and run every scenario with ` + "`make e2e-all`" + `.
`
