package trial

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Task is a commit of the history as a task. What is stored outlives the code.
type Task struct {
	Commit string   `json:"commit"`
	Parent string   `json:"parent"` // where work on it begins
	Title  string   `json:"title"`
	Words  string   `json:"words"` // for the agent
	Tests  []string `json:"tests"` // files of tests that the commit changed
	Files  int      `json:"files"` // other files that it changed
	Lines  int      `json:"lines"` // added and deleted, in all files
}

// leastWords is how many words say enough to begin work.
const leastWords = 3

var (
	trailer = lazy.Regexp(`^(?:[A-Za-z][A-Za-z0-9]*(?:-[A-Za-z0-9]+)*: \S|\(cherry picked from )`)
	// A trailer of these stands in the middle of a text, too.
	knownTrailer = lazy.Regexp(`(?i)^(?:signed-off-by|co-authored-by|reviewed-by|acked-by|change-id|pawl-task|` +
		`git-svn-id|reviewed-on|tested-by): `)
	mergeLine = lazy.Regexp(`^Merge (?:pull request|branch|remote-tracking branch|commit|tag)\b`)
)

// Words are the title and the text of a commit's message for who is to do the same work: without trailers and without
// the line that git writes for a merge. ok is false for a message that says too little.
func Words(message string) (title, text string, ok bool) {
	lines := strings.Split(strings.ReplaceAll(message, "\r\n", "\n"), "\n")
	if mergeLine().MatchString(lines[0]) {
		lines = lines[1:]
	}
	kept := lines[:0:0]
	for _, line := range lines {
		if !knownTrailer().MatchString(line) {
			kept = append(kept, strings.TrimRight(line, " \t"))
		}
	}
	paragraphs := strings.Split(strings.TrimSpace(strings.Join(kept, "\n")), "\n\n")
	if last := len(paragraphs) - 1; last > 0 && onlyTrailers(paragraphs[last]) {
		paragraphs = paragraphs[:last]
	}
	text = strings.TrimSpace(strings.Join(paragraphs, "\n\n"))
	title, _, _ = strings.Cut(text, "\n")
	return title, text, len(strings.Fields(text)) >= leastWords
}

// The number of a pull request in the first line of the commit that merged it: as GitHub and Gitea write merges, or at
// the end, as both write squashed commits.
var requestNumber = lazy.Regexp(`^Merge pull request (?:'[^\n]*' \()?#(\d{1,9})\b|^[^\n]*\(#(\d{1,9})\)\s*(?:\n|$)`)

// RequestOf returns the number of the pull request that a commit merged, by its message; 0 is none.
func RequestOf(message string) int64 {
	var digits string
	if found := requestNumber().FindStringSubmatch(message); found != nil {
		digits = found[1] + found[2]
	}
	number, _ := strconv.ParseInt(digits, 10, 64) // 0 without digits
	return number
}

func onlyTrailers(paragraph string) bool {
	isWords := func(line string) bool { return !trailer().MatchString(line) }
	return !slices.ContainsFunc(strings.Split(paragraph, "\n"), isWords)
}

// runners are files that tools read to find out how tests are run.
var runners = lazy.Regexp(`(^|/)(GNUmakefile|[Mm]akefile|[Jj]ustfile|Rakefile|Taskfile\.ya?ml|package\.json|` +
	`pyproject\.toml|setup\.cfg|tox\.ini|pytest\.ini|\.rspec|phpunit\.xml(\.dist)?|\.mocharc\.[a-z]+|` +
	`(jest|vitest|karma|ava|playwright)\.config\.[a-z]+)$`)

// DecidesHowTestsRun reports whether who changes a file could have the commands of gates end green without the tests:
// it is one that test runners read, or a command names it. The path is relative to where commands run.
func DecidesHowTestsRun(file string, commands []string) bool {
	isNamed := func(command string) bool {
		words := strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(" \t\n\"'`;&|()<>=$", r) })
		return slices.ContainsFunc(words, func(word string) bool { return path.Clean(word) == file })
	}
	return runners().MatchString(file) || slices.ContainsFunc(commands, isNamed)
}
