// Package deliver decides what becomes of work in a private workspace: whether it goes
// into the person's checkout now, waits, or needs a person.
//
//	the iteration ended well,         in the checkout nothing        ─▶ Deliver
//	its gates are green               of it was touched
//	                                  the person committed meanwhile ─▶ Combine
//	                                  a path of it was changed       ─▶ Combine
//	                                  a path of it was staged        ─▶ Wait
//	                                  another branch is there now    ─▶ Rest, until a person says
//	                                                                    where it goes: Combine
//	                                  it changes what runs by itself ─▶ Ask
//	anything else                                                    ─▶ Nothing
//
// Data in, data with a reason out: no clock, no files, no git. Package delivery finds
// the facts out and carries the decision out.
package deliver

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// When says at which times verified work is delivered.
type When string

// What run.deliver may be.
const (
	Each  When = "each" // after each iteration that ends green
	AtEnd When = "end"  // once, when the run completes
	Asked When = "ask"  // when a person says so: pawl apply
)

// Place is how what is checked out is to what the work began with.
type Place int

// What may have become of the person's branch.
const (
	Same      Place = iota // as it was
	Ahead                  // the person committed on top of it
	Rewritten              // reset, rebased or amended
	Switched               // another branch, or none
)

// Facts are what is known when it is decided.
type Facts struct {
	When      When
	Completed bool // the run is complete
	Green     bool // the agent ended well, required gates are green, nothing protected changed
	Requested bool // a person asked for it now: what is green or not is theirs to know
	GoesOn    bool // a person has the run go on from the branch as it is now
	TakenBack bool // a person took it back

	Commits int // that the branch does not have
	Files   int // that differ from the checkout's, committed or not

	Place Place
	Began string // the branch that the work began on; "" is a detached HEAD
	From  string // the commit
	Now   string // what is checked out now
	// Unjudged: something of the person's came in beside the work, after the gates judged it.
	Unjudged bool
	Busy     string // an operation that is half done in the checkout, such as a rebase

	Overlap []string // paths of the work that the person changed meanwhile, too
	Staged  []string // paths of its commits for which the person staged something else
	Apart   []string // paths that its commits change and that a program filters, which pawl does not run
	Broken  string   // why the commits cannot be read
	// Loose are paths that an agent left uncommitted beside its commits, whose own tree the
	// gates did not find green without them.
	Loose []string
	// Unseen are paths of what runs by itself that no person has said yes to.
	Unseen []string
}

// Kind is what is to be done.
type Kind string

// What may be decided.
const (
	Nothing Kind = "nothing" // there is nothing to deliver, or not yet
	Deliver Kind = "deliver"
	Combine Kind = "combine" // put it together with the person's commits, and judge that
	Wait    Kind = "wait"    // it is tried again after the next iteration, or by pawl apply
	Rest    Kind = "rest"    // the run rests until a person has put the checkout in order
	Ask     Kind = "ask"     // a person has to say yes: pawl apply
	Settle  Kind = "settle"  // the run rests until a person has chosen between their lines and the agent's
)

// Decision is what is to be done, and why.
type Decision struct {
	Kind  Kind
	Why   string
	Paths []string // that it is about
	// AsFiles: what its commits change is delivered, too, but the commits stay.
	AsFiles bool
	// Back is the branch on which the work continues as it began, where another one is checked out.
	Back string `json:",omitempty"`
}

// Why red work stays, and what a person took back.
const (
	NotVerified = "it is not verified"
	TakenBack   = "you took it back"
)

// ResumeHint returns the commands for a person who wants to continue a run that rests.
func (d Decision) ResumeHint(run string) string {
	switch {
	case d.Kind == Settle:
		return "choose first what stays: pawl settle " + run
	case d.Back == "":
		return "continue from what is checked out now: pawl resume " + run
	}
	return fmt.Sprintf("apply it to what is checked out now: pawl apply %s; or switch back and continue: "+
		"git checkout %s && pawl resume %s", run, d.Back, run)
}

// ReasonToRest returns why the run rests and what continues it; "" where it need not rest.
func (d Decision) ReasonToRest(run string) string {
	if d.Kind != Rest && d.Kind != Settle {
		return ""
	}
	return d.Why + "; " + d.ResumeHint(run)
}

