// Package prompt makes what an agent is told in one iteration: the fragments
// of the four OODA phases, the user's context, what went wrong before, and
// the protocol of completion.
//
// It reads no file: fragments and context come in as text. It never writes a
// valid signal by itself, and what comes from elsewhere (gate output,
// answers, a case's text) can forge neither a signal nor a section. The user's
// own fragments and context are passed on as they are.
package prompt

import (
	"embed"
	"fmt"
	"strings"

	"github.com/pawl-dev/pawl/internal/loop"
)

// Item is one piece of context.
type Item struct {
	// Source is the file that it comes from; empty for text of the command line.
	Source string
	Text   string
}

// Fragment is one part of a phase.
type Fragment struct {
	// Name is what messages call it: a file, a builtin: name or a place in the
	// configuration.
	Name string
	// Text is used as it is, or as a Go template when it holds "{{".
	Text string
}

// Case is the unit of work, for templates. Its texts may come from agents, so
// signals and headings of the prompt are taken out of them.
type Case struct {
	ID, Title, Description string
	Acceptance             []string
	Tags                   []string
}

// Input is all that one prompt is made of.
type Input struct {
	Procedure     string
	Iteration     int // from 1
	MaxIterations int // 0 for no limit
	// Work is what the user asked for in words, [MaxWork] bytes at most; it stays whole.
	Work    string
	Context []Item

	Observe, Orient, Decide, Act []Fragment

	// Feedback is nil in a first iteration.
	Feedback *loop.Feedback
	// Messages are what people said to the agent since the last prompt; they
	// stay whole, like context.
	Messages []string
	// Said is what people said before, oldest first.
	Said []loop.Said
	// Gates are the names of the checks that will run, in their order. NoGates
	// says that there are none at all; without either nothing is promised.
	Gates   []string
	NoGates bool
	// Commands are those of Gates, each at the place of its name; a gate without one
	// is shown by its name alone.
	Commands []string
	// Rules are what holds for the agent beside the checks: limits, protected files, the
	// safety level; a sentence each.
	Rules []string

	// Reviewer looks at green work before it counts: an agent's name, or
	// [loop.Person]; empty is nobody.
	Reviewer string

	Case                 Case
	Run, Agent, Strategy string
	// Budget is in tokens; 0 for none.
	Budget int
}

// MaxWork is the most bytes that [Input.Work] should have.
const MaxWork = maxCase

// Prompt is what the agent gets.
type Prompt struct {
	Text   string
	Tokens int // estimated, see [Tokens]
	// Over is true when the prompt is over its budget after all that can be
	// left out was left out.
	Over bool
	// Dropped counts the feedback's items that were left out: for the budget,
	// or because there are more than 20.
	Dropped int
}

// maxItems bounds the items of a feedback that are looked at.
const maxItems = 20

// Compose makes the prompt. An error is a fragment's: a template that does
// not work out, with its name and line.
//
// Over the budget the feedback's items are left out from the end, as many as
// needed. Phases and context always stay whole.
func Compose(in Input) (Prompt, error) {
	items := 0
	if in.Feedback != nil {
		items = min(len(in.Feedback.Items), maxItems)
	}
	p, err := compose(in, items)
	if err == nil && p.Over && p.Tokens-in.Budget > Tokens(feedback(&in, items)) {
		return compose(in, 0) // all of the feedback would not be enough
	}
	for err == nil && p.Over && items > 0 {
		items--
		p, err = compose(in, items)
	}
	return p, err
}

// compose makes the prompt with that many items of the feedback.
func compose(in Input, items int) (Prompt, error) {
	told := joined(Messages(in.Messages), feedback(&in, items), Remembered(in.Feedback.Earlier(in.Said)))
	d := newData(in, told)
	b := builder{}
	b.text.WriteString(title + "\n")
	b.section("TASK", strings.TrimSpace(in.Work))
	b.section("CONTEXT", context(in.Context))
	for _, phase := range [...]struct {
		name      string
		fragments []Fragment
	}{{"OBSERVE", in.Observe}, {"ORIENT", in.Orient}, {"DECIDE", in.Decide}, {"ACT", in.Act}} {
		text, err := d.phase(phase.fragments)
		if err != nil {
			return Prompt{}, err
		}
		b.section(phase.name, text)
	}
	b.section("FEEDBACK", told)
	b.section("COMPLETION", completion(in))
	text := b.text.String()
	p := Prompt{Text: text, Tokens: Tokens(text)}
	p.Over = in.Budget > 0 && p.Tokens > in.Budget
	if in.Feedback != nil {
		p.Dropped = len(in.Feedback.Items) - items
	}
	return p, nil
}

// title is the first line of every prompt.
const title = "# OODA Loop Iteration"

// builder puts sections one below the other.
type builder struct{ text strings.Builder }

// section adds a section; an empty one is left out.
func (b *builder) section(name, text string) {
	if text == "" {
		return
	}
	b.text.WriteString("\n## " + name + "\n")
	b.text.WriteString(text)
	b.text.WriteByte('\n')
}

// context lists the items, each below where it comes from.
func context(items []Item) string {
	var parts []string
	for _, item := range items {
		text := strings.TrimSpace(item.Text)
		if item.Source != "" {
			text = strings.TrimSpace("Source: " + oneLine(item.Source) + "\n" + text)
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// phase joins the fragments of one phase.
func (d *data) phase(fragments []Fragment) (string, error) {
	var parts []string
	for _, f := range fragments {
		text, err := expand(f, d)
		if err != nil {
			return "", err
		}
		if text = strings.TrimSpace(text); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n"), nil
}

// The fragments that come with pawl: builtin/PHASE/NAME.md.
//
//go:embed builtin
var builtins embed.FS

const (
	builtinFolder = "builtin/"
	builtinSuffix = ".md"
)

// Builtin returns the text of a fragment that comes with pawl, by its name
// without the prefix "builtin:", such as "act/edit-and-test". It may be a
// template.
func Builtin(name string) (string, bool) {
	text, err := builtins.ReadFile(builtinFolder + name + builtinSuffix)
	return string(text), err == nil
}

// Builtins returns the names of all of these fragments, sorted.
func Builtins() []string {
	var names []string
	for _, phase := range entries("builtin") {
		for _, file := range entries(builtinFolder + phase) {
			names = append(names, phase+"/"+strings.TrimSuffix(file, builtinSuffix))
		}
	}
	return names
}

// entries lists a folder. The files are part of the program, so reading one
// that there is cannot fail.
func entries(folder string) []string {
	list, _ := builtins.ReadDir(folder)
	names := make([]string, 0, len(list))
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

// DryRun is what --dry-run prints: three lines about the prompt, a blank
// line, and the prompt as the agent would get it. A budget of 0 is none.
func DryRun(p Prompt, procedure, command string, budget int) string {
	limit := "no"
	if budget > 0 {
		limit = Thousands(budget)
	}
	return fmt.Sprintf("[DRY RUN] Procedure: %s\n[DRY RUN] Would execute with: %s\n[DRY RUN] Token count: %s / %s "+
		"budget\n\n%s",
		procedure, command, Thousands(p.Tokens), limit, p.Text)
}
