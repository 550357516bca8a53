package failure

import (
	"regexp"
	"regexp/syntax"
	"strings"
	"sync"
)

// expression is a regular expression that is only looked at in lines of which
// the words in them do not tell.
type expression struct {
	*regexp.Regexp
	needs [][]string // of each list one is in all that it matches, in small letters
	sure  []string   // it matches where one of these is, in small letters
}

// lazily makes an expression that is compiled when it is first asked for; nil
// for "".
func lazily(source string) func() *expression {
	if source == "" {
		return nil
	}
	return sync.OnceValue(func() *expression { return compile(source) })
}

func compile(source string) *expression {
	e := &expression{Regexp: regexp.MustCompile(source)}
	if parsed, err := syntax.Parse(source, syntax.Perl); err == nil {
		e.needs, e.sure = needsOf(parsed), sureOf(parsed)
	}
	return e
}

func (e *expression) matches(p spot) bool {
	return e.possible(p.small) && (holdsAny(p.small, e.sure) || e.MatchString(p.l))
}

// find returns at most n matches in s with their groups.
func (e *expression) find(s string, n int) [][]string {
	if !e.possible(smallLetters(s)) {
		return nil
	}
	return e.FindAllStringSubmatch(s, n)
}

// possible is false where the words in small say that nothing matches.
func (e *expression) possible(small string) bool {
	for _, words := range e.needs {
		if !holdsAny(small, words) {
			return false
		}
	}
	return true
}

// needsOf returns lists of words, of each of which one is in whatever the
// expression matches, in small letters.
func needsOf(re *syntax.Regexp) [][]string {
	switch re.Op {
	case syntax.OpLiteral:
		if w := plainPart(re); w != "" {
			return [][]string{{w}}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return needsOf(re.Sub[0])
	case syntax.OpConcat:
		var all [][]string
		for _, sub := range re.Sub {
			all = append(all, needsOf(sub)...)
		}
		return all
	case syntax.OpAlternate:
		var either []string
		for _, sub := range re.Sub {
			of := needsOf(sub)
			if len(of) == 0 {
				return nil
			}
			either = append(either, best(of)...)
		}
		return [][]string{either}
	default:
	}
	return nil
}

// best is the list with the longest words.
func best(lists [][]string) []string {
	shortest := func(list []string) int {
		n := len(list[0])
		for _, w := range list {
			n = min(n, len(w))
		}
		return n
	}
	found := lists[0]
	for _, l := range lists[1:] {
		if shortest(l) > shortest(found) {
			found = l
		}
	}
	return found
}

// plainPart is the longest part of a literal of which the small letters are
// known. Without regard to case "k" and "s" also match letters that are not
// ASCII, and so may others that are not.
func plainPart(re *syntax.Regexp) string {
	longest := ""
	for _, part := range strings.FieldsFunc(string(re.Rune), func(r rune) bool {
		return re.Flags&syntax.FoldCase != 0 && (r >= 0x80 || strings.ContainsRune("kKsS", r))
	}) {
		if len(part) > len(longest) {
			longest = part
		}
	}
	return smallLetters(longest)
}

// sureOf returns words of which each alone makes the expression match; only
// parts that are matched without regard to case have such.
func sureOf(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 || !hasLetter(re.Rune) {
			return []string{smallLetters(string(re.Rune))}
		}
	case syntax.OpCapture:
		return sureOf(re.Sub[0])
	case syntax.OpAlternate:
		var words []string
		for _, sub := range re.Sub {
			words = append(words, sureOf(sub)...)
		}
		return words
	case syntax.OpConcat:
		words := []string{""}
		for _, sub := range re.Sub {
			var longer []string
			for _, w := range words {
				for _, next := range sureOf(sub) {
					longer = append(longer, w+next)
				}
			}
			if words = longer; len(words) > maxSure {
				return nil
			}
		}
		return words
	default:
	}
	return nil
}

// maxSure bounds the words of one expression.
const maxSure = 30

func hasLetter(runes []rune) bool {
	for _, r := range runes {
		if r >= 0x80 || isLower(lower(byte(r))) {
			return true
		}
	}
	return false
}
