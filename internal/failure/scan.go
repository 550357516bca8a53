package failure

import "strings"

// This file finds all words of all rules in one pass over a text, so that the
// cost of an analysis grows with the text and not with the number of rules.
// Words are looked for only where a word of the text can begin, and there by
// their first four bytes.

// scanner is a set of words. It is immutable once built.
type scanner struct {
	enters [256]bool                  // bytes that begin a word of the set without being a letter or a digit
	slots  []slot                     // a table by the first four bytes
	filter [1 << slotBits / 64]uint64 // which slots are looked for, small enough to stay near
	short  [256][]phrase              // words of less than four bytes by their first
	list   []phrase                   // words of four bytes or more, those with the same beginning together
	nexts  []next                     // of list, apart from it so that what is compared first stays near
}

type phrase struct {
	rest  string // behind the first four bytes; of a short one, all of it
	owner int32
}

// next is the four bytes of a word behind its first four, those that it has.
type next struct{ bytes, mask uint32 }

func nextOf(rest string) next {
	n := min(len(rest), 4)
	return next{upToFour(rest), uint32(1<<(8*n) - 1)}
}

// slot holds the words that begin with the four bytes of key: list[from:to].
type slot struct {
	key      uint32
	from, to int32
}

const slotBits = 13

func slotOf(key uint32) uint32 { return key * 0x9e3779b1 >> (32 - slotBits) }

// newScanner makes a set of words, which are matched without regard to the
// case of ASCII letters. owners[i] is what words[i] stands for; several words
// may be the same.
func newScanner(words []string, owners []int32) *scanner {
	s := &scanner{slots: make([]slot, 1<<slotBits)}
	byStart := map[uint32][]phrase{}
	var keys []uint32
	for i, w := range words {
		w = strings.ToLower(w)
		if c := w[0]; !wordByte(c) || c >= 0x80 {
			s.enters[c] = true
		}
		if len(w) < 4 {
			s.short[w[0]] = append(s.short[w[0]], phrase{rest: w, owner: owners[i]})
			continue
		}
		k := four(w)
		if byStart[k] == nil {
			keys = append(keys, k)
		}
		byStart[k] = append(byStart[k], phrase{rest: w[4:], owner: owners[i]})
	}
	for _, k := range keys {
		n := slotOf(k)
		s.filter[n/64] |= 1 << (n % 64)
		for s.slots[n].key != 0 {
			n = (n + 1) % (1 << slotBits)
		}
		from := int32(len(s.list))
		for _, p := range byStart[k] {
			s.list, s.nexts = append(s.list, p), append(s.nexts, nextOf(p.rest))
		}
		s.slots[n] = slot{key: k, from: from, to: int32(len(s.list))}
	}
	return s
}

// four is the first four bytes of s as a number.
func four(s string) uint32 {
	return uint32(s[0]) | uint32(s[1])<<8 | uint32(s[2])<<16 | uint32(s[3])<<24
}

// upToFour is the same of a text that may be shorter; what is missing is zero.
func upToFour(s string) uint32 {
	if len(s) >= 4 {
		return four(s)
	}
	var n uint32
	for i := range len(s) {
		n |= uint32(s[i]) << (8 * i)
	}
	return n
}

// The sorts of bytes, as far as the edges of words go.
const (
	otherByte = iota
	lowerByte // also digits, "_" and the bytes of other scripts
	upperByte
)

var sortOf = func() (t [256]uint8) {
	for i := range t {
		switch c := byte(i); {
		case isUpper(c):
			t[i] = upperByte
		case wordByte(c):
			t[i] = lowerByte
		}
	}
	return t
}()

// each calls f for every place where a word of the set stands and begins where
// a word of the text does: the word's owner and the half-open range. small is
// the text in small letters.
func (s *scanner) each(text, small string, f func(owner int32, from, to int)) {
	before := uint8(otherByte)
	for i := range len(text) {
		c := text[i]
		sort := sortOf[c]
		if sort == lowerByte && before != otherByte && c < 0x80 { // within a word, as most bytes are
			before = sort
			continue
		}
		begins := false
		switch {
		case sort == otherByte:
			begins = s.enters[c]
		case before == otherByte:
			begins = true
		case c >= 0x80:
			begins = s.enters[c]
		case sort == upperByte: // "Timeout" in "ReadTimeout", "Error" in "OSError"
			begins = isLower(text[i-1]) || i+1 < len(text) && isLower(text[i+1])
		}
		before = sort
		if begins {
			s.at(small, i, f)
		}
	}
}

// at calls f for the words that text[from:], in small letters, begins with.
func (s *scanner) at(text string, from int, f func(owner int32, from, to int)) {
	for _, p := range s.short[text[from]] {
		if strings.HasPrefix(text[from:], p.rest) {
			f(p.owner, from, from+len(p.rest))
		}
	}
	if len(text)-from < 4 {
		return
	}
	key := four(text[from:])
	n := slotOf(key)
	if s.filter[n/64]&(1<<(n%64)) == 0 {
		return
	}
	for ; s.slots[n].key != 0; n = (n + 1) % (1 << slotBits) {
		if s.slots[n].key != key {
			continue
		}
		rest := text[from+4:]
		bytes := upToFour(rest)
		from4 := int(s.slots[n].from)
		for i, next := range s.nexts[from4:s.slots[n].to] {
			if (bytes^next.bytes)&next.mask != 0 {
				continue
			}
			if p := &s.list[from4+i]; strings.HasPrefix(rest, p.rest) {
				f(p.owner, from, from+4+len(p.rest))
			}
		}
		return
	}
}

// smallLetters are the ASCII capitals of s as small letters; its offsets stay.
func smallLetters(s string) string {
	i := 0
	for i < len(s) && !isUpper(s[i]) {
		i++
	}
	if i == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	b.WriteString(s[:i])
	var piece [256]byte
	for s = s[i:]; s != ""; {
		n := copy(piece[:], s)
		for i, c := range piece[:n] {
			piece[i] = smallOf[c]
		}
		b.Write(piece[:n])
		s = s[n:]
	}
	return b.String()
}

var smallOf = func() (t [256]byte) {
	for i := range t {
		t[i] = lower(byte(i))
	}
	return t
}()

func lower(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c + 'a' - 'A'
	}
	return c
}

// wordByte tells whether c belongs to a word: a letter, a digit or "_".
// Bytes of other scripts count as letters.
func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= lower(c) && lower(c) <= 'z' || c >= 0x80
}

// closed tells whether what ends at text[:to] does not go on as the same word.
// A capital after a small letter begins a new word, so that "Timeout" is one
// in "TimeoutError".
func closed(text string, to int) bool {
	if to >= len(text) || text[to-1] >= 0x80 { // many scripts put no space between words
		return true
	}
	return !wordByte(text[to-1]) || !wordByte(text[to]) || isLower(text[to-1]) && isUpper(text[to])
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
