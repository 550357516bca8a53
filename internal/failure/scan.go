package failure

// This file finds all words of all rules in one pass over a text, so that the
// cost of an analysis grows with the text and not with the number of rules
// (Aho and Corasick's automaton over ASCII letters without case).

// scanner is an automaton over a set of words. It is immutable once built.
type scanner struct {
	class [256]uint8 // byte to column; bytes that no word holds share column 0
	width int
	next  []uint16  // next[state*width+column]
	found [][]int32 // words that end in a state, by number
	size  []int     // length of each word
}

// newScanner builds the automaton of words, which are matched without regard
// to the case of ASCII letters. The words together have to be shorter than
// 65,535 bytes.
func newScanner(words []string) *scanner {
	s := &scanner{size: make([]int, len(words))}
	s.columns(words)
	s.next = make([]uint16, s.width)
	s.found = make([][]int32, 1)
	for i, w := range words {
		s.size[i] = len(w)
		s.add(w, int32(i))
	}
	s.link()
	return s
}

func (s *scanner) columns(words []string) {
	s.width = 1
	for _, w := range words {
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

func (s *scanner) add(word string, number int32) {
	state := 0
	for i := range len(word) {
		at := state*s.width + int(s.class[word[i]])
		if s.next[at] == 0 {
			s.next[at] = uint16(len(s.found))
			s.next = append(s.next, make([]uint16, s.width)...)
			s.found = append(s.found, nil)
		}
		state = int(s.next[at])
	}
	s.found[state] = append(s.found[state], number)
}

// link turns the tree of words into the automaton: a missing edge leads where
// the longest proper suffix that is also a prefix would lead.
func (s *scanner) link() {
	fall := make([]uint16, len(s.found))
	var queue []uint16
	for c := range s.width {
		if n := s.next[c]; n != 0 {
			queue = append(queue, n)
		}
	}
	for len(queue) > 0 {
		state := queue[0]
		queue = queue[1:]
		s.found[state] = append(s.found[state], s.found[fall[state]]...)
		for c := range s.width {
			at := int(state)*s.width + c
			other := s.next[int(fall[state])*s.width+c]
			if s.next[at] == 0 {
				s.next[at] = other
				continue
			}
			fall[s.next[at]] = other
			queue = append(queue, s.next[at])
		}
	}
}

// each calls f for every place where a word ends: the word's number and the
// half-open range of the match. It stops when f returns false.
func (s *scanner) each(text string, f func(word, from, to int) bool) {
	state := 0
	for i := range len(text) {
		state = int(s.next[state*s.width+int(s.class[text[i]])])
		if state == 0 || s.found[state] == nil {
			continue
		}
		for _, w := range s.found[state] {
			if !f(int(w), i+1-s.size[w], i+1) {
				return
			}
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

// bounded tells whether text[from:to] is not a part of a longer word. A
// capital after a small letter begins a word too, so that "Timeout" is one in
// "ReadTimeout", while "ENOTFOUND" is none in "FileNotFoundError".
func bounded(text string, from, to int) bool {
	if from > 0 && wordByte(text[from]) && wordByte(text[from-1]) && (!isUpper(text[from]) || !isLower(text[from-1])) {
		return false
	}
	return to >= len(text) || !wordByte(text[to-1]) || !wordByte(text[to]) || isLower(text[to-1]) && isUpper(text[to])
}

func isUpper(c byte) bool { return 'A' <= c && c <= 'Z' }
func isLower(c byte) bool { return 'a' <= c && c <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
