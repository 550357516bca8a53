// Package patch reads git's patch of a file, so that a page can draw it.
package patch

import (
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// FileDiff is what differs in one file.
type FileDiff struct {
	Path      string `json:"path"`
	Binary    bool   `json:"binary" doc:"There is no text to show."`
	Truncated bool   `json:"truncated" doc:"The diff is too large: only its beginning is here."`
	OldMode   string `json:"old_mode" doc:"When the mode differs, e.g. 100644."`
	NewMode   string `json:"new_mode"`
	Hunks     []Hunk `json:"hunks" nullable:"false"`
}

// Hunk is a place that differs. The first character of a line says what it is:
// a blank for both, + for new, - for old, \ for a remark of git's.
type Hunk struct {
	OldStart int      `json:"old_start"`
	OldLines int      `json:"old_lines"`
	NewStart int      `json:"new_start"`
	NewLines int      `json:"new_lines"`
	Heading  string   `json:"heading" doc:"The function that it is in, as git sees it."`
	Lines    []string `json:"lines" nullable:"false"`
}

var hunkHead = lazy.Regexp(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@ ?(.*)$`)

// Read reads git's patch of one file.
func Read(patch string) FileDiff {
	d := FileDiff{Hunks: []Hunk{}}
	var h *Hunk
	for line := range strings.SplitSeq(strings.TrimSuffix(patch, "\n"), "\n") {
		if m := hunkHead().FindStringSubmatch(line); m != nil {
			d.Hunks = append(d.Hunks, Hunk{OldStart: toNumber(m[1]), OldLines: toCount(m[2]), NewStart: toNumber(m[3]),
				NewLines: toCount(m[4]), Heading: validUTF8(m[5]), Lines: []string{}})
			h = &d.Hunks[len(d.Hunks)-1]
			continue
		}
		if h != nil {
			h.Lines = append(h.Lines, validUTF8(line))
			continue
		}
		d.parseHeader(line)
	}
	return d
}

// parseHeader reads a line before the first hunk.
func (d *FileDiff) parseHeader(line string) {
	for prefix, to := range map[string]*string{"old mode ": &d.OldMode, "new mode ": &d.NewMode,
		"deleted file mode ": &d.OldMode, "new file mode ": &d.NewMode} {
		if mode, ok := strings.CutPrefix(line, prefix); ok {
			*to = mode
		}
	}
	if strings.HasPrefix(line, "Binary files ") || strings.HasPrefix(line, "GIT binary patch") {
		d.Binary = true
	}
}

func validUTF8(line string) string { return strings.ToValidUTF8(line, "\uFFFD") }

func toNumber(text string) int {
	n, _ := strconv.Atoi(text) // the pattern has digits only
	return n
}

// toCount returns a number of lines; git leaves a single one out.
func toCount(text string) int {
	if text == "" {
		return 1
	}
	return toNumber(text)
}
