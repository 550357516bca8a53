package prompt

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/fault"
	"github.com/pawl-dev/pawl/internal/lazy"
)

// maxListed bounds the files of a patch that are listed by name.
const maxListed = 300

// patch is a change by files.
type patch struct{ files []patched }

// patched is what happened to one file.
type patched struct {
	path         string
	text         string
	added, taken int
	folded       string // why it is not shown; empty when it is
}

// readPatch splits what git writes into its files.
func readPatch(text string) patch {
	var p patch
	inHunk := false
	var b strings.Builder
	flush := func() {
		if n := len(p.files); n > 0 {
			p.files[n-1].text = b.String()
		}
		b.Reset()
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "diff --git ") {
			flush()
			p.files = append(p.files, patched{path: headerPath(line)})
			inHunk = false
		}
		if len(p.files) == 0 {
			continue
		}
		f := &p.files[len(p.files)-1]
		switch {
		case strings.HasPrefix(line, "@@ "):
			inHunk = true
		case !inHunk && strings.HasPrefix(line, "+++ b/"):
			f.path = strings.TrimRight(strings.TrimPrefix(line, "+++ b/"), "\t\r\n")
		case inHunk && line[0] == '+':
			f.added++
		case inHunk && line[0] == '-':
			f.taken++
		}
		b.WriteString(line)
	}
	flush()
	for i := range p.files {
		p.files[i].folded = folded(p.files[i].path, p.files[i].text)
	}
	return p
}

// headerPath is the path of "diff --git a/X b/X".
func headerPath(line string) string {
	line = strings.TrimSpace(strings.TrimPrefix(line, "diff --git "))
	if i := strings.LastIndex(line, " b/"); i >= 0 {
		return line[i+3:]
	}
	return line
}

// locks are files that package managers write.
var locks = []string{
	"go.sum", "go.work.sum", "package-lock.json", "npm-shrinkwrap.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock",
	"bun.lockb", "deno.lock",
	"Cargo.lock", "poetry.lock", "uv.lock", "pdm.lock", "Pipfile.lock", "composer.lock", "Gemfile.lock", "mix.lock",
	"flake.lock",
	"packages.lock.json", "gradle.lockfile", "Podfile.lock", "pubspec.lock", "Package.resolved",
}

var (
	generatedName = lazy.Regexp(
		`(?:\.pb\.go|_pb2(?:_grpc)?\.pyi?|\.pb\.(?:cc|h)|\.min\.(?:js|css)|\.(?:js|css)\.map|\.generated\.[a-z]+|\.g\.dart|\.snap)$`)
	// generatedMark is what generators write on top of a file.
	generatedMark = lazy.Regexp(
		`(?m)^[+ ](?://|#|/\*|--|;|<!--)?[ *]*(?:Code generated .* DO NOT EDIT\.?|@generated\b)`)
)

// folded says why a file's patch is not shown.
func folded(name, text string) string {
	switch {
	case slices.Contains(locks, path.Base(name)):
		return "lock file"
	case strings.HasPrefix(name, "vendor/"), strings.HasPrefix(name, "node_modules/"),
		strings.Contains(name, "/node_modules/"):
		return "dependencies"
	case generatedName().MatchString(name), generatedMark().MatchString(text[:min(len(text), 4096)]):
		return "generated"
	}
	return ""
}

// listing names every file, with what is not shown of it.
func (p patch) listing() string {
	var b strings.Builder
	fmt.Fprintf(&b, "What differs from the files before the work began, %s:", fault.Numbered(len(p.files), "file"))
	for i, f := range p.files {
		if i == maxListed {
			fmt.Fprintf(&b, "\n- and %d more", len(p.files)-i)
			break
		}
		fmt.Fprintf(&b, "\n- %s +%d -%d", oneLine(f.path), f.added, f.taken)
		if f.folded != "" {
			fmt.Fprintf(&b, " (%s, not shown below: read it in the work tree if it matters)", f.folded)
		}
	}
	return b.String()
}

// text is the patches that are shown, about limit bytes of them: each file
// gets an equal share, and what small ones leave goes to the others.
func (p patch) text(limit int) string {
	var sizes []int
	for _, f := range p.files {
		if f.folded == "" {
			sizes = append(sizes, len(f.text))
		}
	}
	share := fairShare(sizes, limit)
	var b strings.Builder
	for _, f := range p.files {
		if f.folded == "" {
			b.WriteString(firstLines(f.text, share))
		}
	}
	return b.String()
}

// fairShare is the most that each may have so that all of them fit the limit.
func fairShare(sizes []int, limit int) int {
	slices.Sort(sizes)
	for i, size := range sizes {
		left := len(sizes) - i
		if size*left > limit {
			return limit / left
		}
		limit -= size
	}
	return 1 << 30
}

// firstLines is a file's patch up to limit bytes, whole lines.
func firstLines(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	head := text[:limit]
	head = head[:strings.LastIndexByte(head, '\n')+1]
	more := strings.Count(text[len(head):], "\n")
	return head + fmt.Sprintf("… %d more lines of this file's patch: read it in the work tree\n", more)
}
