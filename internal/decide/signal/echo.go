package signal

import (
	"slices"
	"strings"
)

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
	e := newEcho(want)
	got := splitLines(output)
	cut := e.markRuns(got)
	e.markSignals(got, cut)
	return removeLines(output, got, cut)
}

// textLine is one line that is not blank.
type textLine struct {
	start, end int    // byte offsets, the line break included
	text       string // as it is compared
}

func (l textLine) hasTag() bool {
	_, ok := findTag(l.text, 0)
	return ok
}

// echo knows what a prompt looks like.
type echo struct {
	want  []textLine
	lines map[string]bool    // that have tags
	pairs map[[2]string]bool // of lines that follow one another
	words map[string]bool    // windows of words that touch a tagged line
}

func newEcho(want []textLine) *echo {
	e := &echo{want: want, lines: map[string]bool{}, pairs: map[[2]string]bool{}, words: map[string]bool{}}
	for i, line := range want {
		if i > 0 {
			e.pairs[[2]string{want[i-1].text, line.text}] = true
		}
		if line.hasTag() {
			e.lines[line.text] = true
			for _, window := range windowsAround(want, i) {
				e.words[window] = true
			}
		}
	}
	return e
}

// isPair reports whether line i of a text and the one behind it follow one another in the
// prompt too.
func (e *echo) isPair(got []textLine, i int) bool {
	return i >= 0 && i+1 < len(got) && e.pairs[[2]string{got[i].text, got[i+1].text}]
}

// markRuns marks the lines that are an echo because of the lines around them.
func (e *echo) markRuns(got []textLine) []bool {
	cut := make([]bool, len(got))
	once := false
	for i := 0; i < len(got); {
		n := 1
		for e.isPair(got, i+n-1) {
			n++
		}
		// A prompt of one line is its own echo once; the agent may say the
		// same behind it.
		single := len(e.want) == 1 && !once && got[i].text == e.want[0].text
		once = once || single
		whole := n > 1 && n >= len(e.want)
		if n >= minEcho || whole || single {
			for k := range n {
				cut[i+k] = true
			}
		}
		i += n
	}
	return cut
}

// markSignals marks the lines with a signal that the prompt has too and that
// stand among the prompt's lines or words.
func (e *echo) markSignals(got []textLine, cut []bool) {
	for i, line := range got {
		if cut[i] || !e.lines[line.text] {
			continue
		}
		cut[i] = e.isPair(got, i-1) || e.isPair(got, i) ||
			slices.ContainsFunc(windowsAround(got, i), func(window string) bool { return e.words[window] })
	}
}

// windowsAround are the runs of wordsAround words that have a word of line i.
func windowsAround(lines []textLine, i int) []string {
	words := strings.Fields(lines[i].text)
	for k, room := i-1, wordsAround-1; k >= 0 && room > 0; k-- {
		before := strings.Fields(lines[k].text)
		before = before[max(0, len(before)-room):]
		room -= len(before)
		words = slices.Concat(before, words)
	}
	for k, room := i+1, wordsAround-1; k < len(lines) && room > 0; k++ {
		behind := strings.Fields(lines[k].text)
		behind = behind[:min(len(behind), room)]
		room -= len(behind)
		words = append(words, behind...)
	}
	var all []string
	for n := wordsAround; n <= len(words); n++ {
		all = append(all, strings.Join(words[n-wordsAround:n], " "))
	}
	return all
}

// removeLines returns the text without the lines that are cut. Blank lines
// between two of them go too.
func removeLines(text string, lines []textLine, cut []bool) string {
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

// splitLines finds the lines that are not blank.
func splitLines(s string) []textLine {
	var lines []textLine
	start := 0
	for line := range strings.Lines(s) {
		end := start + len(line)
		if text := comparedLine(line); text != "" {
			lines = append(lines, textLine{start, end, text})
		}
		start = end
	}
	return lines
}

// comparedLine makes a line comparable: without blanks, terminal codes and marks of quotations.
func comparedLine(line string) string {
	line = strings.TrimSpace(carryOutCodes(line))
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
