package failure

import (
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
)

// phraseSet finds all words of all rules in one pass over a text. Words are
// listed by their first two bytes.
type phraseSet map[string][]phrase

type phrase struct {
	word  string
	owner *rule
}

// add adds the words of a rule, which are matched without regard to the case of
// ASCII letters. Each has at least two.
func (set phraseSet) add(owner *rule) {
	for _, w := range owner.Words {
		w = strings.ToLower(w)
		set[w[:2]] = append(set[w[:2]], phrase{w, owner})
	}
}

// each calls f for every place where a word of the set stands and begins where
// a word of the text does: the word's owner and the half-open range. small is
// the text in small letters.
func (set phraseSet) each(text, small string, f func(owner *rule, from, to int)) {
	for i := range max(0, len(text)-1) {
		if !wordBegins(text, i) {
			continue
		}
		for _, p := range set[small[i:i+2]] {
			if !strings.HasPrefix(small[i:], p.word) {
				continue
			}
			if to := i + len(p.word); p.owner.Flags&inside != 0 || closed(text, to) {
				f(p.owner, i, to)
			}
		}
	}
}

// wordBegins tells whether a word may begin at text[i]. A capital after a small
// letter begins one: "Timeout" in "ReadTimeout", "Error" in "OSError".
func wordBegins(text string, i int) bool {
	c := text[i]
	if i == 0 || !words.IsWord(c) || c >= 0x80 || !words.IsWord(text[i-1]) {
		return true
	}
	return words.IsUpper(c) && (words.IsLower(text[i-1]) || i+1 < len(text) && words.IsLower(text[i+1]))
}

// closed tells whether what ends at text[:to] does not go on as the same word.
// A capital after a small letter begins a new word, so that "Timeout" is one
// in "TimeoutError".
func closed(text string, to int) bool {
	if to >= len(text) || text[to-1] >= 0x80 { // many scripts put no space between words
		return true
	}
	return !words.IsWord(text[to-1]) || !words.IsWord(text[to]) || words.IsLower(text[to-1]) && words.IsUpper(text[to])
}
