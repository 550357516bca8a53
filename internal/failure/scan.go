package failure

// This file finds all words of all rules in one pass over a text, so that the
// cost of an analysis grows with the text and not with the number of rules: a
// tree of words that is entered only where a word of the text can begin.

// scanner is a tree over a set of words. It is immutable once built.
type scanner struct {
	class  [256]uint8 // byte to column; bytes that no word holds have column 0
	enters [256]bool  // bytes that begin a word of the set without being a letter or a digit
	width  int
	next   []uint16 // next[state*width+column]; 0 means that no word goes on
	ends   []int32  // state to the first number in owners, plus one; 0 is none
	owners []int32  // what each word stands for; runs end with -1
}

// newScanner builds the tree of words, which are matched without regard to the
// case of ASCII letters. owners[i] is what words[i] stands for; several words
// may be the same. The words together have to be shorter than 65,535 bytes.
func newScanner(words []string, owners []int32) *scanner {
	s := &scanner{}
	s.columns(words)
	s.next = make([]uint16, s.width)
	found := [][]int32{nil}
	for i, w := range words {
		found = s.add(found, w, owners[i])
	}
	s.ends = make([]int32, len(found))
	for state, list := range found {
		if len(list) > 0 {
			s.ends[state] = int32(len(s.owners)) + 1
			s.owners = append(append(s.owners, list...), -1)
		}
	}
	return s
}

func (s *scanner) columns(words []string) {
	s.width = 1
	for _, w := range words {
		if c := w[0]; !wordByte(c) || c >= 0x80 {
			s.enters[c] = true
		}
		for i := range len(w) {
			if c := lower(w[i]); s.class[c] == 0 {
				s.class[c] = uint8(s.width)
				s.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		s.class[c] = s.class[lower(c)]
	}
}

func (s *scanner) add(found [][]int32, word string, owner int32) [][]int32 {
	state := 0
	for i := range len(word) {
		at := state*s.width + int(s.class[lower(word[i])])
		if s.next[at] == 0 {
			s.next[at] = uint16(len(found))
			s.next = append(s.next, make([]uint16, s.width)...)
			found = append(found, nil)
		}
		state = int(s.next[at])
	}
	found[state] = append(found[state], owner)
	return found
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
// a word of the text does: the word's owner and the half-open range.
func (s *scanner) each(text string, f func(owner int32, from, to int)) {
	before := uint8(otherByte)
	for i := 0; i < len(text); i++ {
		c := text[i]
		sort := sortOf[c]
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
			s.at(text, i, f)
		}
	}
}

// at follows the tree from text[from:].
func (s *scanner) at(text string, from int, f func(owner int32, from, to int)) {
	state := 0
	for i := from; i < len(text); i++ {
		state = int(s.next[state*s.width+int(s.class[text[i]])])
		if state == 0 {
			return
		}
		for n := s.ends[state]; n > 0 && s.owners[n-1] >= 0; n++ {
			f(s.owners[n-1], from, i+1)
		}
	}
}

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
