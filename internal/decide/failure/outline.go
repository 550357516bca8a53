package failure

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file reads the structure that outputs of all programs share: what a
// runner echoes, progress, stacks, dumps of objects and source are not what
// went wrong, and neither is what the same gate prints when it is green.

// outlineLines bounds the lines at the end that are looked at.
const outlineLines = 400

// rankedLines bounds how many of them at the end are ranked, and how many with a word for an error before.
const rankedLines = 150

// part is the role of a line in an output, the most informative last.
type part int8

const (
	aside   part = iota // echo, progress, frame, field, source, advice, decoration
	doing               // says what is being done
	plain               // nothing says what it is
	result              // says that something failed or how much, and nothing of what
	hinting             // speaks of something that is not as it should be
	erring              // has a word for an error
	raising             // begins with the word for an error
)

// outline is the part of each line of a text.
type outline struct {
	t      printed.Text
	parts  []part
	shown  []int     // the lines that are ranked
	scores []float64 // how well each of them says what went wrong; nil until it is asked for
	usual  usual
	strict bool // warnings are errors here
}

// outlineOf looks at the last lines, and at the last ones before that with a
// word for an error. green is an output of the same command when it succeeded,
// "" when there is none.
func outlineOf(h *hits, green string) *outline {
	t := h.t
	end := max(0, t.LineCount()-outlineLines)
	o := &outline{t: t, parts: make([]part, t.LineCount()), usual: usualLinesIn(green),
		strict: strictly().MatchString(t.All)}
	before, _ := slices.BinarySearch(h.alarms, end)
	for _, i := range h.alarms[max(0, before-outlineLines):before] {
		o.classifyLine(h, i)
	}
	o.readBlocks(h, end)
	end = max(0, t.LineCount()-rankedLines)
	before, _ = slices.BinarySearch(h.alarms, end)
	o.shown = slices.Clone(h.alarms[max(0, before-rankedLines):before])
	for i := end; i < t.LineCount(); i++ {
		o.shown = append(o.shown, i)
	}
	return o
}

var strictly = lazy.Regexp(`(?i)\b(?:in strict mode|warnings found and -Werror specified` +
	`|warnings? (?:\w+ )?treated as errors?|aborted due to warnings|warnings as errors)\b`)

// readBlocks looks at the lines from the given one on.
func (o *outline) readBlocks(h *hits, end int) {
	t, hints := o.t, false
	for i := end; i < t.LineCount(); i++ {
		said := strings.TrimSpace(t.LineAt(i))
		if said == "" {
			hints = false
			continue
		}
		o.classifyLine(h, i)
		if hints = hints || hintHead().MatchString(said); hints {
			o.parts[i] = aside
		}
		if i > 0 && o.parts[i-1] == result && strings.HasPrefix(said, "> ") { // Gradle's cause
			o.parts[i] = hinting
		}
	}
}

// hintHead stands above a list of hints, which fail nothing.
var hintHead = lazy.Regexp(`(?i)\bhints? \(\d+\)$`)

// shownMax is the length to which long lines are examined.
const shownMax = 240

func (o *outline) classifyLine(h *hits, i int) {
	whole := strings.TrimSpace(h.t.LineAt(i))
	p := h.weighLine(i, words.Cut(whole, shownMax))
	if p == aside && o.strict && isWarning(whole) {
		p = hinting
	}
	if p != aside && len(o.usual.lines) > 0 {
		_, alarms := slices.BinarySearch(h.alarms, i)
		counts := p == result && !alarms
		switch {
		case o.usual.lines[stableText(whole)]:
			p = aside
		case (p <= plain || counts) && o.usual.hasOtherAmounts(whole):
			p = erring
		case (p <= plain || counts) && o.usual.isUsualLine(whole):
			p = aside
		}
	}
	o.parts[i] = p
}

// frameForm begins a frame of a stack that stands below its message.
const frameForm = `at (?:async )?(?:[^ ]+(?: \[as \w+\])? ?\(|file:|/|node:)|\S+\.go:\d+ \+0x|goroutine \d|` +
	`(?:from )?[^ ]+:\d+:in [^:]*$|\S+\.\w+ \d+:\d+  |#\d+ +0x|(?:#\d+ +)?/\S+\.php\(\d+\): |\d+: +(?:0x|std::` +
	`|core::|\w+::|\()|#\d+ +\S.* \(\S+:\d+:\d+\)$|(?:Raised|Called|Re-raised) (?:at|from) |\[\d+\] .*\)$|\S+\.nim\(\d+\) \w+$`

