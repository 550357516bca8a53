package failure

import (
	"crypto/sha256"
	"encoding/hex"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/places"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// Fingerprint is 16 hexadecimal digits that are the same for the same failure: of its
// class, step, failing tests in any order, and of keys, which are compared as they are.
func Fingerprint(a Analysis, keys ...string) string {
	all := make([]byte, 0, 512)
	part := func(s string) { all = append(append(all, s...), 0) }
	part(string(a.Class))
	part(a.Step)
	tests := lists.Pick(a.Items, func(i Item) (string, bool) { return normalizeLine(i.Test), i.Test != "" })
	sort.Strings(tests)
	for _, s := range tests {
		part(s)
	}
	part("")
	for _, s := range keys {
		part(s)
	}
	sum := sha256.Sum256(all)
	return hex.EncodeToString(sum[:8])
}

// letters are the characters of words, for a class of an expression. Those of other scripts count.
const letters = `0-9A-Za-z_\x{80}-\x{10ffff}`

const durationForm = `\b(\d+(?:[.,]\d+)?) ?([mµun]?s|sec|seconds?|min|minutes?)\b`

var (
	blanks = lazy.Regexp(`[ \t]+`)
	paths  = lazy.Regexp(`[` + letters + `/\\.~@-][` + letters + `/\\.~@+:-]*`)
	// An id, a number that may hold points, or a word.
	parts = lazy.Regexp(`(?i:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b)` +
		`|[0-9][` + letters + `]*(?:\.[0-9][` + letters + `]*)*|[` + letters + `]+`)
	// varying is a duration with its unit, which may be another next time, a count of tries, an id or a size of
	// memory behind its name, the frame of a spinner, how far a run is, "[3/9 33%]", and the branch of a tree.
	varying = lazy.Regexp(durationForm +
		`| ?\((?:attempt|try|retry|previous run:) .*?\)` +
		`|\b(?:req|request|trace|span|session|correlation)(?:[_-]?id)?[=:] ?[\w-]+|\b(?:rss|mem|heap)=\S+` +
		`|\b(?:conn|connection|build|job|run|client|request|batch|tx) #\d+|^[-|/\\] ` +
		`|^ *[\[(] *\d+ *(?:/ *\d+ *)?(?:\d+ ?% *)?[\])] |^[│├└╰ ]*[├└╰]─+ `)
	// made is a short name that a program made of letters and digits: "ab12x".
	made = lazy.Regexp(`^[a-uw-zA-Z][A-Za-z]*\d[a-z0-9A-Z]*[A-Za-z]`)
	// arity is the name of a function with how many arguments it takes, as on the BEAM and in Prolog.
	arity = lazy.Regexp(`^[A-Za-z_][\w.]*[?!]?/\d$`)
	hexID = lazy.Regexp(`^[0-9a-fA-F]{7,}$|^(?:[a-f]+[0-9]+[a-f][a-f0-9]|[a-f]{3,}[0-9]{2,})[a-f0-9]*$`)
	dates = lazy.Regexp(`\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?(?:\d{1,2} +)?(?:Jan|Feb|Mar|Apr|May` +
		`|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d+`)
	// A date in digits, 24.11.2026 or 2026/11/24, and a clock of twelve hours.
	clocks = lazy.Regexp(`\b\d{1,2}:\d\d(?::\d\d)? ?[AP]M\b|\b(?:\d{1,2}[./]\d{1,2}[./](?:19|20)\d\d|(?:19` +
		`|20)\d\d[./]\d{1,2}[./]\d{1,2})\b`)
	// The name of a temporary folder or file: "tmp.Xk3jQ9aa", "tmpa8x_2k1".
	inTemporary = lazy.Regexp(`^/(?:tmp|var/folders/.*/T)/[\w-]+$`)
	temporary   = lazy.Regexp(`^tmp[._-]?\w{6,}$`)
)

// normalizeLine leaves out of a line what differs between two runs of the same failure: numbers
// (lines, times, durations, ports, counts, addresses), hex ids, and folders of paths, so that only
// a file's name is left. Letters that lead into digits stay ("TS2322", "E0425").
func normalizeLine(s string) string {
	if slices.ContainsFunc(months, func(m string) bool { return strings.Contains(s, m) }) {
		s = dates().ReplaceAllString(s, "#")
	}
	if strings.Contains(s, "M") {
		s = clocks().ReplaceAllString(s, "#")
	}
	s = varying().ReplaceAllString(s, "")
	s = paths().ReplaceAllStringFunc(s, func(path string) string {
		if arity().MatchString(path) {
			return path
		}
		if inTemporary().MatchString(path) {
			return "#"
		}
		if i := strings.LastIndexAny(path, `/\`); i < len(path)-1 {
			path = path[i+1:]
		}
		if temporary().MatchString(path) {
			return "#"
		}
		return parts().ReplaceAllStringFunc(path, steadyPart)
	})
	if strings.Contains(s, "  ") || strings.Contains(s, "\t") {
		s = blanks().ReplaceAllString(s, " ")
	}
	return strings.TrimSpace(s)
}

var months = []string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}

// steadyPart makes "#" of an id or a number.
func steadyPart(s string) string {
	name := strings.TrimRight(s, "0123456789")
	digits := 0
	for i := range len(s) {
		if words.IsDigit(s[i]) {
			digits++
		}
	}
	switch {
	case digits == 0:
		return s
	case name == "L", words.IsDigit(s[0]), hexID().MatchString(s), len(s) >= 16 && digits >= 4,
		strings.Contains(s, "-"): // 12ms, 3f2a
		return "#"
	case digits >= 2 && len(s) >= 5 && made().MatchString(s):
		return "#"
	case digits >= 5: // the name of a temporary file, a process or a goroutine
		return name + "#"
	}
	return s
}

// stableText is [normalizeLine] that keeps numbers which show how far a failure got:
// "3 dead links" and "expected 90, got 70" stay as they are, but "line 3" and "3 ms" do not.
func stableText(s string) string { return stableBut(s, nil) }

// stableBut is [stableText] without the amounts of what is counted when all is well.
func stableBut(s string, well map[string]bool) string {
	s = unordered().ReplaceAllStringFunc(s, func(set string) string {
		of := strings.Split(set[1:len(set)-1], ", ")
		slices.Sort(of)
		return "{" + strings.Join(of, ", ") + "}"
	})
	key := append([]string{normalizeLine(s)}, amountsIn(varying().ReplaceAllString(s, ""), well)...)
	if compares().MatchString(s) {
		for _, d := range durations().FindAllStringSubmatch(s, -1) {
			n, _ := strconv.ParseFloat(strings.Replace(d[1], ",", ".", 1), 64)
			key = append(key, strconv.Itoa(int(math.Log(n)/math.Log(1.15)))+d[2])
		}
	}
	return strings.Join(key, "|")
}

// durations differ from run to run. Where one is held against another it is what is wrong, and
// differs by more than a seventh.
var (
	durations = lazy.Regexp(durationForm)
	compares  = lazy.Regexp(`(?i)\b(?:budget|limit|allowed|at most|maximum|max|(?:slow|long|more|less)\w* than` +
		`|exceeds|over|above|below|under|within)\b`)
)

// unordered is a set, which a program prints in another order each time.
var unordered = lazy.Regexp(`\{[^{}:]*, [^{}:]*\}`)

// addresses begin a line with the number of a thing that it is about, "12: ", or of
// a process, "==12==". Others are the index of one in a list, or the line of a file: "a.css#12".
var addresses = lazy.Regexp(`^\s*\d+:(?: |$)|^==\d+==|([\w"'])\[\d+\]|(\w\.[A-Za-z]\w{0,7})(?:[|#\t]| ?[@+] ?)\d+\b`)

// processes are numbers of processes and threads, as logs have them in front of what they say.
var processes = lazy.Regexp(`^\s*\d{5,7} |[\[(]\d{5,7}[\])]|\b\d{5,7}#(?:\d+)?`)

// codes begin a line with a number that says what is wrong.
var codes = lazy.Regexp(`^\s*(?i:error|code|exit|status|https?) \d`)

// amountsIn returns the numbers in s that count or measure something, or are the value of it. Those
// of places, times and ids are left out, and so are counts of the words in well.
func amountsIn(s string, well map[string]bool) (found []string) {
	if !strings.ContainsAny(s, "0123456789") {
		return nil
	}
	if at, ok := places.In(s); ok {
		s = s[:at.From] + at.Rest
	}
	s = processes().ReplaceAllString(clocks().ReplaceAllString(s, ""), " ")
	if !codes().MatchString(s) {
		s = addresses().ReplaceAllString(s, "${1}${2}")
	}
	var said []string
	for w := range strings.FieldsFuncSeq(strings.ReplaceAll(s, ", ", " , "), func(r rune) bool {
		return r <= ' ' || strings.ContainsRune("\"'`()[]{}<>;=|#：，", r)
	}) {
		if w = strings.Trim(w, ".:!?"); w != "" {
			if caseID().MatchString(w) {
				found = append(found, w)
			}
			said = append(said, strings.ToLower(w))
		}
	}
	left := -9 // the last number that was left out for the word before it
	for i, w := range said {
		if !amount().MatchString(w) {
			continue
		}
		goesOn := left == i-2 && len(said[i-1]) <= 3 // "lines 2 and 4"
		behind := slices.ContainsFunc(said[i+1:min(i+3, len(said))], func(w string) bool { return isWell()[w] }) ||
			i+1 < len(said) && well[said[i+1]]
		switch {
		case strings.Count(w, ".") == 2: // a version is no time and no place
			found = append(found, w)
		case goesOn, i > 0 && variesByRun(said[i-1]) && !strings.HasSuffix(w, "%") &&
			(said[i-1] != "for" || !strings.Contains(w, ".")):
			left = i
		case behind, i+1 < len(said) && isTime()[said[i+1]]:
		default:
			found = append(found, w)
		}
	}
	return found
}

// variesByRun reports whether the number behind a word differs from run to run, or with the place.
func variesByRun(word string) bool {
	unit := word[strings.LastIndexByte(word, '_')+1:] // "took_ms"
	return isPlace()[word] || places.LineWord()[word] || isWell()[word] || isTime()[unit]
}

var (
	isPlace = words.Set(`txid record lines column col row position posición строки offset char character port pid
	process job run lauf step attempt try retry after took in of for goroutine thread worker id length range seed
	exited scanned total`)
	isTime = words.Set(`ms s sec secs second seconds m min mins minute minutes h hour hours time duration elapsed
		jan feb mar apr may jun jul aug sep oct nov dec`)
	isWell = words.Set(`passed ok checked`)
)

// caseID matches names with numbers that identify a thing: "K-17", "2026-113", "page-17.html", "/users/17".
var caseID = lazy.Regexp(`^(?:[A-Z]{1,6}-|\d{4}-)\d{1,5}$|^[\w-]*[A-Za-z][-_]?\d{1,4}\.(?:[a-km-z]` +
	`|l[a-np-z])[a-z0-9]{0,4}$|^(?:/[a-z]{4,})+/\d{1,4}$`)

// amount is a number, a ratio, a version or a size; times have another unit.
var amount = lazy.Regexp(`^[-+]?\d{1,6}(?:\.\d+){0,2}(?:%|x|/\d{1,4}|[kmg]i?b)?$`)

// fingerprintLines returns the lines that describe the failure, in any order. The fingerprint is
// made of them and of class, step and tests. With failing tests known, these and their first
// messages are used instead; a failure that may pass by itself is known by the line that made the
// verdict.
func fingerprintLines(a Analysis, o *outline, at int) []string {
	var key []string
	for _, i := range a.Items {
		if i.Test != "" && a.Class == TestFailure {
			msg, _, _ := strings.Cut(i.Message, "\n")
			key = append(key, normalizeLine(i.Test)+": "+stableText(msg), stableText(i.Expected),
				stableText(i.Received))
		}
	}
	if len(key) > 0 {
		slices.Sort(key)
		return key
	}
	keep := func(s string) {
		if s != "" {
			key = append(key, s)
		}
	}
	add := func(s string) { keep(stableText(s)) }
	for _, i := range a.Items {
		first, _, _ := strings.Cut(i.Message, "\n")
		if a.Transient {
			return []string{normalizeLine(first)}
		}
		if a.Class == CompileError || a.Class == Lint {
			add(i.File + " " + first) // the same in another file is another failure
		}
	}
	telling := o.errorLines(maxKey)
	for _, i := range telling {
		said := o.t.OwnerOf(i) + o.withoutNumber(i)
		if _, itself := places.In(said); !itself {
			if p, ok := o.scatteredPlace(i); ok { // the same in another file is another failure
				said = p.File + " " + said
			}
		}
		keep(stableBut(said, o.usual.countedBy(o.parts[i])))
	}
	if above := o.subjectAbove(at); above != "" {
		add(above)
		add(o.textAt(at))
	}
	if p, said := projectFrame(o.t); a.Class == Crash && said != "" && !places.IsForeign(p.File) {
		add(p.File) // the same words, thrown elsewhere
	}
	problems := a.Class == CompileError || a.Class == Lint
	placed := problems && sayEnough(a.Items) // then their count says nothing more
	for i, p := range o.parts {
		if p == result && !placed && len(telling) > 0 && i > telling[0] { // before that a program reports about itself
			keep(strings.Join(amountsIn(o.withoutNumber(i), o.usual.counts), " "))
		}
	}
	if len(key) == 0 {
		add(a.Summary)
	}
	slices.Sort(key)
	return key
}

// The patterns over a history of failures.
const (
	RepeatedIdentical  = "repeated_identical_error" // the same failure again and again
	AlternatingErrors  = "alternating_errors"       // each class differs from the one before
	ConsistentFailure  = "consistent_failure"       // the same class, in different forms
	OscillationPattern = "oscillation"              // two failures that take turns: A, B, A, B
)

// Pattern names what the end of a history of failures, oldest first, has in
// common; "" when nothing. Identical failures are named from the second on,
// the other patterns need three (oscillation four). The most telling one
// counts: identical, oscillation, consistent, alternating.
func Pattern(history []Analysis) string {
	n := len(history)
	if n < 2 {
		return ""
	}
	same := func(i, j int) bool { return history[i].Fingerprint == history[j].Fingerprint }
	if same(n-1, n-2) {
		return RepeatedIdentical
	}
	if n >= 4 && same(n-1, n-3) && same(n-2, n-4) {
		return OscillationPattern
	}
	if n < 3 {
		return ""
	}
	if c := history[n-1].Class; history[n-2].Class == c && history[n-3].Class == c {
		return ConsistentFailure
	}
	for i := 1; i < n; i++ {
		if history[i].Class == history[i-1].Class {
			return ""
		}
	}
	return AlternatingErrors
}
