package survey

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

var (
	// runners are red where they find no test.
	runners = lazy.Regexp(`\b(go test|cargo (nextest|test)|pytest|unittest)\b`)
	// scriptRunners are the same in the script of a package.json.
	scriptRunners = lazy.Regexp(`"test"\s*:\s*"[^"]*\b(node --test|jest|vitest|mocha|ava|tap|uvu|bun test)\b`)
	npmTest       = lazy.Regexp(`\b(npm|pnpm|yarn|bun)( run)? test\b`)
	// testPlaces are paths of tests, in the languages of these runners.
	testPlaces = lazy.Regexp(`(?i)(^|/)(tests?|specs?|__tests__)/.+\.\w+$|(^|[/._-])(tests?|specs?)\.\w+$|(^|/)tests?[._-][^/]*$`)
	rustTests  = lazy.Regexp(`#\[(\w+::)?test\b|#\[cfg\(test\)`)
)

// lookedAt bounds the files that are looked at for a test: so many have one.
const lookedAt = 20_000

// untested makes warnings of test gates that could only be red, as nothing here is a test.
func (r repository) untested(p *Proposal) {
	searched, has := false, false
	for i, g := range p.Gates {
		script := npmTest().MatchString(g.Command) && scriptRunners().MatchString(r.text("package.json"))
		if g.Kind != "test" || !script && !runners().MatchString(g.Command) {
			continue
		}
		if !searched {
			searched, has = true, r.hasTests()
		}
		if has {
			return
		}
		p.Gates[i].Required = false
		p.Notes = append(p.Notes, fmt.Sprintf("No test was found, and a test gate without tests is red: "+
			"'%s' is only a warning. Take its 'required: false' out with the first test.", g.Command))
	}
}

// hasTests is true if any file looks like a test, or if there are too many to look at.
func (r repository) hasTests() bool {
	n, found := 0, false
	err := filepath.WalkDir(r.dir, func(path string, e fs.DirEntry, err error) error {
		n++
		switch name := e.Name(); {
		case err != nil:
			return fs.SkipDir // what cannot be read has no tests
		case e.IsDir() && path != r.dir && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "vendor"):
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		rel := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(r.dir)+"/")
		found = testPlaces().MatchString(rel) || n > lookedAt ||
			strings.HasSuffix(rel, ".rs") && rustTests().MatchString(r.text(rel))
		if found {
			return fs.SkipAll
		}
		return nil
	})
	return found || err != nil
}
