package board

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/pawl-dev/pawl/internal/decide/fault"
)

// Type separates cases that group others from tasks.
type Type string

// The types.
const (
	Operation Type = "operation" // groups cases
	Task      Type = "task"      // is done by one loop
)

// idPrefix is the first part of an id.
func (t Type) idPrefix() string {
	if t == Operation {
		return "op"
	}
	return "task"
}

// Status is the progress of a case.
type Status string

// The statuses. An operation is pending, blocked, deferred or done only.
const (
	Pending  Status = "pending"  // no agent works on it
	Active   Status = "active"   // a loop works on it
	Blocked  Status = "blocked"  // a person has to act
	Review   Status = "review"   // verified; waits for a person's review, or to be landed
	Done     Status = "done"     // landed
	Failed   Status = "failed"   // given up after an error
	Timeout  Status = "timeout"  // at its limit of iterations or time
	Deferred Status = "deferred" // put off by a person
)

// Phrase is the status as what follows "it is" in a sentence.
func (s Status) Phrase() string {
	switch s {
	case Review:
		return "in review"
	case Timeout:
		return "at its limit"
	default:
		return string(s)
	}
}

// Statuses is all of them, in the order of a task's life.
var Statuses = []Status{Pending, Active, Blocked, Review, Done, Failed, Timeout, Deferred}

// The limits of a case. Lengths are in bytes, priorities go both ways.
const (
	MaxTitle       = 500
	MaxDescription = 256 << 10
	MaxCriteria    = 100
	MaxCriterion   = 10_000
	MaxTags        = 50
	MaxTag         = 64
	MaxRef         = 200
	MaxNeeds       = 1000
	MaxPriority    = 1_000_000
	MaxDepth       = 16 // operations in operations
	MaxWhy         = 2000
)

