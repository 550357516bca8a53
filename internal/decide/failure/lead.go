package failure

import (
	"cmp"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/ranking"
	"github.com/pawl-dev/pawl/internal/decide/failure/runners"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file corrects what the rules chose by what outputs of all tools share: the ranking of lines, the
// places that they name, and the marks beside names of tests.

// solverSays begins the line in which a solver of versions explains why none fits.
var solverSays = lazy.Regexp(`^(?:Because |\[__\d+\] (?:rejecting|unknown package): )`)

// rankMargin is by how much another line must rank above the one that the rules chose.
const rankMargin = 1

// isCertain reports whether the rules know the form of what they chose: a test with its message, the words of a
// provider or the network, a key that is refused, a solver of versions, or a warning that is the cause.
func (o *outline) isCertain(v verdict, items []Item) bool {
	if len(items) > 0 && items[0].Test != "" {
		return true
	}
	solved := v.line >= 0 && solverSays().MatchString(o.textAt(v.line))
	person := v.class == Auth && v.weight > floorWeight
	return solved || person || isProviderFault(v.class) || v.class == ContextLength || v.flags&loud != 0
}

// leadItems puts first the item at the line that ranks best, where that is clear. It returns the
// items and the number of that line, at if the rules keep their choice.
func (o *outline) leadItems(items []Item, at int) ([]Item, int) {
	chosen := at
	if len(items) > 0 {
		chosen = o.lineOfItem(items[0], at)
	}
	best := o.clearestLine(chosen)
	if best == chosen {
		return items, at
	}
	said := plainSpaces(o.textAt(best))
	same := func(i Item) bool {
		first := firstLine(i.Message)
		within := len(first) > 8 && strings.Contains(said, first)
		return within || strings.HasPrefix(first, said)
	}
	lead := o.noteItem(best)
	if n := slices.IndexFunc(items, same); n >= 0 {
		lead = items[n]
		items = slices.Delete(slices.Clone(items), n, n+1)
	}
	return slices.Insert(items, 0, lead), best
}

// plainSpaces is s with one blank where it has several.
func plainSpaces(s string) string { return strings.Join(strings.Fields(s), " ") }

// firstLine is the first line of a message.
func firstLine(message string) string {
	first, _, _ := strings.Cut(message, "\n")
	return plainSpaces(first)
}

// lineOfItem returns the number of the line that the message of an item begins with; other if there is none.
func (o *outline) lineOfItem(item Item, other int) int {
	said := firstLine(item.Message)
	if said == "" {
		return other
	}
	for _, i := range slices.Concat([]int{max(0, other)}, o.shown) {
		if strings.Contains(plainSpaces(o.t.LineAt(i)), said) {
			return i
		}
	}
	return other
}

// clearestLine returns the line that ranks best; chosen where that does not rank much lower, or was not ranked.
func (o *outline) clearestLine(chosen int) int {
	if o.scores == nil {
		texts := make([]string, len(o.shown))
		for n, i := range o.shown {
			texts[n] = o.t.LineAt(i)
		}
		o.scores = ranking.Lines(texts)
	}
	best, own, scores := -1, slices.Index(o.shown, chosen), o.scores
	for _, roles := range [][]part{{doing, plain, hinting, erring, raising}, {result}, {aside}} {
		for n, i := range o.shown {
			if !slices.Contains(roles, o.parts[i]) || scores[n] == ranking.None || notice().MatchString(o.textAt(i)) {
				continue
			}
			if best < 0 || scores[n] > scores[best] || roles[0] == aside {
				best = n
			}
		}
		if best >= 0 {
			break
		}
	}
	unranked := own < 0 && chosen >= 0
	near := own >= 0 && best >= 0 && scores[best]-scores[own] <= rankMargin
	if best < 0 || unranked || near {
		return chosen
	}
	return o.shown[best]
}

// addGeneral adds what no rule has read: the names of failing tests, and places.
func (o *outline) addGeneral(items []Item, v verdict) []Item {
	if !slices.ContainsFunc(items, func(i Item) bool { return i.Test != "" }) {
		items = append(items, namedTests(o.t, v.class)...)
	}
	return boundItems(append(items, o.otherPlaces(items, v.line)...))
}

// maxPlaces is how many places an output adds to what its rules have read.
const maxPlaces = 6

// otherPlaces are items for the places in the project that no item has: those next to line at, at most
// maxPlaces of them.
func (o *outline) otherPlaces(items []Item, at int) (others []Item) {
	distance := func(i int) int { return max(i-at, at-i) }
	near := slices.Clone(o.shown)
	slices.SortStableFunc(near, func(a, b int) int { return distance(a) - distance(b) })
	for _, i := range near {
		l := o.t.LineAt(i)
		p, ok := places.In(l)
		if !ok {
			p, ok = o.scatteredPlace(i)
		}
		usual := len(o.usual.lines) > 0 && o.usual.lines[stableText(strings.TrimSpace(l))]
		if !ok || usual || isWarning(l) || passed().MatchString(l) {
			continue
		}
		for ; ok && len(others) < maxPlaces; p, ok = places.In(p.Rest) {
			if !isFunctionCall(l, p) && !places.IsForeign(p.File) && !hasPlace(items, p) && !hasPlace(others, p) {
				others = append(others, Item{File: p.File, Line: p.Line, Column: p.Col, Message: strings.TrimSpace(l)})
			}
		}
	}
	for _, i := range near {
		others = append(others, o.listedBelow(i, slices.Concat(items, others), maxPlaces-len(others))...)
	}
	return others
}

// listedBelow returns an item for the file that line i names above a list or a difference, unless the items have it
// or there is no room.
func (o *outline) listedBelow(i int, items []Item, room int) []Item {
	file := places.Heading(o.textAt(i))
	isNamed := func(it Item) bool { return path.Base(it.File) == path.Base(file) }
	if room <= 0 || file == "" || i+1 >= o.t.LineCount() || places.IsForeign(file) ||
		slices.ContainsFunc(items, isNamed) {
		return nil
	}
	below := o.t.LineAt(i + 1)
	isList := words.Indent(below) > words.Indent(o.t.LineAt(i)) || strings.HasPrefix(below, "+++ ")
	if !isList || passed().MatchString(below) {
		return nil
	}
	return []Item{{File: file, Message: strings.TrimSpace(below)}}
}

// isFunctionCall reports whether a place is a call in a line of source: "cart.add(2)".
func isFunctionCall(l string, p places.Place) bool {
	bracket := strings.HasPrefix(l[min(len(l), p.From+len(p.File)):], "(")
	return bracket && p.Rest != "" && !strings.HasPrefix(p.Rest, ":")
}

func hasPlace(items []Item, p places.Place) bool {
	return slices.ContainsFunc(items, func(i Item) bool {
		return i.Line == p.Line && path.Base(i.File) == path.Base(p.File)
	})
}

// namedTests are the tests that stand beside the mark of a failure; where something else than a test
// is wrong, only those that are called a test.
func namedTests(t printed.Text, c Class) []Item {
	if !slices.Contains([]Class{TestFailure, Crash, Timeout, Dependency}, c) {
		return nil
	}
	return slices.DeleteFunc(runners.Named(t), func(i Item) bool {
		other := c != TestFailure && !strings.Contains(strings.ToLower(i.Test), "test")
		return other || places.IsFile(i.Test) || strings.HasSuffix(i.Test, ".")
	})
}

// guessedLines are how many of the last lines a class is guessed by.
const guessedLines = 100

// guessClass takes the class that the words of an output speak for, [Unknown] where they are not clear. It is
// always one that the agent repairs.
func guessClass(h *hits) verdict {
	var lines []string
	for i := max(0, h.t.LineCount()-guessedLines); i < h.t.LineCount(); i++ {
		said := varying().ReplaceAllString(h.t.LineAt(i), "")
		lines = append(lines, dates().ReplaceAllString(said, ""))
	}
	if len(h.alarms)+len(h.doubts) == 0 {
		return verdict{class: Unknown, line: -1}
	}
	return verdict{class: cmp.Or(Class(ranking.Class(lines)), Unknown), line: -1}
}

// decisiveLine returns the number of the line that decided, unless that is a field, a frame or an echo, or no
// line decided: then it is the one that ranks best.
func (o *outline) decisiveLine(v verdict) int {
	for j := max(0, v.line-aroundMax); v.class == Dependency && j < min(v.line+aroundMax, o.t.LineCount()); j++ {
		if solverSays().MatchString(o.textAt(j)) {
			return j
		}
	}
	if v.line < 0 && v.weight > 0 {
		return v.line
	}
	shown := v.line >= 0 && o.parts[v.line] != aside
	if v.line >= 0 && v.flags&loud != 0 {
		shown = shown || isWarning(o.textAt(v.line))
	}
	if shown && (o.parts[v.line] != result || v.weight >= 90) {
		return v.line
	}
	at := o.clearestLine(-1)
	if at < 0 || v.class != Unknown && o.parts[at] < plain {
		return v.line
	}
	return at
}
