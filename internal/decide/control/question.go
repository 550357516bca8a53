package control

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/fault"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Effect is the effect of choosing an option.
type Effect string

// The effects.
const (
	TryAgain Effect = "retry"     // another allowance of attempts, with what the person said
	Accept   Effect = "accept"    // the work counts as it is
	TakeOver Effect = "take over" // the loop ends; the files stay as they are
	GiveUp   Effect = "give up"   // the loop ends; what it changed is undone, or what came after To
	GoBack   Effect = "go back"   // another allowance, from the files as To left them
	Raise    Effect = "raise"     // another allowance, and the guard that stopped it counts to twice as many
	// ReviewAgain lets the reviewing agent look once more.
	ReviewAgain Effect = "review again"
)

// EndsRun reports whether no agent works any more after the effect.
func (e Effect) EndsRun() bool { return e == Accept || e == TakeOver || e == GiveUp }

// Choice is one option of a question. It is stored: fields can be added, but
// names must not change.
type Choice struct {
	Text string `json:"text"`
	Do   Effect `json:"do"`
	// To is the iteration whose files an option goes back to; 0 is before the first.
	To int `json:"to,omitempty"`
	// Answer is for the prompt of the next attempt when a person chose this.
	Answer string `json:"answer,omitempty"`
	// Advice is true when the person is invited to add words of their own.
	Advice bool `json:"advice,omitempty"`
	// Needs is true when the option means nothing without such words.
	Needs bool `json:"needs,omitempty"`
}

// Question is a question to a person.
type Question struct {
	Text    string
	Choices []Choice
}

// Offer is what helps where a loop was stopped.
type Offer struct {
	// Green work can be accepted: a person may overrule a review, but not a red test.
	Green bool
	// Cured is the class of what only a person can cure; "" is nothing of that kind.
	Cured failure.Class
	// Best is an iteration whose files were better than they are now; 0 is none.
	Best int
	// Limit names the guard whose threshold can be raised, from what and to what; "" is none.
	Limit string
	// Kept is the last iteration that was green, which giving up keeps; 0 is none.
	Kept int
	// Elsewhere is true where another program works: no loop of pawl's ends.
	Elsewhere bool
	// Task is true for the work of a task, which stays in its workspace and lands by the queue.
	Task bool
	// TestStays is true when no agent may change the test that fails.
	TestStays bool
}

// curedCauseText returns the words for a cause of failure that a person has removed.
func curedCauseText(class failure.Class) string {
	switch class {
	case failure.Auth:
		return "the key or login works now"
	case failure.QuotaExhausted:
		return "there is credit again"
	case failure.LimitExceeded:
		return "there is room below the limit again"
	case failure.MissingCommand:
		return "the program is installed now"
	case failure.Dependency:
		return "what it needs is installed now"
	case failure.Permission:
		return "access is allowed now"
	case failure.ResourceExhausted:
		return "there is room again"
	}
	return "the cause is fixed"
}

// Choices are the options after anything that stopped a loop.
func Choices(o Offer) []Choice {
	var list []Choice
	if o.Cured != "" {
		list = append(list, Choice{Text: "Continue: " + curedCauseText(o.Cured), Do: TryAgain})
	}
	list = append(list, Choice{Text: "Try again, with guidance", Do: TryAgain, Advice: true})
	return append(list, otherChoices(o)...)
}

// otherChoices are the options beside trying again as things are.
func otherChoices(o Offer) []Choice {
	var list []Choice
	if o.Best > 0 {
		list = append(list, Choice{Do: GoBack, To: o.Best, Advice: true,
			Text: fmt.Sprintf("Go back to iteration %d, the best so far, and try again", o.Best)})
	}
	if o.Limit != "" {
		list = append(list, Choice{Text: "Raise the limit of " + o.Limit + ", and continue", Do: Raise, Advice: true})
	}
	if o.Green {
		list = append(list, Choice{Text: "Accept the work as it is", Do: Accept})
	}
	take := "Take it over yourself: pawl stops, and the work comes into your files"
	switch {
	case o.Elsewhere:
		take = "Take it over yourself: the files stay as they are"
	case o.Task:
		take = "Take it over yourself: pawl stops, and you finish the work in its workspace"
	}
	list = append(list, Choice{Text: take, Do: TakeOver})
	if o.Kept > 0 {
		return append(list,
			Choice{Text: fmt.Sprintf("Give up: keep what iteration %d left, the last that was green", o.Kept),
				Do: GiveUp, To: o.Kept},
			Choice{Text: "Give up: undo all changes", Do: GiveUp})
	}
	return append(list, Choice{Text: "Give up: undo the changes", Do: GiveUp})
}

// Verdicts are the options on green work that waits for its review. again
// offers another look by an agent; task is true for the work of a task.
func Verdicts(again, task bool) []Choice {
	list := []Choice{
		{Text: "Approve the work", Do: Accept},
		{Text: "Reject it, and say what must change", Do: TryAgain, Advice: true, Needs: true},
	}
	if again {
		list = append(list, Choice{Text: "Let the agent review it again", Do: ReviewAgain})
	}
	return append(list, otherChoices(Offer{Task: task})...)
}

