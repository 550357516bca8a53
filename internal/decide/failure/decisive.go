package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file picks the line that describes a verdict best.

// bareName names an error, and says nothing of it.
var bareName = lazy.Regexp(`^\[?[\w.:\\]*(?:Error|Exception|Problem)(?:: [A-Z]+\d+)?[\]:]?$`)

// solverSays begins the line in which a solver of versions explains why none fits.
var solverSays = lazy.Regexp(`^(?:Because |\[__\d+\] (?:rejecting|unknown package): )`)

// decisiveLine returns the number of the line that describes the verdict best. Below the bare name of
// an error that is the next one.
func (o *outline) decisiveLine(h *hits, v verdict) int {
	i := o.decidedBy(h, v)
	for j := max(0, i-aroundMax); v.class == Dependency && j < min(i+aroundMax, o.t.LineCount()); j++ {
		if solverSays().MatchString(o.textAt(j)) {
			return j
		}
	}
	if i < 0 || !bareName().MatchString(o.textAt(i)) {
		return i
	}
	for j := i + 1; j < min(i+4, o.t.LineCount()); j++ {
		if said := o.textAt(j); strings.Contains(said, " ") && !stackFrame().MatchString(said) {
			if o.parts[j] >= plain {
				return j
			}
			break
		}
	}
	return i
}

// decidedBy returns the number of the line that decided, unless that is a field, a frame or an echo, or
// no line decided.
func (o *outline) decidedBy(h *hits, v verdict) int {
	v.line = o.firstLike(h, v)
	if v.line < 0 && v.class != Unknown {
		return v.line
	}
	shown := v.line >= 0 && o.parts[v.line] != aside
	if v.line >= 0 && v.flags&loud != 0 {
		shown = shown || isWarning(o.textAt(v.line))
	}
	if shown && (o.parts[v.line] != result || v.weight >= 90) {
		if above := max(0, v.line-2); o.parts[above] >= erring && onlyPlace().MatchString(o.textAt(v.line)) {
			return above
		}
		if o.t.LineAt(v.line)[0] == '\t' && o.parts[v.line-min(1, v.line)] >= erring { // it continues the line above
			return v.line - 1
		}
		why := min(v.line+1, o.t.LineCount()-1) // Rust says it on the next line
		if panicked().MatchString(o.textAt(v.line)) && o.parts[why] >= plain {
			return why
		}
		if o.parts[v.line] < erring {
			return v.line
		}
		if first := o.firstOfGroup(v.line); v.weight < 90 || h.speaksFor(v.class, first) {
			return first
		}
		return v.line
	}
	for _, one := range h.heavy {
		if one.rule.Class == v.class && o.parts[one.line] >= hinting && h.holdsAt(one) {
			return one.line
		}
	}
	at := o.headline()
	if at < 0 {
		return v.line
	}
	if v.class == Unknown || o.parts[at] >= plain {
		return at
	}
	return v.line
}

var panicked = lazy.Regexp(` panicked at .*:$`)

// onlyPlace is where an error is, as Terraform says it below the error.
var onlyPlace = lazy.Regexp(`^on \S+ line \d+(?:, in .*)?:$`)

// speaksFor reports whether a rule of class c holds in line i.
func (h *hits) speaksFor(c Class, i int) bool {
	return slices.ContainsFunc(h.all, func(one *hit) bool {
		return one.line == i && one.rule.Class == c && h.holdsAt(one)
	})
}

// firstLike is the first line of a list of complaints of which v has seen the last.
func (o *outline) firstLike(h *hits, v verdict) int {
	if v.line < 0 || !slices.Contains([]Class{Lint, Dependency}, v.class) {
		return v.line
	}
	said := func(one *hit) string { return h.small[one.from:one.to] }
	phrase := "" // the longest that speaks for the class
	for _, one := range h.all {
		if one.line == v.line && one.rule.Class == v.class && len(said(one)) > len(phrase) {
			phrase = said(one)
		}
	}
	for _, one := range h.all {
		alike := said(one) == phrase
		if v.class == Lint {
			alike = one.rule.Weight == v.weight
		}
		if alike && one.rule.Class == v.class && o.parts[one.line] != aside && h.holdsAt(one) {
			return one.line
		}
	}
	return v.line
}