var stackFrame = lazy.Regexp(`^(?:` + frameForm + `)`)

// noticeForm begins what a tool says of itself: that there is a newer one.
const noticeForm = `[a-z]+ notice(?: |$)|\[notice\] |.{0,20}(?i:a new (?:\w+ )?(?:version|release) |update available)`

var notice = lazy.Regexp(`^(?:` + noticeForm + `)`)

// forms begin lines that say nothing of what went wrong, whatever they hold.
var forms = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:npm (?:ERR!|error) +|\[(?:ERROR|error)\] +)?(?:` + strings.Join([]string{
		`[^\pL\d]*(?:\d+ ?/ ?\d+[^\pL\d]*)?$|⎯|<promise>|… \d+ bytes in all |[\x{2800}-\x{28ff}]`, // decoration, spinners
		`> (?:[^A-Z ]|[A-Z_\d]+=|Task |Configure )|\$ |\+\+? `,
		noticeForm,
		`(?:duration_ms|location|failureType|exitCode|signal): |(?:code|url|errno|syscall|address|port` +
			`|path): ?\S+,?$`, // fields of TAP and of node's errors
		`(?:Bash|PowerShell|Cmd\.exe|Process|Script|script|The (?:process|command)\b.{0,99}` +
			`|Exited) .{0,20}with (?:exit )?(?:code|status)`, // CI
		`ELIFECYCLE| ELIFECYCLE|error: \w+ failed, to rerun |ninja: build stopped|Node\.js v\d|info Visit `,
		frameForm, `File ".*", line \d+|Traceback |created by |\w[\w./*()-]*\((?:.*0x[0-9a-f]+|\.*\)$)`,
		`\(?(?:file://)?[\w./\\@-]*[/.][\w./\\@:-]*:\d+(?::\d+)?\)?$`,                            // nothing but a place
		`[>→➜]? *\d+ *[|┆│▕]|\|(?: *$| *[^\pL\d"'\x60 ]| {8})`,                                   // source
		`(?:\S+ )?(?:\d+ +){3}(?:\d*[^\d:]|$)|% Total |\d+(?:\.\d+)? ?%|.{0,40}\[[=#>. -]{3,}\]`, // meters
		`\(?(?i:if (?:this|that|you) .*\byou (?:can|may)|to (?:fix|disable|ignore|update|improve) |improve |` +
			`(?:please |also )?(?:see|try) |for more (?:details|information))`, // advice
		`cache (?:hit|miss)|(?:heap|rss|peak memory|memory)[ :=]+\d`,
		`(?i:time|duration|elapsed|took|(?:finished|ran|total time) in):? *[\d.]` +
			`|(?:Container|Network|Volume) \S+ +[A-Z]\w+$`,
		`[.EFPSsx]*\.[.EFPSsx]*$|[✓✔√☑]|ok \d|ok\b|OK\b|PASS|\[ *(?:ok|OK|PASS|done) *\]`, // what went well
		`.*[-~^]\^$|\^-+ error here$`, // what points at a place of the line above
	}, "|") + `)`)
})

// wentWell are the ends of lines about what succeeded.
var wentWell = []string{
	"...", "…", "... ok", "... OK", "... done", " yes", " ok", " OK", " PASS", " passed", ".ok", ".OK", ":ok",
}

// steps begin a line that says what is being done.
var steps = lazy.Regexp(`^(?:==+>|-->|->|=>|>>+|###*|::|\[\d+/\d+\]|\(\d+/\d+\)|\d+/\d+\b|(?i:step|stage` +
	`|phase) \d+|[A-Za-z]\w*(?:ing\b|ed(?:[^\w:]|$)))`)

// nothing counts what did not happen.
var nothing = lazy.Regexp(`(?i)\b(?:0|no|without) (?:\w+ )?(?:errors?|failures?|failed|problems?|warnings?` +
	`|issues?)\b|(?:errors?|failures?|failed): 0\b`)

// raises begins a line that is an error: behind a time, a level, a bullet or
// the name of a program.
var raises = lazy.Regexp(`^(?:[^\pL\d]*|[\d:.,TZ/ -]*)(?:\w+[:|] +)?[^\pL\d]*` +
	`(?i:error|err!?|fatal|panic|problem|exception|fail|failed|failure|fehler|erreur|fallo|errore|erro|ошибка|错误|エラー)` +
	`(?:$|[^` + letters + `])|^[✗✘×❌✖‼⛔]|[│|] *[✗✘❌✖] *[│|]?$|^E  |^\w+(?:\.\w+)*(?:Error|Exception)\b` +
	`|level=(?:error|fatal)|"level": ?"(?:error|fatal)`)

// weighLine classifies a line by its form and by the words in it.
func (h *hits) weighLine(i int, said string) part {
	_, alarms := slices.BinarySearch(h.alarms, i)
	_, doubts := slices.BinarySearch(h.doubts, i)
	bare := strings.TrimRight(said, " |│┃║*") // of a table
	well := slices.ContainsFunc(wentWell, func(end string) bool { return strings.HasSuffix(bare, end) })
	switch {
	case well, forms().MatchString(said), isWarning(said):
		return aside
	case alarms && nothing().MatchString(said), doubts && nothing().MatchString(said):
		return aside
	case saysOnlyFailed(said), sums().MatchString(said), !doubts && counting().MatchString(said):
		return result
	case raises().MatchString(said):
		return raising
	case alarms:
		return erring
	case doubts, isLocated(said):
		return hinting
	case namesNothing(said):
		return result
	case steps().MatchString(said):
		return doing
	}
	return plain
}

// isLocated reports whether a line is a place and a message.
func isLocated(said string) bool {
	at, ok := places.In(said)
	begins := ok && at.From < 10 && oneWord().MatchString(said[:at.From])
	says := strings.HasPrefix(at.Rest, ": ") || strings.HasPrefix(at.Rest, ", in ")
	return begins && says
}

// oneWord may stand before a place: "Datei ", "on ".
var oneWord = lazy.Regexp(`^(?:\pL+:? )?$`)

// sums are lines that only count: "2 complaints", "bundles: 1 of 3 over",
// "Passed: 3  Failed: 1". Others say which step failed, and not why.
var sums = lazy.Regexp(`^[^\pL\d]*(?:[\w .-]{1,30}: *)?\d+ (?:of \d+ )?[\pL ()]+(?:, \d* ?[\pL ()]+)*(?: (?:in` +
	`|on|across|after) [\d.]+ ?\pL+)?[^\pL\d]*$` +
	`|^[^\pL\d]*(?:\pL+(?: \pL+)?: *\d+[ ,;]*){2,}$` +
	`|^\S+:\d+: [A-Z]\w*(?:Error|Exception|Failed)$` +
	`|^fatal: Could not read from remote|^[\w-]+ found an? \w+\.?$|\.{5,}\W*(?:FAILED|Failed|failed)\b` +
	`|^Execution failed for task|^A problem occurred (?:configuring|evaluating) |^\* What went wrong` +
	`|^\S+: line \d+: +\d+ (?:Aborted|Killed|Segmentation fault|Terminated)` +
	`|^(?:Segmentation fault|Aborted|Bus error) \(core dumped\)$`)

// counting is a sentence in any language that ends in a count: "Nalezeno chyb: 1".
var counting = lazy.Regexp(`^[^\d]{2,40}(?:: +|：|:\pL)[^\d]{0,3}\d{1,3}[^\d]{0,5}$`)

// namesNothing reports whether a line names nothing: a few words, no number, no name, no quote.
func namesNothing(said string) bool {
	return isNameless(said) && !strings.ContainsAny(said, "0123456789") && len(strings.Fields(said)) <= 4
}

// isNameless reports whether a line has no name, no quote and no value of anything.
func isNameless(said string) bool {
	return !strings.ContainsAny(said, ":：\"'\x60«»„“”‘’「」()[]{}<>=/_|@#$%") &&
		!strings.Contains(strings.TrimRight(said, "."), ".")
}

// emptyWords say that something failed, or where, but not what.
var emptyWords = words.Set(`a after all and are aborted aborting above an as at below build builds check checks
	checked checking code command completed deploy deployment details did done end ended error errors exit
	exited fail failed failing failure failures fatal finished for found gate has have in is it job jobs lint
	log more of one or output passed phase pipeline please problem problems process recipe result results run
	runs script scripts see site some stage status step steps stop stopped stopping suite summary target task
	tasks test tests that the there this to total two validation verification was were with without files file
	configuration document must be fixed before had compilation giving up gave rolled back exception issues
	assertion exiting warning warnings strict mode goal complete successful type types rake while running
	migrate migration migrations
	stack unsuccessful ctest invalid errored ms scanned report execution due returned ld x unhandled uncaught fehler
	fehlgeschlagen fehlerhaft erreur erreurs échec fallo errores errore errori erro falha`)

// nameToken is the name of a program in front of a message, or of a step, a file or a time in it.
var nameToken = lazy.Regexp(`^[\w.-]+: |\(.*?\)|\S*[-/@#_\d]\S*|\S+\.\w+\b`)

// saysOnlyFailed reports whether a line says that something failed, with how many and which exit
// status, but not what.
func saysOnlyFailed(said string) bool {
	if _, ok := exitStatusIn(said); ok {
		return true
	}
	if words := nameToken().ReplaceAllString(said, " "); strings.ContainsFunc(words, unicode.IsLetter) {
		said = words
	} else if name, _, ok := strings.Cut(said, ": "); ok && words != said { // "Failed: web#build"
		said = name
	}
	other := func(r rune) bool {
		return r < 'a' || 'z' < r && r < 0x80 || strings.ContainsRune("■❌✖✗✘×●", r)
	}
	return !slices.ContainsFunc(strings.FieldsFunc(strings.ToLower(said), other), func(w string) bool {
		return len(w) > 1 && !emptyWords()[w]
	})
}

// subjectAbove returns the line above that names the subject of one that says only that something
// failed: a bare exception's source, the step before "failed after 3 s".
func (o *outline) subjectAbove(i int) string {
	if i < 0 || o.parts[i] != result && strings.ContainsAny(o.textAt(i), " :") {
		return ""
	}
	for j := i - 1; j >= max(0, i-3); j-- {
		said := o.textAt(j)
		amounts := o.usual.isUsualLine(said) && !o.usual.lines[stableText(said)] // "4,612 bytes in all"
		if strings.ContainsFunc(said, unicode.IsLetter) && !amounts {
			return said
		}
	}
	return ""
}

func (o *outline) textAt(i int) string { return strings.TrimSpace(o.t.LineAt(i)) }

// errorLines returns the lines that speak of an error, in their order, at most the last limit.
// Where none does more than hint, the last few lines are included, and all that a green output has
// nothing like.
func (o *outline) errorLines(limit int) []int {
	var lines []int
	sure, end := false, 0
	alike, named := o.similarLines()
	for i, p := range slices.Backward(o.parts) {
		last := p >= plain && (end < 3 || len(o.usual.lines) > 0) && !alike[i]
		if p != aside {
			end++
		}
		row := !named && p == plain && countColumns(o.textAt(i)) > 1
		tells := p >= hinting || last || row || o.isDetail(i)
		if tells && len(lines) < limit {
			lines = append(lines, i)
			sure = sure || p >= erring
		}
	}
	if sure {
		lines = slices.DeleteFunc(lines, func(i int) bool { return o.parts[i] < hinting && !o.isDetail(i) })
	}
	slices.Reverse(lines)
	return lines
}

// similarLines returns the plain lines of which there are several that differ by a name, beside
// lines that hint at an error: a check prints one for each thing that it looks at. Named is true if
// one of those lines names something; "plan and reality differ" does not.
func (o *outline) similarLines() (alike map[int]bool, named bool) {
	forms, alike, hints := map[string][]int{}, map[int]bool{}, false
	for i := max(0, len(o.parts)-outlineLines); i < len(o.parts); i++ {
		hints = hints || o.parts[i] >= hinting
		named = named || o.parts[i] >= hinting && !isNameless(o.textAt(i))
		if o.parts[i] != plain {
			continue
		}
		forms[withoutNames(normalizeLine(o.textAt(i)))] = append(forms[withoutNames(normalizeLine(o.textAt(i)))], i)
		for form := range lineWithoutEachWord(o.textAt(i)) {
			forms["@ "+withoutNames(form)] = append(forms["@ "+withoutNames(form)], i)
		}
	}
	for _, lines := range forms { // order does not show: a line is alike by any of them
		for _, i := range lines {
			alike[i] = alike[i] || hints && len(lines) > 1
		}
	}
	return alike, named
}

// valueLabel stands alone above a value.
var valueLabel = lazy.Regexp(`^(?i:expected|actual|received|got|want|passed in|found|returned)(?: \w+)?:$`)

// isDetail reports whether a line continues the error above it.
func (o *outline) isDetail(i int) bool {
	l := o.t.LineAt(i)
	if i > 0 && o.parts[i] == plain && valueLabel().MatchString(o.textAt(i-1)) {
		return true
	}
	if deeper := strings.HasPrefix(l, "  ") || strings.HasPrefix(l, "\t"); !deeper || o.parts[i] != plain {
		return false
	}
	for j := i - 1; j >= max(0, i-3) && o.textAt(j) != ""; j-- { // a compiler shows the source between
		if o.parts[j] >= hinting {
			return true
		}
	}
	return false
}
