package signal

import "strings"

// This file cuts the echo of a prompt out of a plain-text agent's output. The
// rules are:
//   - Lines are compared without terminal codes, quote signs and the white
//     space around them; blank lines do not matter.
//   - Three or more lines that follow one another in the prompt too are an
//     echo, wherever they stand. So is the whole of a shorter prompt.
//   - A line with a signal that the prompt has too is an echo when one of its
//     neighbours is the prompt's as well, or when the words around it are (an
//     echo may be wrapped at other places).
//   - What is left is the agent's own, unchanged to the byte.

const (
	minEcho     = 3 // lines
	wordsAround = 8 // the window in words in which an echo is recognised
	maxQuoting  = 8 // quote signs that are cut off a line
)

// StripEcho cuts the echo of the prompt out of an output in plain text. It
// leans to cutting: a signal that stands in the prompt counts only where the
// output has it outside of any echo, so an agent's own line behind the echo
// does. Without an echo the output comes back as it is.
func StripEcho(output, prompt string) string {
	want := splitLines(prompt)
	if len(want) == 0 || output == "" {
		return output
	}
	e := newEcho(prompt, want)
	got := splitLines(output)
	cut := e.runs(got)
	e.signals(output, got, cut)
	return without(output, got, cut)
}

// textLine is one line that is not blank.
type textLine struct {
	start, end int // byte offsets, the line break included
	hash       uint64
	tagged     bool // it holds a tag
}

// echo knows what a prompt looks like.
type echo struct {
	lines  map[uint64]struct{} // of its tagged lines
	pairs  map[pair]struct{}   // of lines that follow one another
	words  map[uint64]struct{} // windows of words that touch a tagged line
	length int                 // in lines
	first  uint64
}

type pair struct{ a, b uint64 }

func newEcho(prompt string, want []textLine) *echo {
	e := &echo{
		lines:  map[uint64]struct{}{},
		pairs:  make(map[pair]struct{}, len(want)),
		length: len(want),
		first:  want[0].hash,
	}
	for i, line := range want {
		if line.tagged {
			e.lines[line.hash] = struct{}{}
		}
		if i > 0 {
			e.pairs[pair{want[i-1].hash, line.hash}] = struct{}{}
		}
	}
	if len(e.lines) > 0 {
		e.words = map[uint64]struct{}{}
		windows(prompt, want, func(hash uint64, _, _ int) { e.words[hash] = struct{}{} })
	}
	return e
}

func (e *echo) pair(a, b textLine) bool {
	_, ok := e.pairs[pair{a.hash, b.hash}]
	return ok
}

// runs marks the lines that are an echo because of the lines around them.
func (e *echo) runs(got []textLine) []bool {
	cut := make([]bool, len(got))
	once := false
	for i := 0; i < len(got); {
		n := 1
		for i+n < len(got) && e.pair(got[i+n-1], got[i+n]) {
			n++
		}
		// A prompt of one line is its own echo once; the agent may say the
		// same behind it.
		single := e.length == 1 && !once && got[i].hash == e.first
		once = once || single
		if n >= minEcho || (n > 1 && n >= e.length) || single {
			for k := range n {
				cut[i+k] = true
			}
		}
		i += n
	}
	return cut
}

// signals marks the lines with a signal that the prompt has too and that
// stand among the prompt's lines or words.
func (e *echo) signals(output string, got []textLine, cut []bool) {
	if len(e.lines) == 0 {
		return
	}
	suspect := func(i int) bool {
		_, ok := e.lines[got[i].hash]
		return ok && !cut[i]
	}
	left := false
	for i := range got {
		if !suspect(i) {
			continue
		}
		cut[i] = (i > 0 && e.pair(got[i-1], got[i])) || (i+1 < len(got) && e.pair(got[i], got[i+1]))
		left = left || !cut[i]
	}
	if !left {
		return
	}
	windows(output, got, func(hash uint64, from, to int) {
		if _, ok := e.words[hash]; !ok {
			return
		}
		for i := from; i <= to; i++ {
			if suspect(i) {
				cut[i] = true
			}
		}
	})
}

// windows calls f for each window of wordsAround words that touches a tagged
// line, with its hash and the first and the last line that it touches.
func windows(text string, lines []textLine, f func(hash uint64, from, to int)) {
	var hashes [wordsAround]uint64
	var at [wordsAround]int
	n, lastTagged := 0, -1
	for i, line := range lines {
		if line.tagged {
			lastTagged = i
		}
		for word := range strings.FieldsSeq(bare(text[line.start:line.end])) {
			hashes[n%wordsAround], at[n%wordsAround] = hashOf(word), i
			n++
			if n < wordsAround || lastTagged < at[n%wordsAround] {
				continue
			}
			hash := uint64(0)
			for k := range wordsAround {
				hash = hash*0x9e3779b97f4a7c15 + hashes[(n+k)%wordsAround]
			}
			f(hash, at[n%wordsAround], i)
		}
	}
}

// without returns the text without the lines that are cut. Blank lines
// between two of them go too.
func without(text string, lines []textLine, cut []bool) string {
	var b strings.Builder
	kept := 0
	for i := 0; i < len(lines); i++ {
		if !cut[i] {
			continue
		}
		b.WriteString(text[kept:lines[i].start])
		for i+1 < len(lines) && cut[i+1] {
			i++
		}
		kept = lines[i].end
	}
	if kept == 0 {
		return text
	}
	b.WriteString(text[kept:])
	return b.String()
}

// hashOf is FNV-1a with a last stirring. It is the same in every process, as
// all that this package does.
func hashOf(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	h ^= h >> 32
	return h * 0x9e3779b97f4a7c15
}

// splitLines finds the lines that are not blank.
func splitLines(s string) []textLine {
	var lines []textLine
	for start := 0; start < len(s); {
		end := len(s)
		if i := strings.IndexByte(s[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		if text := bare(s[start:end]); text != "" {
			_, tagged := findTag(text, 0)
			lines = append(lines, textLine{start: start, end: end, hash: hashOf(text), tagged: tagged})
		}
		start = end
	}
	return lines
}

// bare is a line as it is compared.
func bare(line string) string {
	line = strings.TrimSpace(plain(line))
	for range maxQuoting {
		cut := false
		for _, sign := range [...]string{">", "│", "┃", "|"} {
			if rest, ok := strings.CutPrefix(line, sign); ok {
				line, cut = strings.TrimSpace(rest), true
			}
		}
		if !cut {
			break
		}
	}
	return line
}
