package failure

import "strings"

// fact is what is known of a line, so that it is found out once, however many
// rules ask: two bits each, whether it is known and what it is.
type fact uint8

const (
	itQuotes fact = 1 << (2 * iota)
	itWarns
	itGoesOn
)

// is returns what find says of line i, which is asked at most once.
func (h *hits) is(i int, what fact, find func() bool) bool {
	f := &h.facts[i]
	if *f&what == 0 {
		*f |= what
		if find() {
			*f |= what << 1
		}
	}
	return *f&(what<<1) != 0
}

// warns tells whether line i is a warning or less.
func (h *hits) warns(i int) bool {
	return h.is(i, itWarns, func() bool { return warns(h.t.line(i)) })
}

// goesOn tells whether line i says that something is tried again.
func (h *hits) goesOn(i int) bool {
	return h.again && h.is(i, itGoesOn, func() bool {
		from := int(h.t.starts[i] + h.t.ownAt(i))
		return goesOn(h.small[from : from+len(h.t.line(i))])
	})
}

// quotes tells whether the line is source code, a frame of a stack or the name
// of a test, or says what was expected. Of a long line only a part is examined,
// which depends on the phrase.
func (p *spot) quotes() bool {
	if len(p.l) == windowMax {
		return quotes(p.l, p.small)
	}
	return p.h.is(p.line, itQuotes, func() bool { return quotes(p.l, p.small) || p.h.differ && changes(p.l) })
}

// holdsAny tells whether one of words, in small letters, is in small.
func holdsAny(small string, words []string) bool {
	for _, w := range words {
		if strings.Contains(small, w) {
			return true
		}
	}
	return false
}