// Decide chooses what to do with the work.
func Decide(f Facts) Decision {
	due := map[When]bool{Each: true, AtEnd: f.Completed}[f.When]
	switch {
	case f.Files == 0 && f.Commits == 0:
		return Decision{Kind: Nothing, Why: "nothing is new"}
	case !f.Requested && f.TakenBack:
		return Decision{Kind: Nothing, Why: TakenBack}
	case !f.Requested && !f.Green:
		return Decision{Kind: Nothing, Why: NotVerified}
	case !f.Requested && f.When == Asked:
		return Decision{Kind: Ask, Why: "run.deliver is ask"}
	case !f.Requested && !due:
		return Decision{Kind: Nothing, Why: "it is delivered when the run completes (run.deliver: end)"}
	}
	goesOn := f.GoesOn && f.Place == Rewritten
	if f.isElsewhere() && !f.Requested && !goesOn {
		return Decision{Kind: Rest, Why: f.whyElsewhere(), Back: f.switchBack()}
	}
	switch {
	case f.Busy != "":
		return Decision{Kind: Wait, Why: fmt.Sprintf("a %s is in progress in the checkout", f.Busy)}
	case f.Commits > 0 && f.Broken != "":
		return Decision{Kind: Wait, Why: "the commits of the agent cannot be read: " + f.Broken}
	case len(f.Apart) > 0:
		return Decision{Kind: Wait, Paths: f.Apart, Why: "it commits " + Some(f.Apart) + ", which .gitattributes " +
			"gives to a program that filters it; left uncommitted, it is delivered as a file"}
	case len(f.Unseen) > 0 && !f.Requested:
		return Decision{Kind: Ask, Paths: f.Unseen, Why: "it changes " + Some(f.Unseen) + ", which your own programs " +
			"run by themselves"}
	case f.Unjudged && !f.Requested:
		return Decision{Kind: Combine, Why: "your changes in the meantime came in after the gates ran"}
	case f.isElsewhere():
		return Decision{Kind: Combine, Why: f.whyElsewhere()}
	case f.Place == Ahead && f.Commits > 0:
		return Decision{Kind: Combine, Why: "you committed on " + branchName(f.Began) + " meanwhile"}
	case len(f.Overlap) > 0:
		return Decision{Kind: Combine, Paths: f.Overlap, Why: "you changed " + Some(f.Overlap) + " meanwhile, too"}
	case len(f.Staged) > 0:
		return Decision{Kind: Wait, Paths: f.Staged, Why: "you have staged something else for " + Some(f.Staged) +
			": commit or unstage it"}
	}
	loose := f.Commits > 0 && len(f.Loose) > 0
	switch {
	case !loose || f.Requested:
		return Decision{Kind: Deliver, Why: "it is verified"}
	case f.Files == 0:
		return Decision{Kind: Nothing, Paths: f.Loose, Why: "its commits alone are not verified"}
	}
	return Decision{Kind: Deliver, AsFiles: true, Paths: f.Loose, Why: "it is verified, but not its commits alone"}
}

// isElsewhere is true where the branch cannot be moved from what is checked out to the work.
func (f Facts) isElsewhere() bool {
	isRewritten := f.Place == Rewritten && f.Commits > 0
	return f.Place == Switched || isRewritten
}

func (f Facts) whyElsewhere() string {
	if f.Place == Rewritten {
		return branchName(f.Began) + " was reset, rebased or amended meanwhile"
	}
	return fmt.Sprintf("the work began on %s, and %s is checked out now", branchName(f.Began), branchName(f.Now))
}

func (f Facts) switchBack() string {
	if f.Place != Switched || f.Began == "" {
		return map[Place]string{Switched: f.From}[f.Place]
	}
	return branchName(f.Began)
}

// manyFiles is the number of new files from which on their folders are shown: so many are rarely
// wanted, and a cache or build output may have been left in the tree.
const manyFiles = 200

// ManyNew says how many files a change adds, and in which folder most of them are, where
// they are many; "" where they are not. Paths have slashes.
func ManyNew(added []string) string {
	if len(added) < manyFiles {
		return ""
	}
	added = slices.Sorted(slices.Values(added))
	folder, most := "", len(added)*4/5
	for i, first := range added[:len(added)-most+1] {
		if in := commonFolder(first, added[i+most-1]); len(in) > len(folder) {
			folder = in
		}
	}
	text := fault.Numbered(len(added), "new file")
	if folder != "" {
		text += ", most of them in " + folder
	}
	return text
}

func commonFolder(a, b string) string {
	end := 0
	for i := 0; i < min(len(a), len(b)) && a[i] == b[i]; i++ {
		if a[i] == '/' {
			end = i
		}
	}
	return a[:end]
}

func branchName(ref string) string {
	if ref == "" {
		return "a commit without a branch"
	}
	return strings.TrimPrefix(ref, "refs/heads/")
}

// named is how many paths a reason names.
const named = 3

// Some names paths, of many the first.
func Some(paths []string) string {
	text := strings.Join(lists.Each(paths[:min(len(paths), named)], strconv.Quote), ", ")
	if n := len(paths) - named; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