// Case is a unit of work on the board. What is stored outlives the code:
// fields are added, never renamed.
type Case struct {
	ID          string   `json:"id"`
	Type        Type     `json:"type"`
	Title       string   `json:"title"` // one line
	Description string   `json:"description,omitempty"`
	Acceptance  []string `json:"acceptance,omitempty"` // criteria
	Tags        []string `json:"tags,omitempty"`       // sorted, each once
	Priority    int      `json:"priority"`             // higher first
	Parent      string   `json:"parent,omitempty"`     // an operation's id
	Needs       []string `json:"needs,omitempty"`      // ids; all must be done first
	Ref         string   `json:"ref,omitempty"`        // its name where it was imported from
	Control     *Control `json:"iteration_control,omitempty"`
	Checks
	Status    Status    `json:"status"`
	Why       string    `json:"why,omitempty"` // of the status
	Retries   int       `json:"retry_count"`   // by a person's retry and by crashes
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`

	// Counters, kept by who stores cases.
	Unmet        int  `json:"unmet"`    // needs that are not done
	Unblocks     int  `json:"unblocks"` // cases that need this one and are not done
	Held         bool `json:"held"`     // an operation above is blocked, deferred, or has unmet needs
	Children     int  `json:"children"` // of an operation
	ChildrenDone int  `json:"children_done"`
	Siblings     int  `json:"siblings"` // children of the parent, this one included
	SiblingsDone int  `json:"siblings_done"`
}

// IsReady reports whether a task can be started. It is pending, all that it needs has landed, and
// no operation above it is held up.
func (c *Case) IsReady() bool {
	return c.Type == Task && c.Status == Pending && c.Unmet == 0 && !c.Held
}

// Holds reports whether nothing can be started below the operation.
func (c *Case) Holds() bool {
	open := !c.Held && c.Unmet == 0 && c.Status != Blocked && c.Status != Deferred
	return c.Type == Operation && !open
}

// NotReady says in words why a pending case is not ready; "" for one that is.
func (c *Case) NotReady() string {
	switch {
	case c.Type == Operation:
		return "an operation is not started itself, only its tasks are"
	case c.Status != Pending:
		return "it is " + c.Status.Phrase()
	case c.Unmet == 1:
		return "1 of its needs has not landed"
	case c.Unmet > 1:
		return fmt.Sprintf("%d of its needs have not landed", c.Unmet)
	case c.Held:
		return "an operation above it is blocked, deferred, or has needs that have not landed"
	}
	return ""
}

// HasTag is true when the case has the tag, in any case of letters.
func (c *Case) HasTag(tag string) bool {
	return slices.ContainsFunc(c.Tags, func(t string) bool { return strings.EqualFold(t, tag) })
}

// The tags that pawl acts on. With a colon they are how such a tag begins. Each of them
// is in [acting].
const (
	AgentTag    = "agent:"         // who works on a task: agent:codex
	PolicyTag   = "policy:"        // when work on it ends: policy:controlled
	LabelTag    = "needs:"         // a label of the machines that may work on it, where workers do: needs:gpu
	RaceTag     = "race:"          // who races for it: race:3 or race:claude+codex
	PickTag     = "pick:"          // who wins a race: pick:best or pick:first
	RepairTag   = "repairs_target" // it may start on a red target, since it is its repair
	CriticalTag = "critical"       // it goes before others
	QuickWinTag = "quick-win"      // so does this, less
)

var acting = []string{AgentTag, PolicyTag, LabelTag, RaceTag, PickTag, RepairTag, CriticalTag, QuickWinTag}

// Acts reports whether pawl acts on the tag, in any case of letters.
func Acts(tag string) bool {
	return slices.ContainsFunc(acting, func(known string) bool {
		return strings.EqualFold(tag, known) ||
			strings.HasSuffix(known, ":") && strings.HasPrefix(strings.ToLower(tag), known)
	})
}

// Agent is who works on the task by its tags; empty is who always does.
func (c *Case) Agent() string { return c.valueOfTag(AgentTag) }

// Policy by which the work on it ends, from its tags; empty is the default. Settings of
// iteration control alone ask for it.
func (c *Case) Policy() string {
	if own := c.valueOfTag(PolicyTag); own != "" || c.Control == nil {
		return own
	}
	return "controlled"
}

func (c *Case) valueOfTag(prefix string) string {
	for _, t := range c.Tags {
		if name, ok := strings.CutPrefix(t, prefix); ok {
			return name
		}
	}
	return ""
}

// Labels that a worker has to have to work on the task.
func (c *Case) Labels() []string {
	var labels []string
	for _, t := range c.Tags {
		if name, ok := strings.CutPrefix(strings.ToLower(t), LabelTag); ok && name != "" {
			labels = append(labels, name)
		}
	}
	slices.Sort(labels)
	return slices.Compact(labels)
}

// Fits is true when a worker with some labels may work on the task.
func (c *Case) Fits(labels []string) bool {
	return !slices.ContainsFunc(c.Labels(), func(l string) bool { return !slices.Contains(labels, l) })
}

// ID is the id of the nth case of a type, such as task-042.
func ID(t Type, n int64) string { return fmt.Sprintf("%s-%03d", t.idPrefix(), n) }

// ParseID reads an id as people write it: task-042, task-42, TASK-042, and 42
// for a task.
func ParseID(text string) (t Type, n int64, ok bool) {
	prefix, digits, found := strings.Cut(strings.ToLower(text), "-")
	if !found {
		prefix, digits = Task.idPrefix(), prefix
	}
	switch prefix {
	case Task.idPrefix():
		t = Task
	case Operation.idPrefix():
		t = Operation
	default:
		return "", 0, false
	}
	if digits == "" || len(digits) > 18 || strings.Trim(digits, "0123456789") != "" {
		return "", 0, false
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	return t, n, err == nil && n > 0
}

// Normal is an id in its stored form; other text stays as it is.
func Normal(text string) string {
	if t, n, ok := ParseID(text); ok {
		return ID(t, n)
	}
	return text
}

// numberOfID is the counting part of an id; 0 for other text.
func numberOfID(id string) int64 {
	_, n, _ := ParseID(id)
	return n
}

// Tidy brings the texts of a case into their stored form: blanks in a title
// become single ones, tags are sorted, lists hold nothing twice or empty.
func Tidy(c Case) Case {
	c.Title = strings.Join(strings.Fields(c.Title), " ")
	c.Description = strings.TrimRight(c.Description, " \t\r\n")
	c.Acceptance = trimDistinct(c.Acceptance)
	c.Checks = Checks{tidyChecks(c.Verify), tidyChecks(c.Sealed)}
	c.Tags = trimDistinct(c.Tags)
	slices.Sort(c.Tags)
	c.Needs = trimDistinct(c.Needs)
	if c.Control != nil && *c.Control == (Control{}) {
		c.Control = nil
	}
	return c
}

// trimDistinct gives the list in its order, trimmed, without empty and repeated
// entries; nil when nothing is left.
func trimDistinct(list []string) []string {
	var out []string
	seen := make(map[string]bool, len(list))
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	return out
}

// Check lists the faults of a tidy case, one sentence each; none when it can be
// stored. It does not look at what the case refers to.
func Check(c Case) []string {
	var wrong []string
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if c.Type != Task && c.Type != Operation {
		add("the type %q is unknown: write task or operation", cutForMessage(string(c.Type)))
	}
	switch {
	case c.Title == "":
		add("the title is empty")
	case len(c.Title) > MaxTitle:
		add("the title has %d bytes, at most %d: put the rest into the description", len(c.Title), MaxTitle)
	case !isSingleLine(c.Title):
		add("the title has control characters or is not UTF-8")
	}
	if len(c.Description) > MaxDescription {
		add("the description has %d bytes, at most %d", len(c.Description), MaxDescription)
	} else if !isValidText(c.Description) {
		add("the description has a NUL character or is not UTF-8")
	}
	if len(c.Acceptance) > MaxCriteria {
		add("%d acceptance criteria, at most %d", len(c.Acceptance), MaxCriteria)
	}
	for i, a := range c.Acceptance[:min(len(c.Acceptance), MaxCriteria)] {
		if len(a) > MaxCriterion || !isValidText(a) {
			add("acceptance criterion %d is longer than %d bytes or not UTF-8 text", i+1, MaxCriterion)
		}
	}
	wrong = append(wrong, faultsOfChecks("verify", c.Verify)...)
	wrong = append(wrong, faultsOfChecks("sealed", c.Sealed)...)
	if c.Type == Operation && len(c.Verify)+len(c.Sealed) > 0 {
		add("an operation has no loop: verify and sealed belong to its tasks")
	}
	if len(c.Tags) > MaxTags {
		add("%d tags, at most %d", len(c.Tags), MaxTags)
	}
	for _, t := range c.Tags[:min(len(c.Tags), MaxTags)] {
		if len(t) > MaxTag || !isSingleWord(t) {
			add("the tag %q is longer than %d bytes, or has blanks, commas or control characters",
				cutForMessage(t), MaxTag)
		}
	}
	if len(c.Ref) > MaxRef || !isSingleLine(c.Ref) {
		add("the ref %q is longer than %d bytes, or has control characters", cutForMessage(c.Ref), MaxRef)
	}
	if len(c.Needs) > MaxNeeds {
		add("%d needs, at most %d", len(c.Needs), MaxNeeds)
	}
	if c.Priority > MaxPriority || c.Priority < -MaxPriority {
		add("the priority %d is not between -%d and %d", c.Priority, MaxPriority, MaxPriority)
	}
	if c.Control != nil {
		if text := c.Control.reasonNotValid(); text != "" {
			add("%s", text)
		}
		if c.Type == Operation {
			add("an operation has no loop: iteration_control belongs to its tasks")
		}
		if c.Type == Task && c.Policy() != "controlled" {
			add("iteration_control needs policy:controlled, and the tag is %s%s",
				PolicyTag, cutForMessage(c.Policy()))
		}
	}
	return wrong
}

// isSingleLine: it is UTF-8 without control characters.
func isSingleLine(s string) bool {
	breaks := func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }
	return utf8.ValidString(s) && !strings.ContainsFunc(s, breaks)
}

func isValidText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

func isSingleWord(s string) bool {
	separates := func(r rune) bool { return r == ',' || unicode.IsSpace(r) }
	return isSingleLine(s) && !strings.ContainsFunc(s, separates)
}

// cutForMessage cuts a text so that it fits into a message.
func cutForMessage(s string) string { return fault.Cut(s, 60) }

// compareAge orders cases that score alike: oldest, then lowest id.
func compareAge(a, b *Case) int {
	numbers := cmp.Compare(numberOfID(a.ID), numberOfID(b.ID))
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), numbers, strings.Compare(a.ID, b.ID))
}

// setCounters counts for each new case what it holds, needs and holds up.
func (r *resolver) setCounters() {
	kids := make([][]int, len(r.cases))
	var roots []int
	for i := range r.cases {
		if j, ok := r.index[r.cases[i].Parent]; ok {
			kids[j] = append(kids[j], i)
		} else {
			roots = append(roots, i)
		}
	}
	for _, i := range roots {
		r.countChildren(i, kids)
	}
	for i := range r.cases {
		r.countNeeds(&r.cases[i])
	}
	for _, i := range roots {
		if parent, ok := r.old[r.cases[i].Parent]; ok {
			r.cases[i].Held = parent.Holds()
		}
		r.handDownHeld(i, kids)
	}
}

// countChildren counts the children of an operation, the lowest first: one that
// holds something is done exactly when all of that is.
func (r *resolver) countChildren(i int, kids [][]int) {
	c := &r.cases[i]
	for _, k := range kids[i] {
		r.countChildren(k, kids)
		c.Children++
		if r.cases[k].Status == Done {
			c.ChildrenDone++
		}
	}
	switch {
	case c.Children == 0:
	case c.Children == c.ChildrenDone:
		c.Status = Done
	case c.Status == Done:
		c.Status = Pending
	}
}

func (r *resolver) countNeeds(c *Case) {
	for _, need := range c.Needs {
		if j, ok := r.index[need]; ok {
			if r.cases[j].Status != Done {
				c.Unmet++
			}
			if c.Status != Done {
				r.cases[j].Unblocks++
			}
			continue
		}
		if r.old[need].Status != Done {
			c.Unmet++
		}
	}
}

// handDownHeld gives the children what holds a case up, and how far its operation is.
func (r *resolver) handDownHeld(i int, kids [][]int) {
	c := &r.cases[i]
	for _, k := range kids[i] {
		kid := &r.cases[k]
		kid.Held, kid.Siblings, kid.SiblingsDone = c.Holds(), c.Children, c.ChildrenDone
		r.handDownHeld(k, kids)
	}
}
