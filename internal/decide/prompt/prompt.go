// Package prompt makes the prompt of one iteration: the fragments
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
	_ "embed"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/loop"
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
	// Sealed is how many checks run beside Gates that the agent is not shown.
	Sealed int
	// Rules are what holds for the agent beside the checks: limits, protected files, the
	// safety level; a sentence each.
	Rules []string

	// Reviewer looks at green work before it counts: an agent's name, or
	// [loop.Person]; empty is none.
	Reviewer string

	Case                 Case
	Run, Agent, Strategy string
	// Budget is in tokens; 0 for none.
	Budget int
}

// MaxWork is the most bytes that [Input.Work] should have.
const MaxWork = maxCase

// Prompt is the text for the agent.
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
	p, err := composePrompt(in, items)
	if err == nil && p.Over && p.Tokens-in.Budget > Tokens(feedbackText(&in, items)) {
		return composePrompt(in, 0) // all of the feedback would not be enough
	}
	for err == nil && p.Over && items > 0 {
		items--
		p, err = composePrompt(in, items)
	}
	return p, err
}

// composePrompt makes the prompt with that many items of the feedback.
func composePrompt(in Input, items int) (Prompt, error) {
	told := joinParts(Messages(in.Messages), feedbackText(&in, items), Remembered(in.Feedback.Earlier(in.Said)))
	d := newTemplateData(in, told)
	b := builder{}
	b.text.WriteString(title + "\n")
	b.addSection("TASK", strings.TrimSpace(in.Work))
	b.addSection("CONTEXT", contextText(in.Context))
	for _, phase := range [...]struct {
		name      string
		fragments []Fragment
	}{{"OBSERVE", in.Observe}, {"ORIENT", in.Orient}, {"DECIDE", in.Decide}, {"ACT", in.Act}} {
		text, err := d.joinPhase(phase.fragments)
		if err != nil {
			return Prompt{}, err
		}
		b.addSection(phase.name, text)
	}
	b.addSection("FEEDBACK", told)
	b.addSection("COMPLETION", completionText(in))
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

// addSection adds a section; an empty one is left out.
func (b *builder) addSection(name, text string) {
	if text == "" {
		return
	}
	b.text.WriteString("\n## " + name + "\n")
	b.text.WriteString(text)
	b.text.WriteByte('\n')
}

// contextText lists the items, each below where it comes from.
func contextText(items []Item) string {
	var parts []string
	for _, item := range items {
		text := strings.TrimSpace(item.Text)
		if item.Source != "" {
			text = strings.TrimSpace("Source: " + cutToLine(item.Source) + "\n" + text)
		}
		if text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, "\n\n")
}

// joinPhase joins the fragments of one phase.
func (d *data) joinPhase(fragments []Fragment) (string, error) {
	var parts []string
	for _, f := range fragments {
		text, err := expandFragment(f, d)
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
	for _, phase := range fileNames("builtin") {
		for _, file := range fileNames(builtinFolder + phase) {
			names = append(names, phase+"/"+strings.TrimSuffix(file, builtinSuffix))
		}
	}
	return names
}

// fileNames lists a folder. The files are part of the program, so reading one
// that there is cannot fail.
func fileNames(folder string) []string {
	list, _ := builtins.ReadDir(folder)
	names := make([]string, 0, len(list))
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}

// DryRun makes the output of --dry-run: three lines about the prompt, a blank
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

// maxGates bounds the checks that are listed by name.
const maxGates = 50

//go:embed protocol.md
var protocolText string

// protocol describes the signals in pieces, so that no line of it is one and
// an agent that echoes it says nothing.
var protocol = strings.TrimSpace(protocolText)

// completionText is the last section: where the loop stands, how to end, and what
// is checked then.
func completionText(in Input) string {
	parts := []string{positionText(in), protocol, gatesText(in)}
	if rules := bulletList("What else holds:", in.Rules, maxRules); rules != "" {
		parts = append(parts, rules)
	}
	if r := reviewerNote(in.Reviewer); r != "" {
		parts = append(parts, r)
	}
	return strings.Join(parts, "\n\n")
}

// reviewerNote says who looks at the work when it is green.
func reviewerNote(reviewer string) string {
	who := "another agent (" + cutToLine(reviewer) + ")"
	switch reviewer {
	case "":
		return ""
	case loop.Person:
		who = "a person"
	}
	return "Work that is complete and green is then reviewed by " + who + ", who sees the whole change since the run " +
		"began. It counts only when that review approves."
}

func positionText(in Input) string {
	const fresh = "You start without a memory of the ones before: what the next one must know has to be in files."
	switch {
	case in.Iteration <= 0:
		return "This is one iteration of a loop. " + fresh
	case in.MaxIterations > 0:
		return fmt.Sprintf("This is iteration %d of at most %d. %s", in.Iteration, in.MaxIterations, fresh)
	}
	return fmt.Sprintf("This is iteration %d. %s", in.Iteration, fresh)
}

// gatesText names the gates.
func gatesText(in Input) string {
	switch {
	case len(in.Gates) > 0:
		const rule = "A COMPLETE is accepted only if every required one is green, so run them yourself first. " +
			"Do not weaken them."
		list := bulletList("These checks run when you have ended, in this order:", firstGates(in.gateLines()),
			maxGates+1)
		return joinParts(list, rule, in.sealedText(), in.evidenceFolderText())
	case in.Sealed > 0:
		return in.sealedText()
	case in.NoGates:
		return "No checks are configured, so nobody looks behind your COMPLETE: make sure yourself, and say how."
	}
	return "Checks may run when you have ended. A COMPLETE is accepted only if they are green."
}

// sealedText mentions the checks that the agent is not shown.
func (in *Input) sealedText() string {
	if in.Sealed == 0 {
		return ""
	}
	return "Further checks run then that you are not shown. They are of what the task asks for; of one that is red " +
		"you are told what does not hold, and nothing more."
}

// evidenceFolderText names the folder for pictures and reports that a person looks at; "" for a
// task without criteria.
func (in *Input) evidenceFolderText() string {
	if len(in.Case.Acceptance) == 0 {
		return ""
	}
	return "A picture or a report that shows that a criterion holds can be left in the folder $PAWL_EVIDENCE."
}

// gateLines are the checks by name and command.
func (in *Input) gateLines() []string {
	lines := make([]string, len(in.Gates))
	for i, name := range in.Gates {
		lines[i] = cutToLine(name)
		if command := in.commandOf(i); command != "" && command != lines[i] {
			lines[i] += ": " + command
		}
	}
	return lines
}

// commandOf is the command of a check as one line; "" when none is known.
func (in *Input) commandOf(i int) string {
	if i < 0 || i >= len(in.Commands) {
		return ""
	}
	return cutToLine(in.Commands[i])
}

// maxRules bounds the sentences about what holds.
const maxRules = 20

// firstGates bounds the list and says how many more there are.
func firstGates(gates []string) []string {
	if len(gates) <= maxGates {
		return gates
	}
	return append(append([]string{}, gates[:maxGates]...), fmt.Sprintf("and %d more", len(gates)-maxGates))
}

// kind sorts characters by what they cost.
type kind int

const (
	letter kind = iota
	capital
	numeral
	space
	newline
	sign
	accent // and other alphabets
	ideograph
	rare
)

// costs are hundredths of a token: of the first character of a run of one kind,
// of the second, and of each further one.
var costs = [...][3]int{
	letter: {100, 11, 9}, capital: {110, 20, 25}, numeral: {75, 15, 33},
	space: {0, 75, 0}, newline: {90, 0, 0}, sign: {69, 19, 19},
	accent: {35, 35, 35}, ideograph: {60, 60, 60}, rare: {95, 95, 95},
}

const (
	spaced   = 43 // what a word behind a space costs less
	repeated = 4  // what the same sign costs in a row of it
)

// Tokens estimates how many tokens a model makes of the text. Models differ in
// their vocabularies, so it is an estimate for all of them; an empty text has none.
// On code, prose and streams of agents half of the files are within 5 % of a
// public vocabulary of 200,000 entries, and nine in ten within 15 %.
func Tokens(text string) int {
	sum, run := 0, 0
	last, before := newline, rune(0)
	for _, r := range text {
		k := kindOfRune(r)
		if hump := last == capital && k == letter; k != last && !hump {
			run = 0
			word := k == letter || k == capital
			if word && last == space {
				sum -= spaced
			}
		}
		if k == sign && r == before && run > 1 {
			sum += repeated
		} else {
			sum += costs[k][min(run, 2)]
		}
		run, last, before = run+1, k, r
	}
	return (sum + 99) / 100
}

func kindOfRune(r rune) kind {
	switch {
	case r >= 'a' && r <= 'z':
		return letter
	case r >= 'A' && r <= 'Z':
		return capital
	case r >= '0' && r <= '9':
		return numeral
	case r == ' ' || r == '\t':
		return space
	case r == '\n' || r == '\r':
		return newline
	case r > ' ' && r < 0x7f:
		return sign
	case r >= 0x80 && r < 0x2000:
		return accent
	case r >= 0x3000 && r < 0xe000:
		return ideograph
	}
	return rare
}

// Thousands writes a number with a comma between groups of three digits, as
// in 4,230.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
