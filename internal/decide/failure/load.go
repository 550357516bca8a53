package failure

import (
	"path"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file finds what stopped a file of tests from being loaded: runners say only that the file failed.

// loaderSays is what a runner says of a file of tests that it could not load, and nothing of why.
var loaderSays = lazy.Regexp(`^(?:exitCode: \d+|'?test failed'?|exited with a non-zero exit code.*|.{0,3})(?:\n|$)`)

// explainLoads gives failing files of tests the error that stopped them.
func (o *outline) explainLoads(items []Item) []Item {
	for n := range items {
		it := &items[n]
		file, _, _ := strings.Cut(it.Test, " exited with ")
		if !places.IsFile(file) || !loaderSays().MatchString(it.Message) {
			continue
		}
		i := o.thrownIn(path.Base(file))
		if i < 0 {
			continue
		}
		it.Message, it.File, it.Line, it.Column = o.said(i), file, 0, 0
		if p, ok := o.thrownAt(i); ok {
			it.File, it.Line, it.Column = p.File, p.Line, p.Col
		} else if _, from, ok := strings.Cut(it.Message, " imported from "); ok {
			it.File = places.Tidy(strings.Trim(from, `"'`))
		}
	}
	return items
}

// thrownIn is the line of the first exception beside which a file is named; -1 for none.
func (o *outline) thrownIn(file string) int {
	for i := range o.parts {
		if !exception().MatchString(o.said(i)) {
			continue
		}
		for j := max(0, i-aroundMax); j < min(o.t.len(), i+aroundMax); j++ {
			if strings.Contains(o.t.line(j), file) {
				return i
			}
		}
	}
	return -1
}

// thrownAt is the first place of the project below line i, at which an exception was thrown.
func (o *outline) thrownAt(i int) (places.Place, bool) {
	for j := i + 1; j < min(o.t.len(), i+2*aroundMax); j++ {
		if p, ok := places.In(o.said(j)); ok && !places.Foreign(p.File) {
			return p, true
		}
	}
	return places.Place{}, false
}