// Ask words the question after attempts that did not pass: what stands in the
// way, the facts in conflict, and the options that decide it.
func Ask(attempts int, last Outcome, offer Offer) Question {
	offer.Green = last.byReview()
	lead := fmt.Sprintf("After %s", fault.Numbered(attempts, "attempt"))
	if !last.byReview() {
		return askAboutTests(lead, last, offer)
	}
	what := last.Said
	if what == "" && len(last.Found) > 0 {
		what = last.Found[0].String()
	}
	if what != "" {
		what = ": " + clipText(joinLines(what), maxSummary)
	}
	if last.Review == Rejected {
		return Question{lead + ", the tests pass and the review still rejects the work" + what +
			"\n\nIs the review right?",
			append([]Choice{{
				Text: "Yes: try again with its feedback", Do: TryAgain, Advice: true,
				Answer: "The review is right: do what it asks.",
			}}, otherChoices(offer)...)}
	}
	return Question{lead + ", the tests pass, and the review has not decided" + what + "\n\nIs the work good?",
		Choices(offer)}
}

func askAboutTests(lead string, last Outcome, offer Offer) Question {
	f, ok := findConflict(last.Failure)
	if !ok {
		what := "the work still does not pass"
		if h := mainFinding(last.Failure); h != "" {
			what += ": " + clipText(joinLines(h), maxSummary)
		}
		return Question{fmt.Sprintf("%s, %s\n\nHow should it continue?", lead, what), Choices(offer)}
	}
	where := strings.TrimSpace(strings.Join([]string{f.placeText(), f.Test}, " "))
	if where != "" {
		where = ": " + clipText(where, maxSummary)
	}
	want, got := clipText(joinLines(f.Expected), maxSummary), clipText(joinLines(f.Received), maxSummary)
	text := fmt.Sprintf("%s, the test still fails%s\n\nThe test expects: %s\nThe code gives: %s\n\nWhich is right?",
		lead, where, want, got)
	choices := []Choice{{
		Text: fmt.Sprintf("What the test expects, %s: change the implementation", optionText(want)),
		Do:   TryAgain, Advice: true,
		Answer: "The test is right: it expects " + want + ". Change the implementation.",
	}}
	if !offer.TestStays {
		choices = append(choices, Choice{
			Text: fmt.Sprintf("What the code gives, %s: change the test", optionText(got)), Do: TryAgain, Advice: true,
			Answer: "The implementation is right: it gives " + got + ". Change the test.",
		})
	}
	choices = append(choices, Choice{Text: "Neither: try again, with guidance", Do: TryAgain, Advice: true})
	return Question{text, append(choices, otherChoices(offer)...)}
}

// findConflict is the finding in which a test and the code disagree.
func findConflict(a *failure.Analysis) (Finding, bool) {
	if a == nil {
		return Finding{}, false
	}
	for _, item := range a.Items {
		if item.Expected != "" && item.Received != "" && item.Expected != item.Received {
			return Finding{Item: item}, true
		}
	}
	return Finding{}, false
}

// optionText is a value as an option names it.
func optionText(value string) string { return clipText(value, 60) }

// Past is the record of an earlier attempt that did not pass.
type Past struct {
	Class       failure.Class
	Fingerprint string
	Summary     string
	// Where is the file, else the test, that failed; empty when not known.
	Where string
}

// Pattern says in words what the attempts that did not pass, oldest first,
// have in common; "" when nothing is known to be.
func Pattern(past []Past) string {
	history := lists.Each(past, func(p Past) failure.Analysis {
		return failure.Analysis{Class: p.Class, Fingerprint: p.Fingerprint}
	})
	n := len(past)
	switch failure.Pattern(history) {
	case failure.RepeatedIdentical:
		same := 1
		for same < n && past[n-1-same].Fingerprint == past[n-1].Fingerprint {
			same++
		}
		text := fmt.Sprintf("the same failure %d times in a row", same)
		if s := joinLines(past[n-1].Summary); s != "" {
			text += ": " + s
		}
		return clipText(text, maxLine)
	case failure.OscillationPattern:
		return clipText(fmt.Sprintf("two failures alternate: %s / %s",
			joinLines(past[n-2].Summary), joinLines(past[n-1].Summary)), maxLine)
	case failure.ConsistentFailure:
		if where := sameWhere(past); where != "" {
			return where
		}
		return fmt.Sprintf("the same kind of failure each time (%s), in different forms", classWords(past[n-1].Class))
	case failure.AlternatingErrors:
		return "each attempt failed in a different way than the one before"
	}
	return sameWhere(past)
}

// sameWhere names the place in which all attempts failed; "" when there is
// none, or one attempt only.
func sameWhere(past []Past) string {
	elsewhere := func(p Past) bool { return p.Where == "" || p.Where != past[0].Where }
	if len(past) < 2 || slices.ContainsFunc(past, elsewhere) {
		return ""
	}
	return clipText(fmt.Sprintf("always %s, in different forms", joinLines(past[0].Where)), maxLine)
}
