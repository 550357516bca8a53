package failure

import (
	"cmp"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
)

// excerpt reads failing tests from a piece of a runner's output that lacks its
// summary, as people and agents paste it: a line that names a file or a test,
// and below it what was expected and what was received.
func excerpt(t text) []Item {
	var items []Item
	var b body
	lead := "" // what was said before the values, where no heading names them
	flush := func() {
		if b.item.Expected != "" && b.item.Received != "" && len(items) < maxItems {
			items = append(items, b.item)
		}
	}
	for i := range t.len() {
		said := strings.TrimSpace(t.line(i))
		if it, ok := heading(said); ok {
			flush()
			it.File = cmp.Or(it.File, b.item.File)
			b = body{item: it}
			continue
		}
		if said == "" {
			b.value = nil
			continue
		}
		if i > 0 && strings.HasPrefix(strings.TrimSpace(t.line(i-1)), `File "`) { // the source of a call
			continue
		}
		want, got := places.Values(said)
		if leads(lead, said) && want+got == "" && b.value == nil {
			lead = said
		}
		if b.item.Expected != "" && b.item.Received != "" && want+got != "" { // the next one
			flush()
			b = body{item: Item{File: b.item.File, Test: b.item.Test}}
		}
		b.silent = b.item.File+b.item.Test == "" || b.silent // before the first heading anything may stand
		b.add(said)
		if b.silent && b.item.Message == "" && b.item.Expected != "" && b.item.Received != "" {
			if b.item.Message = lead; want != "" && got != "" {
				b.item.Message = said
			}
		}
	}
	flush()
	return items
}

// leads tells whether said, more than the line before it, says what values are about.
func leads(lead, said string) bool {
	word, _, _ := strings.Cut(said, " ")
	switch {
	case places.ValueLine().MatchString(said), sourceLine().MatchString(said),
		strings.ContainsAny(said[:1], "+-<>{}[]|^~"),
		word == "want", word == "have", word == "got":
		return false
	}
	return !raises().MatchString(lead) || raises().MatchString(said) || remarksOn(said)
}

// heading reads a line that says which file or which test failed.
func heading(said string) (Item, bool) {
	if rest, ok := strings.CutPrefix(said, "● "); ok {
		return Item{Test: rest}, true
	}
	if name, ok := numbered(said); ok { // jasmine
		return Item{Test: name}, true
	}
	rest, ok := strings.CutPrefix(said, "FAIL ")
	if !ok {
		rest, ok = strings.CutPrefix(said, "FAILED ")
	}
	if rest = strings.TrimSpace(rest); !ok || rest == "" {
		return Item{}, false
	}
	file, test, _ := strings.Cut(rest, " > ") // vitest
	if test == "" {
		file, test, _ = strings.Cut(rest, "::") // pytest
	}
	if places.IsFile(file) {
		return Item{File: file, Test: test}, true
	}
	return Item{Test: rest}, true
}
