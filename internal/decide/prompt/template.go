package prompt

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template"

	"github.com/pawl-dev/pawl/internal/decide/lists"
)

// maxExpanded is the size of one fragment after its template has run.
const maxExpanded = 1 << 20

// data has the fields of a template. Their names are the user's interface.
type data struct {
	Procedure     string
	Iteration     int
	MaxIterations int
	// Work is the text of the section TASK; empty when the user said none.
	Work     string
	Case     Case
	Run      string
	Agent    string
	Strategy string
	// Feedback is the text of the section FEEDBACK; empty in a first iteration.
	Feedback string
	Gates    []string
}

func newTemplateData(in Input, told string) *data {
	return &data{
		Procedure:     cutToLine(in.Procedure),
		Iteration:     in.Iteration,
		MaxIterations: in.MaxIterations,
		Work:          strings.TrimSpace(in.Work),
		Case: Case{
			ID:          cutToLine(in.Case.ID),
			Title:       cutToLine(in.Case.Title),
			Description: quoteHeadings(in.Case.Description),
			Acceptance:  oneLines(in.Case.Acceptance),
			Tags:        oneLines(in.Case.Tags),
		},
		Run:      cutToLine(in.Run),
		Agent:    cutToLine(in.Agent),
		Strategy: cutToLine(in.Strategy),
		Feedback: told,
		Gates:    oneLines(in.Gates),
	}
}

func oneLines(texts []string) []string { return lists.Each(texts, cutToLine) }

// Expand returns one fragment's text, its template carried out, for a prompt
// that is no iteration's, such as a review's. The error is as in [Compose].
func Expand(f Fragment, in Input) (string, error) {
	text, err := expandFragment(f, newTemplateData(in, feedbackText(&in, maxItems)))
	return strings.TrimSpace(text), err
}

// expandFragment returns the fragment's text, its template carried out.
func expandFragment(f Fragment, d *data) (string, error) {
	if !isTemplate(f.Text) {
		return f.Text, nil
	}
	t, err := parseTemplate(f.Name, f.Text)
	if err != nil {
		return "", err
	}
	return executeTemplate(t, f.Name, d)
}

func isTemplate(text string) bool { return strings.Contains(text, "{{") }

// CheckTemplate tries a fragment on a first iteration and a later one, when the
// configuration is loaded. The error has the fragment's name and line: a mistake in
// the template, or a field that there is not.
func CheckTemplate(name, text string) error {
	if !isTemplate(text) {
		return nil
	}
	t, err := parseTemplate(name, text)
	if err != nil {
		return err
	}
	for _, sample := range sampleData() {
		if _, err := executeTemplate(t, name, sample); err != nil {
			return err
		}
	}
	return nil
}

// sampleData are a first iteration of a procedure and a later one of a case, so
// that both sides of a condition are tried.
func sampleData() []*data {
	return []*data{
		{Procedure: "build", Iteration: 1, Run: "01J0", Agent: "claude"},
		{
			Procedure: "build", Iteration: 2, MaxIterations: 10, Run: "01J0", Agent: "claude", Strategy: "focused",
			Work: "Do this.",
			Case: Case{
				ID: "task-001", Title: "A title", Description: "A description.",
				Acceptance: []string{"It works."}, Tags: []string{"a-tag"},
			},
			Feedback: "Iteration 1: a test is red.", Gates: []string{"tests"},
		},
	}
}

// parseTemplate reads a template.
func parseTemplate(name, text string) (*template.Template, error) {
	join := func(sep string, list []string) string { return strings.Join(list, sep) }
	t, err := template.New(name).Option("missingkey=error").Funcs(template.FuncMap{"join": join}).Parse(text)
	if err != nil {
		return nil, templateError(name, err)
	}
	return t, nil
}

func executeTemplate(t *template.Template, name string, d *data) (string, error) {
	var out limited
	if err := t.Execute(&out, d); err != nil {
		return "", templateError(name, err)
	}
	return out.b.String(), nil
}

// wordsOfTemplate is how package text/template begins its errors.
const wordsOfTemplate = "template: "

// templateError keeps the place that text/template names and drops its own
// type names.
func templateError(name string, err error) error {
	why := strings.TrimPrefix(err.Error(), wordsOfTemplate)
	if rest, ok := strings.CutPrefix(why, name+":"); ok {
		why = name + ":" + rest
	}
	why = strings.ReplaceAll(why, "in type *prompt.data", "in a prompt; there are "+fieldNames(reflect.TypeFor[data]()))
	why = strings.ReplaceAll(why, "in type prompt.Case", "in a case; there are "+fieldNames(reflect.TypeFor[Case]()))
	return fmt.Errorf("cannot use the template in %s", why)
}

// limited takes a template's output up to its bound.
type limited struct{ b strings.Builder }

func (l *limited) Write(p []byte) (int, error) {
	if l.b.Len()+len(p) > maxExpanded {
		return 0, errors.New("its output is over 1 MiB")
	}
	return l.b.Write(p)
}

// fieldNames that a template may use.
func fieldNames(t reflect.Type) string {
	names := lists.Each(reflect.VisibleFields(t), func(f reflect.StructField) string { return "." + f.Name })
	return strings.Join(names, ", ")
}
