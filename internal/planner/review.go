package planner

import (
	"errors"
	"slices"

	"github.com/pawl-dev/pawl/internal/engine"
	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/loop"
	"github.com/pawl-dev/pawl/internal/prompt"
)

// builtinReview is what a reviewer is told to look for when the configuration
// does not say.
const builtinReview = "review/diff"

// reviewPolicy sets who reviews green work. A batch is collected until a
// sprint ends; a run of its own has no sprint, so each is asked for like that
// of a person.
func (d draft) reviewPolicy(pol *loop.Policy) {
	switch d.Config.Review.Mode {
	case "agent":
		pol.Review, pol.Reviewer = true, d.Config.Review.Agent
	case "person", "batch":
		pol.Review, pol.Reviewer = true, loop.Person
	}
}

// reviewer is who looks at the work, for the author's prompt.
func reviewer(pol *loop.Policy) string {
	switch {
	case !pol.Review:
		return ""
	case pol.Reviewer != "":
		return pol.Reviewer
	}
	return pol.Agent
}

// review resolves the reviewing agent, which must be installed, and its prompt.
func (d draft) review(plan *engine.Plan) error {
	if d.Config.Review.Mode != "agent" {
		return nil
	}
	if name := plan.Policy.Reviewer; name != "" {
		if err := d.add(plan.Agents, name, true); err != nil {
			err = onlyFirstHint(err,
				"Or review with another program, or with the author's own: take review.agent out of the configuration")
			return about("review.agent", err)
		}
	}
	plan.Review = engine.Review{Purpose: d.p.Summary}
	if f := d.Config.Review.Prompt; f != nil {
		plan.Review.Fragment = prompt.Fragment{Name: f.Name, Text: f.Text}
		return nil
	}
	text, _ := prompt.Builtin(builtinReview)
	plan.Review.Fragment = prompt.Fragment{Name: "builtin:" + builtinReview, Text: text}
	return nil
}

// onlyFirstHint puts a hint in the place of all but the first of an error about
// an agent: those say how --agent would choose another one.
func onlyFirstHint(err error, hint string) error {
	var e *fault.Error
	if !errors.As(err, &e) {
		return err
	}
	out := fault.Of(e.Kind, e.Err)
	out.Hints = slices.Clone(e.Hints[:min(1, len(e.Hints))])
	return out.Hint("%s", hint)
}
