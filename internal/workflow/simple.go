package workflow

import (
	"slices"
	"strconv"
)

// simple is an expression of names, texts, ==, !=, &&, ||, !, and the status
// functions: nearly all that workflows hold. It gives what the library gives
// for the same text, without a program made first.
type simple struct {
	op    byte     // '=' equal, '#' unequal, '&', '|', '!'; 'n' a name, 'v' a value, 's' a status function
	name  []string // of 'n'; the function of 's'
	value any      // of 'v': text or bool
	left  *simple
	right *simple
}

// maxSimple bounds the parts of a simple expression; the library has the rest.
const maxSimple = 64

// simpleReader reads what the rewriter has written. It gives up, with nil, at
// all that is not simple or not right: the library reads that, and has the
// words for what is wrong.
type simpleReader struct {
	*rewriter
	pos   int // in out
	ref   int // the next one
	parts int
}

func (r *rewriter) simple() *simple {
	s := simpleReader{rewriter: r}
	n := s.either()
	if s.space(); n == nil || s.pos != len(r.out) {
		return nil
	}
	return n
}

func (s *simpleReader) space() {
	for s.pos < len(s.out) && (s.out[s.pos] == ' ' || s.out[s.pos] == '\t' || s.out[s.pos] == '\n') {
		s.pos++
	}
}

// takes moves over an operator, if it comes next.
func (s *simpleReader) takes(operator string) bool {
	s.space()
	if s.pos+len(operator) > len(s.out) {
		return false
	}
	for i := range len(operator) {
		if s.out[s.pos+i] != rune(operator[i]) {
			return false
		}
	}
	s.pos += len(operator)
	return true
}

func (s *simpleReader) node(n simple) *simple {
	if s.parts++; s.parts > maxSimple {
		return nil
	}
	return &n
}

func (s *simpleReader) both(op byte, operator string, below func() *simple) *simple {
	n := below()
	for n != nil && s.takes(operator) {
		right := below()
		if right == nil {
			return nil
		}
		n = s.node(simple{op: op, left: n, right: right})
	}
	return n
}

func (s *simpleReader) either() *simple { return s.both('|', "||", s.all) }
func (s *simpleReader) all() *simple    { return s.both('&', "&&", s.equal) }

func (s *simpleReader) equal() *simple {
	n := s.not()
	if n == nil {
		return nil
	}
	op := byte('=')
	if !s.takes("==") {
		if op = '#'; !s.takes("!=") {
			return n
		}
	}
	right := s.not()
	if right == nil || s.takes("==") || s.takes("!=") { // a == b == c
		return nil
	}
	return s.node(simple{op: op, left: n, right: right})
}

func (s *simpleReader) not() *simple {
	if !s.takes("!") {
		return s.operand()
	}
	if n := s.not(); n != nil {
		return s.node(simple{op: '!', left: n})
	}
	return nil
}

func (s *simpleReader) operand() *simple {
	switch {
	case s.takes("("):
		n := s.either()
		if n == nil || !s.takes(")") {
			return nil
		}
		return n
	case s.pos < len(s.out) && s.out[s.pos] == '"':
		return s.quoted()
	case s.ref < len(s.refs) && s.refs[s.ref].at == s.pos:
		ref := s.refs[s.ref]
		s.pos, s.ref = ref.end, s.ref+1
		if !s.ends() || !oneText(ref.path) {
			return nil
		}
		return s.node(simple{op: 'n', name: ref.path})
	}
	start := s.pos
	for s.pos < len(s.out) && wordStart(s.out[s.pos]) {
		s.pos++
	}
	switch word := string(s.out[start:s.pos]); {
	case (word == "true" || word == "false") && s.ends():
		return s.node(simple{op: 'v', value: word == "true"})
	case slices.Contains(statuses, word) && s.takes("(") && s.takes(")") && s.ends():
		return s.node(simple{op: 's', name: []string{word}})
	}
	return nil
}

// quoted reads a text as the rewriter writes them.
func (s *simpleReader) quoted() *simple {
	start := s.pos
	for s.pos++; s.pos < len(s.out) && s.out[s.pos] != '"'; s.pos++ {
		if s.out[s.pos] == '\\' {
			s.pos++
		}
	}
	s.pos++
	text, err := strconv.Unquote(string(s.out[start:min(s.pos, len(s.out))]))
	if err != nil || !s.ends() {
		return nil
	}
	return s.node(simple{op: 'v', value: text})
}

// ends is true if nothing sticks to an operand: a field, an index, a call.
func (s *simpleReader) ends() bool {
	s.space()
	if s.pos >= len(s.out) {
		return true
	}
	switch s.out[s.pos] {
	case ')', '=', '!', '&', '|':
		return true
	}
	return false
}

// oneText is true for the name of one text, as steps.build.output; false for
// maps, and for names that the types of a scope do not have.
func oneText(path []string) bool {
	switch root := path[0]; len(path) {
	case 1:
		return root == "output"
	case 2:
		return root == "env" || root == "matrix" || root == "context"
	case 3:
		return root == "steps" && slices.Contains([]string{"output", "result", "outcome", "conclusion"}, path[2]) ||
			root == "needs" && (path[2] == "output" || path[2] == "result")
	case 4:
		return (root == "steps" || root == "needs") && path[2] == "outputs"
	}
	return false
}

// eval gives the expression its value: text or bool.
func (s *simple) eval(v *Values) any {
	switch s.op {
	case 'v':
		return s.value
	case 'n':
		return v.named(s.name)
	case 's':
		return v.status(s.name[0])
	case '!':
		return !truthy(s.left.eval(v))
	}
	left, right := s.left.eval(v), s.right.eval(v)
	switch order, ok := compareLoose(left, right); {
	case s.op == '=':
		return ok && order == 0
	case s.op == '#':
		return !ok || order != 0
	case truthy(left) == (s.op == '&'):
		return right
	}
	return left
}

// status is what a status function says.
func (v *Values) status(function string) bool {
	switch function {
	case "success":
		return !v.Failed && !v.Skipped && !v.Cancelled
	case "failure":
		return v.Failed && !v.Cancelled
	case "cancelled":
		return v.Cancelled
	}
	return true // always
}

// named is the text that a name of oneText stands for; "" for one that is not
// there, as a map gives it.
func (v *Values) named(path []string) string {
	switch path[0] {
	case "output":
		return v.Output
	case "env":
		return v.Env[path[1]]
	case "matrix":
		return v.Matrix[path[1]]
	case "context":
		return v.Context[path[1]]
	}
	r := v.Steps[path[1]]
	switch {
	case path[2] == "outputs":
		return r.Outputs[path[3]]
	case path[2] == "outcome":
		return r.Outcome
	case path[2] == "conclusion", path[0] == "needs" && path[2] == "result":
		return r.Conclusion
	}
	return r.Output
}
