package workflow

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// maxText bounds what a filled-in text may grow to, in bytes.
const maxText = 16 << 20

// Text is a text with placeholders: ${{ expression }}, and {{ name }} where the
// name is steps.ID.output, ID.result and the like. In prompts {{ word }} is a
// value of the context; elsewhere it stays as it is, and so does {{.Field}}.
type Text struct {
	parts []part
}

type part struct {
	text string
	expr *expression // nil for text
}

// Condition is an `if:`. Without a status function it also asks success().
type Condition struct {
	expr *expression
}

// AsksStatus reports whether the condition holds, or may hold, after a failure:
// it asks success(), failure(), always() or cancelled() itself.
func (c Condition) AsksStatus() bool { return c.expr != nil && c.expr.status }

// Values are what a text or condition may ask for.
type Values struct {
	// Steps are the results of the steps that ended, by id. One that is not
	// there was skipped: its texts are empty.
	Steps   map[string]Result
	Env     map[string]string
	Matrix  map[string]string
	Context map[string]string
	Output  string // of this step, while its outputs are computed
	// Failed is true if a needed step failed, Skipped if one was skipped by its
	// condition, Cancelled if the run is stopped.
	Failed, Skipped, Cancelled bool
}

// Result is how a step ended.
type Result struct {
	Outcome    string // success, failure, cancelled, skipped
	Conclusion string // the same, but success for an optional step that failed
	Output     string // what it printed or said, without the last line end
	Outputs    map[string]string
}

// scopeOfValues gives the library what it needs of the values.
func (v *Values) scopeOfValues() scope {
	s := scope{
		Steps: make(map[string]stepView, len(v.Steps)), Needs: make(map[string]needView, len(v.Steps)),
		Env: v.Env, Matrix: v.Matrix, Context: v.Context, Output: v.Output,
		Success: v.hasSucceeded, Failure: func() bool { return v.Failed && !v.Cancelled },
		Always: func() bool { return true }, Cancelled: func() bool { return v.Cancelled },
	}
	for id, r := range v.Steps { // order does not show: a map becomes a map
		s.Steps[id] = stepView{r.Output, r.Output, r.Outputs, r.Outcome, r.Conclusion}
		s.Needs[id] = needView{r.Output, r.Outputs, r.Conclusion}
	}
	return s
}

func (v *Values) hasSucceeded() bool { return !v.Failed && !v.Skipped && !v.Cancelled }

// Fill puts values for placeholders. Its error says which expression cannot be
// evaluated, or that the text grows too long.
func (t Text) Fill(v Values) (string, error) {
	if len(t.parts) == 1 && t.parts[0].expr == nil {
		return t.parts[0].text, nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		text := p.text
		if p.expr != nil {
			value, err := p.expr.evaluateWith(&v)
			if err != nil {
				return "", err
			}
			text = formatValue(value)
		}
		if b.Len()+len(text) > maxText {
			return "", fmt.Errorf("cannot fill in the text: it is over %d MiB", maxText>>20)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// Holds is true if the step is to run.
func (c Condition) Holds(v Values) (bool, error) {
	if !c.AsksStatus() && !v.hasSucceeded() {
		return false, nil
	}
	if c.expr == nil {
		return true, nil
	}
	value, err := c.expr.evaluateWith(&v)
	return isTruthy(value), err
}

// textError is a mistake in a placeholder; find is the placeholder, the offset
// of err counts from its beginning.
type textError struct {
	find string
	err  *expressionError
}

// parseText reads a text. prompt allows {{ word }}; known are the ids of the
// steps.
func parseText(text string, prompt bool, known map[string]bool) (Text, []textError) {
	var t Text
	var errs []textError
	rest, from := text, 0
	for {
		i := strings.Index(rest[from:], "{{")
		if i < 0 {
			break
		}
		i += from
		start, full := i, false
		if i > 0 && rest[i-1] == '$' {
			start, full = i-1, true
		}
		end := closingBraces(rest[i+2:], full)
		if end < 0 {
			if full {
				errs = append(errs, textError{firstLine(rest[start:]),
					&expressionError{message: "${{ is not closed: }} is missing"}})
			}
			break
		}
		inner, whole := rest[i+2:i+2+end], rest[start:i+2+end+2]
		source, lead := inner, utf8.RuneCountInString(rest[start:i+2])
		if !full {
			if source = bareName(inner, prompt, known); source == "" {
				from = i + 2
				continue
			}
		}
		e, err := compileExpression(source, known)
		if err != nil {
			errs = append(errs, textError{firstLine(whole), shiftError(err, lead)})
		} else {
			for n := range e.refs {
				e.refs[n].offset += lead
			}
			e.source = strings.TrimSpace(whole)
			t.parts = append(t.parts, part{text: rest[:start]}, part{text: whole, expr: e})
		}
		rest, from = rest[i+2+end+2:], 0
	}
	t.parts = append(t.parts, part{text: rest})
	return t, errs
}

func shiftError(err error, by int) *expressionError {
	e, ok := err.(*expressionError) //nolint:errorlint // compile returns it unwrapped
	if !ok {
		return &expressionError{message: err.Error()}
	}
	c := *e
	c.offset += by
	return &c
}

// closingBraces finds }}, outside of quotes in a full expression.
func closingBraces(s string, full bool) int {
	var quote byte
	for i := 0; i+1 < len(s); i++ {
		switch {
		case quote != 0:
			if s[i] == quote {
				quote = 0
			}
		case full && strings.IndexByte(`'"`, s[i]) >= 0:
			quote = s[i]
		case s[i] == '}' && s[i+1] == '}':
			return i
		case !full && s[i] == '\n':
			return -1
		}
	}
	return -1
}

// bareName is the expression that {{ inner }} stands for; "" if it is none.
func bareName(inner string, prompt bool, known map[string]bool) string {
	name := strings.TrimSpace(inner)
	dotted := strings.Contains(name, ".")
	for i, word := range strings.Split(name, ".") {
		if word == "" {
			return ""
		}
		if i == 0 && !wordStart(rune(word[0])) {
			return ""
		}
		for _, c := range word {
			if !wordPart(c) {
				return ""
			}
		}
	}
	switch {
	case dotted, name == "output" && !prompt:
		return inner
	case prompt && !known[name]:
		return strings.Replace(inner, name, "context."+name, 1)
	case prompt:
		return strings.Replace(inner, name, "steps."+name+".output", 1)
	}
	return ""
}
