package prompt

import "strconv"

// kind sorts characters by what they cost.
type kind int

const (
	letter kind = iota
	capital
	numeral
	space
	newline
	sign
	accent // and other alphabets
	ideograph
	rare
)

// costs are hundredths of a token: of the first character of a run of one kind,
// of the second, and of each further one.
var costs = [...][3]int{
	letter: {100, 11, 9}, capital: {110, 20, 25}, numeral: {75, 15, 33},
	space: {0, 75, 0}, newline: {90, 0, 0}, sign: {69, 19, 19},
	accent: {35, 35, 35}, ideograph: {60, 60, 60}, rare: {95, 95, 95},
}

const (
	spaced   = 43 // what a word behind a space costs less
	repeated = 4  // what the same sign costs in a row of it
)

// Tokens estimates how many tokens a model makes of the text. Models differ in
// their vocabularies, so it is an estimate for all of them; an empty text has none.
// On code, prose and streams of agents half of the files are within 5 % of a
// public vocabulary of 200,000 entries, and nine in ten within 15 %.
func Tokens(text string) int {
	sum, run := 0, 0
	last, before := newline, rune(0)
	for _, r := range text {
		k := kindOf(r)
		if hump := last == capital && k == letter; k != last && !hump {
			run = 0
			if word := k == letter || k == capital; word && last == space {
				sum -= spaced
			}
		}
		if k == sign && r == before && run > 1 {
			sum += repeated
		} else {
			sum += costs[k][min(run, 2)]
		}
		run, last, before = run+1, k, r
	}
	return (sum + 99) / 100
}

func kindOf(r rune) kind {
	switch {
	case r >= 'a' && r <= 'z':
		return letter
	case r >= 'A' && r <= 'Z':
		return capital
	case r >= '0' && r <= '9':
		return numeral
	case r == ' ' || r == '\t':
		return space
	case r == '\n' || r == '\r':
		return newline
	case r > ' ' && r < 0x7f:
		return sign
	case r >= 0x80 && r < 0x2000:
		return accent
	case r >= 0x3000 && r < 0xe000:
		return ideograph
	}
	return rare
}

// Thousands writes a number with a comma between groups of three digits, as
// in 4,230.
func Thousands(n int) string {
	digits := strconv.Itoa(n)
	start := 0
	if n < 0 {
		start = 1
	}
	for i := len(digits) - 3; i > start; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
