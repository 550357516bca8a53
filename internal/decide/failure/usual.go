package failure

import (
	"iter"
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/printed"
	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// This file learns from the green output of a gate what is noise in a red one.

// usual describes the output of the same command when it was green.
type usual struct {
	lines map[string]bool // without what changes from run to run
	forms map[string]bool // and without names
	words map[string]bool
	// counts are the things that the green output counts too, and not as none: what was looked at.
	counts map[string]bool
	rows   map[string][]string // the amounts in the rows of tables, by form
}

func usualLinesIn(green string) usual {
	u := usual{lines: map[string]bool{}, forms: map[string]bool{}, words: map[string]bool{},
		counts: map[string]bool{}, rows: map[string][]string{}}
	if green != "" {
		t := printed.Split(printed.Read(printed.Bound(green)).Text)
		names := map[string]string{}
		for i := range t.LineCount() {
			line := strings.TrimSpace(t.LineAt(i))
			form := withoutNames(normalizeLine(line))
			u.lines[stableText(line)], u.forms[form] = true, true
			row := strings.TrimSpace(t.LineAt(max(0, i-1)))
			if n := countColumns(line); i > 0 && n > 1 && n == countColumns(row) {
				u.rows[form], u.rows[withoutNames(normalizeLine(row))] = amountsIn(line, nil), amountsIn(row, nil)
			}
			for form, name := range lineWithoutEachWord(line) {
				if other, ok := names[form]; ok && other != name {
					u.forms[form] = true
				}
				names[form] = name
			}
			before := ""
			for w := range strings.FieldsSeq(line) {
				u.words[w] = true
				thing := strings.ToLower(strings.Trim(w, ".,;:()"))
				if thing != "bytes" && countOf().MatchString(before+" "+thing) {
					u.counts[thing] = true
				}
				before = w
			}
		}
	}
	return u
}

// countOf is a number of things, and no size.
var countOf = lazy.Regexp(`^[1-9]\d* \pL{4,}$`)

// countedBy are the counts that say nothing in a line that is such a part.
func (u usual) countedBy(p part) map[string]bool {
	if p == result {
		return u.counts
	}
	return nil
}

// isUsualLine reports whether the command prints such a line in any case: the green output has it, up
// to a name.
func (u usual) isUsualLine(line string) bool {
	if u.forms[withoutNames(normalizeLine(line))] {
		return true
	}
	for form, name := range lineWithoutEachWord(line) {
		if u.forms[form] && !u.words[name] {
			return true
		}
	}
	return false
}

// betweenColumns stands between two columns of a table.
var betweenColumns = lazy.Regexp(` {2,}|\t+| +[|│┃] *`)

func countColumns(line string) int { return len(betweenColumns().FindAllStringIndex(line, 20)) }

// hasOtherAmounts reports whether a line is a row that the green output has with other amounts,
// some of them the same.
func (u usual) hasOtherAmounts(line string) bool {
	if len(u.rows) == 0 {
		return false
	}
	was, is := u.rows[withoutNames(normalizeLine(line))], amountsIn(line, nil)
	same := 0
	for i := range is {
		if len(was) == len(is) && was[i] == is[i] {
			same++
		}
	}
	return same > 0 && same < len(is)
}

// namedMax bounds the words of a line of which one may be a name.
const namedMax = 12

var plainName = lazy.Regexp(`^\pL[\w./-]*$`)

// lineWithoutEachWord yields a line without each of its words in turn, and that word. Two green lines that
// differ in one word only have the name of a thing there.
func lineWithoutEachWord(line string) iter.Seq2[string, string] {
	return func(yield func(form, name string) bool) {
		words := strings.Fields(line)
		steadied := strings.Fields(normalizeLine(line))
		if len(words) < 2 || len(words) > namedMax || len(words) != len(steadied) {
			return
		}
		for i, w := range steadied {
			if !plainName().MatchString(words[i]) {
				continue
			}
			steadied[i] = "@"
			if !yield(strings.Join(steadied, " "), words[i]) {
				return
			}
			steadied[i] = w
		}
	}
}

// withoutNames is a line without its names: what a check says of each file alike.
func withoutNames(line string) string { return named().ReplaceAllString(line, "@") }

var named = lazy.Regexp(`[^ |]*[\w#][./_:-][\w#][^ |]*`)

// This file knows where a phrase is only spoken of: in quotes, in code that
// prose shows, in a difference of files, in what an agent says that it did.

// isMention reports whether the text speaks about the phrase and does not report it.
func (p *spot) isMention() bool {
	return narrated().MatchString(p.l) || p.inQuotes() || p.inDifference() || p.isInCodeFence()
}

// narrated matches the beginning of an agent's account of its work.
var narrated = lazy.Regexp(`^\W*(?:(?:I|We)(?:'ve| have)? (?:also |then |now )?)?(?i:added|implemented|wrote` +
	`|changed|updated|fixed|documented|replaced|created|refactored|tested|removed|handled|renamed) `)

var (
	// quotedName ends what stands before the name of a thing, and not a message.
	quotedName = lazy.Regexp(`(?i)\b(?:column|table|relation|type|variable|property|function|field|key|method` +
		`|constant|heading|member) $`)
	// aboutIt ends what stands before a quotation in a sentence.
	aboutIt = lazy.Regexp(`[a-z] $`)
	// advised ends what stands before a command that should be run.
	advised = lazy.Regexp(`(?i)(?:run|use|try|using|with)[: ]+$`)
)

// reporting are words of a sentence that reports an error, and quotes it.
var reporting = []string{"error", "fatal", "fail", "exception", "cannot", "could", "unable", "refused"}

// inQuotes reports whether the phrase is in quotes or backticks, and the text around them reports
// no error.
func (p *spot) inQuotes() bool {
	before := p.textBefore()
	for _, mark := range []string{"`", `"`, "'"} {
		if strings.Count(before, mark)%2 == 0 {
			continue
		}
		from := strings.LastIndex(before, mark)
		head, rest := before[:from], p.textAfter()
		_, tail, closed := strings.Cut(rest, mark)
		if !closed {
			continue
		}
		reports := words.HasAny(words.Small(head+tail), reporting)
		switch {
		case quotedName().MatchString(head), mark == "`" && !advised().MatchString(head) &&
			!strings.Contains(rest[:len(rest)-len(tail)], " "):
			return true
		case aboutIt().MatchString(head) && !reports && !advised().MatchString(head):
			return true
		}
	}
	return false
}

// inDifference reports whether the line belongs to a difference of two files.
func (p *spot) inDifference() bool {
	for i := p.line; i >= max(0, p.line-maxTries); i-- {
		l := p.h.t.LineAt(i)
		switch {
		case l == "" || !strings.ContainsAny(l[:1], "+-@ "):
			return false
		case strings.HasPrefix(l, "@@ "), strings.HasPrefix(l, "+++ "):
			return i < p.line
		}
	}
	return false
}

// isInCodeFence reports whether the line is in a block of code of a text in Markdown.
func (p *spot) isInCodeFence() bool {
	before, _ := slices.BinarySearch(p.h.fences, p.line)
	return before%2 == 1 && before < len(p.h.fences)
}

// fencesIn are the lines that begin or end a block of code.
func fencesIn(t printed.Text) (lines []int) {
	if !strings.Contains(t.All, "```") {
		return nil
	}
	for i := range t.LineCount() {
		if strings.HasPrefix(strings.TrimLeft(t.LineAt(i), " "), "```") {
			lines = append(lines, i)
		}
	}
	return lines
}

// InformativeLines returns the lines of output that say most about a failure whose format no parser
// knows: errors with the lines that belong to them, and the end, in their order, without ANSI
// codes, in at most limit bytes. A "…" stands where lines were left out.
func InformativeLines(output string, limit int) string {
	if limit <= 0 {
		return ""
	}
	t := printed.Split(printed.Read(printed.Bound(output)).Text)
	s := strings.TrimSpace(t.All)
	if len(s) <= limit {
		return s
	}
	keep := make([]bool, t.LineCount())
	left := limit - 8
	take := func(i int) bool {
		if i < 0 || i >= t.LineCount() || keep[i] || strings.TrimSpace(t.LineAt(i)) == "" {
			return true
		}
		if n := len(words.Cut(t.LineAt(i), 300)) + 5; n <= left {
			keep[i] = true
			left -= n
			return true
		}
		return false
	}
	end := lastFilledLine(t)
	for i := end; i > end-5 && left > limit/2; i-- {
		take(i)
	}
	for _, i := range slices.Backward(outlineOf(findHits(t), "").errorLines(40)) {
		if !take(i) {
			break
		}
		take(i + 1)
		take(i - 1)
	}
	for i := end - 5; i >= 0; i-- {
		if !take(i) {
			break
		}
	}
	return joinKeptLines(t, keep, limit)
}

func joinKeptLines(t printed.Text, keep []bool, limit int) string {
	var b strings.Builder
	gap := false
	for i, k := range keep {
		if !k {
			gap = gap || strings.TrimSpace(t.LineAt(i)) != ""
			continue
		}
		if gap {
			b.WriteString("…\n")
			gap = false
		}
		b.WriteString(words.Cut(t.LineAt(i), 300))
		b.WriteByte('\n')
	}
	return printed.Shorten(strings.TrimSpace(b.String()), limit)
}
