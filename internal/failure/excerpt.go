package failure

import "strings"

// excerpt reads failing tests from a piece of a runner's output that lacks its
// summary, as people and agents paste it: a line that names a file or a test,
// and below it what was expected and what was received.
func excerpt(t text) []Item {
	var items []Item
	var b body
	flush := func() {
		if b.item.Expected != "" && b.item.Received != "" && len(items) < maxItems {
			items = append(items, b.item)
		}
	}
	for i := range t.len() {
		said := strings.TrimSpace(t.line(i))
		if it, ok := heading(said); ok {
			flush()
			if it.File == "" {
				it.File = b.item.File
			}
			b = body{item: it}
			continue
		}
		if b.item.Expected != "" && b.item.Received != "" {
			if want, got := expectation(said); want != "" || got != "" { // the next one
				flush()
				b = body{item: Item{File: b.item.File, Test: b.item.Test}}
			}
		}
		if said != "" {
			b.add(said)
		}
	}
	flush()
	return items
}

// heading reads a line that says which file or which test failed.
func heading(said string) (Item, bool) {
	if rest, ok := strings.CutPrefix(said, "● "); ok {
		return Item{Test: rest}, true
	}
	if rest, ok := strings.CutPrefix(said, "--- FAIL: "); ok {
		return Item{Test: strings.Fields(rest + " ?")[0]}, true
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
	if looksLikeFile(file) {
		return Item{File: file, Test: test}, true
	}
	return Item{Test: rest}, true
}
