package board

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// told is a list in short: one line a draft.
func told(list List) string {
	var b strings.Builder
	for i, d := range list.Drafts {
		c := d.Case
		fmt.Fprintf(&b, "%d@%d", i+1, d.Line)
		for _, f := range []struct{ name, value string }{
			{"", string(c.Type)}, {"ref=", c.Ref}, {"", fmt.Sprintf("%q", c.Title)}, {"in=", strings.TrimPrefix(fmt.Sprint(d.In), "0")},
			{"parent=", c.Parent}, {"needs=", strings.Join(c.Needs, "+")}, {"tags=", strings.Join(c.Tags, "+")},
			{"p=", strings.TrimPrefix(fmt.Sprint(c.Priority), "0")}, {"", string(c.Status)}, {"accept=", strings.Join(c.Acceptance, "+")},
			{"text=", strings.ReplaceAll(c.Description, "\n", "|")},
		} {
			if f.value != "" {
				b.WriteString(" " + f.name + f.value)
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

func TestParseMarkdown(t *testing.T) {
	t.Parallel()
	text := `# Plan

Words that belong to nothing.

- [ ] Parser
  - [ ] Tokenizer
    ref: tok
    tags: critical, quick-win
    Reads the bytes.

      more, indented

    ` + "```" + `
    - [ ] no case
    ` + "```" + `
  * [X] Grammar
	  - plain
1. [ ] Docs
   needs: tok, task-007
   priority: -2
   acceptance: one
   acceptance: two
   needs that are words
` + "```" + `
- [ ] no case either
` + "```" + `
- no box
`
	list, err := Parse([]byte("\uFEFF" + strings.ReplaceAll(text, "\n", "\r\n")))
	if err != nil {
		t.Fatal(err)
	}
	want := `1@5 operation "Parser"
2@6 task ref=tok "Tokenizer" in=1 tags=critical+ quick-win text=Reads the bytes.||  more, indented||` + "```|- [ ] no case|```" + `
3@16 task "Grammar" in=1 done text=- plain
4@18 task "Docs" needs=tok+ task-007 p=-2 accept=one+two text=needs that are words
`
	if got := told(list); got != want || list.Format != Markdown {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// What stands at a box with another mark was begun, and is a task; what was dropped is none.
func TestParseBoxes(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte("# Plan\n- [x] Set up\n- [~] Parser, half done\n- [ ] Printer\n- [/] Docs, begun\n- [-] Dropped\n- [] Tests\n- [a](b.md) is a link\n"))
	if err != nil {
		t.Fatal(err)
	}
	var open []string
	for _, d := range list.Drafts {
		if d.Case.Status != Done {
			open = append(open, d.Case.Title)
		}
	}
	if got := strings.Join(open, "|"); got != "Parser, half done|Printer|Docs, begun|Tests" {
		t.Errorf("open: %s", got)
	}
}

func TestParseLines(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte(`
{"ref":"a","title":"A","description":"x","acceptance":["1","2"],"tags":["t"],"priority":3,"type":"operation"}

{"title":"B","needs":"a","parent":"a","acceptance":"only"}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := "1@2 operation ref=a \"A\" tags=t p=3 accept=1+2 text=x\n2@4 \"B\" parent=a needs=a accept=only\n"
	if got := told(list); got != want || list.Format != Lines {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestParseBeads(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte(`{"id":"bd-1","title":"Epic","issue_type":"epic","status":"open","priority":0,"created_at":"2026-01-01T00:00:00Z"}
{"id":"bd-1.1","title":"Child","issue_type":"task","status":"in_progress","priority":2,"labels":["a b"],"acceptance_criteria":"- [ ] one\n- two","design":"D","notes":"N","description":"X","dependencies":[{"issue_id":"bd-1.1","depends_on_id":"bd-1","type":"parent-child"},{"issue_id":"bd-1.1","depends_on_id":"bd-2","type":"blocks"},{"issue_id":"bd-1.1","depends_on_id":"bd-9","type":"related"},{"issue_id":"bd-1.1","depends_on_id":"bd-3","type":"blocks"}]}
{"id":"bd-2","title":"Closed","status":"closed","priority":4,"close_reason":"ok"}
{"id":"bd-3","title":"Gone","status":"tombstone"}
{"id":"bd-4","title":"Mail","status":"open","issue_type":"message"}
{"id":"bd-5","title":"Stuck","status":"blocked","acceptance_criteria":"all\nof it"}
{"id":"bd-6","title":"Later","status":"deferred","some_new_field":{"x":1}}
`))
	if err != nil {
		t.Fatal(err)
	}
	want := `1@1 operation ref=bd-1 "Epic" p=2
2@2 task ref=bd-1.1 "Child" parent=bd-1 needs=bd-2 tags=a-b accept=one+two text=X||Design:||D||Notes:||N
3@3 task ref=bd-2 "Closed" p=-2 done
4@6 task ref=bd-5 "Stuck" blocked accept=all
of it
5@7 task ref=bd-6 "Later" deferred
`
	if got := told(list); got != want || list.Format != Beads {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if notes := []string{"1 left out: deleted", "1 left out: no work (message)"}; !slices.Equal(list.Notes, notes) {
		t.Errorf("notes %q", list.Notes)
	}
}

// What cannot be understood is said with its line.
func TestParseTrouble(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"":                                "the list is empty",
		" \n\t\n":                         "the list is empty",
		"some words\n":                    "it has no tasks",
		"- no box\n":                      "it has no tasks",
		"Number,Status\na,b\n":            `a table (CSV) whose first line names its columns: title,`,
		"a\nb\xff\n":                      "line 2: the text is not UTF-8",
		"[{\"title\":\"x\"}]":             "this is a JSON list",
		"{\"title\":\"x\"}\n{bad\n":       "line 2: not a JSON object",
		"{\"title\":\"x\"}\n[1]\n":        "line 2: not a JSON object",
		"{\"titel\":\"x\"}\n":             `line 1: unknown field "titel"`,
		"{\"title\":1}\n":                 "line 1: number into Go",
		"{\"title\":\"x\",\"needs\":{}}":  "line 1: write a text or a list of texts",
		"{\"id\":\"b\"}\n{\"ref\":\"r\"}": "line 2: a different kind of object",
		"{\"id\":\"\"}":                   "line 1: the issue has no id",
		"- [ ] a\n  priority: high\n":     `line 2: the priority "high" is not a whole number`,
	} {
		_, err := Parse([]byte(text))
		var problems *ProblemsError
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	_, err := Parse([]byte(strings.Repeat("{bad\n", 1000)))
	if got := strings.Split(err.Error(), "\n"); len(got) != maxProblems+1 || got[maxProblems] != "and 980 more" {
		t.Errorf("a thousand problems are told in %d lines: %s", len(got), got[len(got)-1])
	}
}

// empty is a board with nothing on it.
func empty() Known {
	var last int64
	return Known{
		Find:    func(string) (Case, bool, error) { return Case{}, false, nil },
		Waits:   func(string) ([]string, error) { return nil, nil },
		Awaited: func(string) (bool, error) { return false, nil },
		NewID:   func(t Type) (string, error) { last++; return ID(t, last), nil },
	}
}

func TestResolveTrouble(t *testing.T) {
	t.Parallel()
	deep := ""
	for i := range MaxDepth + 2 {
		deep += strings.Repeat("  ", i) + "- [ ] x\n"
	}
	for text, want := range map[string]string{
		`{"ref":"a","title":"x"}` + "\n" + `{"ref":"a","title":"y"}`:                          `line 2: the ref "a" is already used in line 1`,
		`{"ref":"a","title":"x","needs":"b"}`:                                                 `line 1: it needs "b", which is neither in the list nor on the board`,
		`{"title":"x","parent":"b"}`:                                                          `line 1: the parent "b" is neither`,
		`{"ref":"a","title":"x","type":"task"}` + "\n" + `{"title":"y","parent":"a"}`:         "line 2: the parent a is a task",
		`{"ref":"a","title":"x","needs":"a"}`:                                                 "line 1: a would wait for itself",
		`{"ref":"a","title":"x","needs":"b"}` + "\n" + `{"ref":"b","title":"y","needs":"a"}`:  "a → b → a",
		`{"ref":"o","title":"x"}` + "\n" + `{"ref":"c","title":"y","parent":"o","needs":"o"}`: "o → c → o",
		`{"ref":"o","title":"x","parent":"o"}`:                                                "it is nested in itself",
		`{"title":"x","status":"active"}`:                                                     "a new task cannot be active",
		`{"title":"x","type":"epic"}`:                                                         `the type "epic" is unknown`,
		`{"title":""}`:                                                                        "the title is empty",
		"- [ ] " + strings.Repeat("x", 1<<20):                                                 "the title has 1048576 bytes",
		deep:                                                                                  "nested in itself, or more than 16",
	} {
		list, err := Parse([]byte(text))
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		added, err := Resolve(list.Drafts, empty())
		var problems *ProblemsError
		if !errors.As(err, &problems) || !strings.Contains(err.Error(), want) || added.Cases != nil {
			t.Errorf("%q: %v, want %q", cutForMessage(text), err, want)
		}
	}
}

// A board that cannot be read is no board without what was looked for.
func TestResolveOfABoardThatCannotBeRead(t *testing.T) {
	t.Parallel()
	unread := errors.New("cannot read the board")
	known := empty()
	known.Find = func(string) (Case, bool, error) { return Case{}, false, unread }
	for _, c := range []Case{{Title: "x", Needs: []string{"b"}}, {Title: "x", Parent: "op-001"}, {Title: "x", Ref: "a"}} {
		if _, err := Resolve([]Draft{{Case: c}}, known); !errors.Is(err, unread) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// Whatever is in a file: nothing panics, and what is accepted is sound.
func FuzzParse(f *testing.F) {
	f.Add([]byte("- [ ] a\n  - [x] b\n    needs: c\n"))
	f.Add([]byte(`{"ref":"a","title":"x","needs":["b"]}` + "\n" + `{"ref":"b","title":"y","parent":"a"}`))
	f.Add([]byte(`{"id":"a","title":"x","dependencies":[{"depends_on_id":"a","type":"blocks"}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := Parse(text)
		if err != nil {
			return
		}
		added, err := Resolve(list.Drafts, empty())
		if err != nil {
			return
		}
		if len(added.Cases) != len(list.Drafts) {
			t.Fatalf("%d cases of %d drafts", len(added.Cases), len(list.Drafts))
		}
		by := map[string]Case{}
		for _, c := range added.Cases {
			by[c.ID] = c
		}
		for _, c := range added.Cases {
			if wrong := Check(c); len(wrong) > 0 {
				t.Fatalf("%+v: %q", c, wrong)
			}
			if c.Parent != "" && by[c.Parent].Type != Operation {
				t.Fatalf("%s is in %q", c.ID, c.Parent)
			}
			unmet := 0
			for _, n := range c.Needs {
				need, ok := by[n]
				if !ok {
					t.Fatalf("%s needs %s, which is nothing", c.ID, n)
				}
				if need.Status != Done {
					unmet++
				}
			}
			if unmet != c.Unmet {
				t.Fatalf("%s has %d unmet needs, and says %d", c.ID, unmet, c.Unmet)
			}
		}
	})
}

func TestParseStories(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte(`{
  "project": "shop",
  "userStories": [
    {"id": "US-2", "title": "Show it", "priority": 2, "passes": false, "notes": "read US-1"},
    {"id": "US-1", "title": "Store it", "description": "As a user", "priority": 1, "passes": true,
     "acceptanceCriteria": ["a", "b"]},
    {"id": 3, "title": "Sort it", "priority": 3, "passes": false}
  ]
}`))
	want := `1@4 task ref=US-2 "Show it" needs=US-1 text=Notes:||read US-1
2@5 task ref=US-1 "Store it" done accept=a+b text=As a user
3@7 task ref=3 "Sort it" needs=US-2
`
	if got := told(list); err != nil || got != want || list.Format != Ralph || len(list.Notes) != 1 {
		t.Errorf("got %v %q %v\n%s\nwant\n%s", err, list.Format, list.Notes, got, want)
	}

	// What says what it needs is in no other order.
	list, err = Parse([]byte(`[{"category": "ui", "description": "Draw it\nwell", "steps": ["look"], "passes": false},
 {"id": "x", "title": "Print it", "dependencies": ["story-1"], "priority": "high", "passes": false}]`))
	want = `1@1 task ref=story-1 "Draw it" tags=ui accept=look text=Draw it|well
2@2 task ref=x "Print it" needs=story-1
`
	if got := told(list); err != nil || got != want || len(list.Notes) > 0 {
		t.Errorf("got %v %v\n%s\nwant\n%s", err, list.Notes, got, want)
	}

	_, err = Parse([]byte("{\"userStories\": [\n{\"id\": \"a\", \"title\": 7}]}"))
	if err == nil || !strings.Contains(err.Error(), "line 2: ") {
		t.Errorf("a title that is a number: %v", err)
	}
}

func TestParseTable(t *testing.T) {
	t.Parallel()
	list, err := Parse([]byte("\uFEFF" + `Issue ID,Title,Description,Status,Priority,Project,Assignee(s),Labels,Creator,Created,Updated,Start Date,Due Date,Completed,Parent Issue
APP-1,Login,"With a
""password""",In progress,Urgent,App,Ada,"front end, ui",Ada,2026-01-01,2026-01-02,,,,
APP-2,Form,,To do,,App,,,Ada,2026-01-01,2026-01-02,,,,APP-1
APP-3,Later,,Backlog,Low,App,,,Ada,2026-01-01,2026-01-02,,,,
APP-4,Never,,Cancelled,,App,,,Ada,2026-01-01,2026-01-02,,,,
APP-5,Over,,Shipped,,App,,,Ada,2026-01-01,2026-01-02,,,2026-01-03,APP-9
Issue ID,Related Issue ID,Type,Created
APP-2,APP-3,Blocking,2026-01-01
APP-4,APP-2,Blocking,2026-01-01
APP-1,APP-3,Related,2026-01-01
`))
	want := `1@2 operation ref=APP-1 "Login" tags=front-end+ui p=2 text=With a|"password"
2@4 task ref=APP-2 "Form" parent=APP-1
3@5 task ref=APP-3 "Later" needs=APP-2 p=-1 deferred
4@7 task ref=APP-5 "Over" done
`
	if got := told(list); err != nil || got != want || list.Format != Table || fmt.Sprint(list.Notes) != "[1 left out: cancelled]" {
		t.Errorf("got %v %q %v\n%s\nwant\n%s", err, list.Format, list.Notes, got, want)
	}
	if _, err = Parse([]byte("Issue ID,Title\n\"a")); err == nil {
		t.Error("a table that is cut off was read")
	}
	list, err = Parse([]byte(`
priority, Summary,Depends on,Labels,key,State
2,Parser,"B-2, B-3","core,",B-1,In Review
highest,Lexer,,,B-2,Closed
,Old,,,B-3,Won't do
`))
	want = `1@3 task ref=B-1 "Parser" needs=B-2 tags=core p=2
2@4 task ref=B-2 "Lexer" p=2 done
`
	if got := told(list); err != nil || got != want {
		t.Errorf("got %v\n%s\nwant\n%s", err, got, want)
	}
	list, err = Parse([]byte("Identifier;Title;Labels;Labels\nX-1;One;a;b\n"))
	if got := told(list); err != nil || got != "1@2 task ref=X-1 \"One\" tags=a+b\n" {
		t.Errorf("got %v\n%s", err, got)
	}
	if _, err = Parse([]byte("title\tpriority\none\tNaN\ntwo\t1.5\nthree\t1e20\n")); err == nil ||
		strings.Count(err.Error(), "not a whole number") != 3 {
		t.Errorf("got %v", err)
	}
	list, err = Parse([]byte("title,status\none,\ntwo,backlog\n"))
	if got := told(list); err != nil || got != "1@2 task \"one\"\n2@3 task \"two\" deferred\n" {
		t.Errorf("got %v\n%s", err, got)
	}
	list, err = Parse([]byte("Notes on name, title and so on\n\n- [ ] one\n"))
	if err != nil || list.Format != Markdown {
		t.Errorf("got %v %q", err, list.Format)
	}
}
