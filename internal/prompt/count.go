package prompt

import "unicode/utf8"

// The features of a text that the estimate of its tokens is made of. Each is
// counted in one pass and has a weight; see tokens.go.
const (
	maxWord = 16 // longer words count as this long, and their further letters apart
	maxCaps = 8
	maxRun  = 5 // of punctuation

	fSpaced   = 0                   // words behind a space, by length
	fAttached = fSpaced + maxWord   // words behind another letter, a digit or a line break
	fPointed  = fAttached + maxWord // words behind one punctuation mark
	fCaps     = fPointed + maxWord  // words in capitals, by length
	fLong     = fCaps + maxCaps     // letters beyond the longest length
	fDigits   = fLong + 1           // groups of up to three digits
	fBlank    = fDigits + 1         // a space that stands alone, before a digit
	fSpaces   = fBlank + 1          // runs of further white space
	fTabs     = fSpaces + 1         // runs that are tabs
	fLine     = fTabs + 1           // line breaks, blank lines included
	fLineEnd  = fLine + 1           // line breaks right behind punctuation
	fMark     = fLineEnd + 1        // a mark before a letter
	fRun      = fMark + 1           // other runs of marks, by length
	fRunMore  = fRun + maxRun       // marks beyond the longest length
	fSame     = fRunMore + 1        // runs of four or more of the same mark
	fSameMore = fSame + 1           // groups of 16 in these
	fScript   = fSameMore + 1       // letters by script
	features  = fScript + scripts
)

// The scripts that cost differently.
const (
	latin   = iota // with accents
	greek          // Greek, Cyrillic, Armenian
	semitic        // Hebrew, Arabic
	indic          // Devanagari to Thai
	kana
	han
	hangul
	marks    // typographic punctuation, arrows, box drawing
	wide     // punctuation of Chinese and Japanese, full-width forms
	pictures // emoji
	other    // everything else, and bytes that are no UTF-8
	scripts
)

// class sorts bytes.
type class uint8

const (
	control class = iota
	lower
	upper
	digit
	blank
	line
	mark
	high
)

var classes = func() (table [256]class) {
	for i := range table {
		c := byte(i)
		switch {
		case c >= 0x80:
			table[i] = high
		case c >= 'a' && c <= 'z':
			table[i] = lower
		case c >= 'A' && c <= 'Z':
			table[i] = upper
		case c >= '0' && c <= '9':
			table[i] = digit
		case c == ' ' || c == '\t':
			table[i] = blank
		case c == '\n' || c == '\r':
			table[i] = line
		case c > ' ' && c < 0x7f:
			table[i] = mark
		}
	}
	return table
}()

// before is what stands directly in front of a word.
type before uint8

const (
	attached before = iota
	spaced
	pointed
)

// counter counts the features of one text.
type counter struct {
	n    [features]int64
	lead before
	// marked is true right behind punctuation, which takes a line break in.
	marked bool
}

func (c *counter) count(text string) {
	for i := 0; i < len(text); {
		switch classes[text[i]] {
		case lower, upper:
			i = c.word(text, i)
		case digit:
			i = c.digits(text, i)
		case blank:
			i = c.blanks(text, i)
		case line:
			i = c.lines(text, i)
		case mark:
			i = c.marks(text, i)
		case high:
			i = c.high(text, i)
		case control:
			c.n[fScript+other]++
			c.lead, c.marked = attached, false
			i++
		}
	}
}

// word takes one hump: capitals, then small letters.
func (c *counter) word(text string, i int) int {
	start := i
	for i < len(text) && classes[text[i]] == upper {
		i++
	}
	caps := i - start
	for i < len(text) && classes[text[i]] == lower {
		i++
	}
	n := i - start
	lead := c.lead
	c.lead, c.marked = attached, false
	if caps == n && n > 1 {
		c.n[fCaps+min(n, maxCaps)-1]++
		c.n[fLong] += int64(max(0, n-maxCaps))
		return i
	}
	length := min(n, maxWord) - 1
	c.n[fLong] += int64(n - 1 - length)
	switch lead {
	case spaced:
		c.n[fSpaced+length]++
	case pointed:
		c.n[fPointed+length]++
	case attached:
		c.n[fAttached+length]++
	}
	return i
}

func (c *counter) digits(text string, i int) int {
	start := i
	for i < len(text) && classes[text[i]] == digit {
		i++
	}
	c.n[fDigits] += int64(i-start+2) / 3
	c.lead, c.marked = attached, false
	return i
}

// blanks takes spaces and tabs within a line. The last one belongs to the
// word behind it.
func (c *counter) blanks(text string, i int) int {
	start := i
	for i < len(text) && classes[text[i]] == blank {
		i++
	}
	if i < len(text) && classes[text[i]] == line {
		return i // part of the line break
	}
	switch {
	case text[start] == '\t':
		c.n[fTabs]++
	case i-start > 1 || i == len(text):
		c.n[fSpaces]++
	}
	c.lead, c.marked = spaced, false
	if i < len(text) && classes[text[i]] == digit {
		c.n[fBlank]++
	}
	return i
}

// lines takes a line break with the blank lines behind it, but leaves the
// indentation of the next line.
func (c *counter) lines(text string, i int) int {
	end := i
	for i < len(text) && (classes[text[i]] == line || classes[text[i]] == blank) {
		i++
		if classes[text[i-1]] == line {
			end = i
		}
	}
	if c.marked {
		c.n[fLineEnd]++
	} else {
		c.n[fLine]++
	}
	c.lead, c.marked = attached, false
	return end
}

// marks takes a run of punctuation.
func (c *counter) marks(text string, i int) int {
	start, same := i, true
	for i < len(text) && classes[text[i]] == mark {
		same = same && text[i] == text[start]
		i++
	}
	n := i - start
	c.marked = true
	c.lead = attached
	switch {
	case n == 1 && i < len(text) && (classes[text[i]] == lower || classes[text[i]] == upper):
		c.n[fMark]++
		c.lead = pointed
	case same && n >= 4:
		c.n[fSame]++
		c.n[fSameMore] += int64(n / 16)
	default:
		c.n[fRun+min(n, maxRun)-1]++
		c.n[fRunMore] += int64(max(0, n-maxRun))
	}
	return i
}

// high takes one character beyond ASCII.
func (c *counter) high(text string, i int) int {
	r, size := utf8.DecodeRuneInString(text[i:])
	c.n[fScript+script(r)]++
	c.lead, c.marked = attached, false
	return i + size
}

func script(r rune) int {
	switch {
	case r == utf8.RuneError:
		return other
	case r >= 0x4e00 && r <= 0x9fff:
		return han
	case r < 0x2000:
		return alphabet(r)
	case r < 0x2c00:
		return marks
	case r >= 0x3040 && r <= 0x30ff:
		return kana
	case r >= 0xac00 && r <= 0xd7a3:
		return hangul
	case (r >= 0x3000 && r < 0x3040) || (r >= 0xff00 && r <= 0xffef):
		return wide
	case r >= 0x3400 && r < 0x4e00:
		return han
	case r >= 0x1f000 && r < 0x1fb00:
		return pictures
	}
	return other
}

func alphabet(r rune) int {
	switch {
	case r < 0x370 || (r >= 0x1e00 && r < 0x1f00):
		return latin
	case r < 0x590:
		return greek
	case r < 0x780:
		return semitic
	case r >= 0x900 && r < 0x0f00:
		return indic
	}
	return other
}
