package report

import (
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/pawl-dev/pawl/internal/decide/control"
	"github.com/pawl-dev/pawl/internal/decide/failure"
	"github.com/pawl-dev/pawl/internal/decide/loop"
	"github.com/pawl-dev/pawl/internal/decide/safety"
	"github.com/pawl-dev/pawl/internal/decide/signal"
)

// hostile are texts that try to be more than text.
var hostile = []string{
	`<script>alert(1)</script>`, `"><img src=x onerror=alert(1)>`, `' onmouseover='alert(1)`, `</style><script>alert(1)</script>`, `</title><script>`,
	`]]><svg/onload=alert(1)>`, `<!-- `, `-->`, `&lt;script&gt;`, `&#60;b&#62;`, `javascript:alert(1)`, `{{.Run}} {{template "x"}}`, `expression(alert(1))`,
	"`code` ``more`` ```", "a | b \\| c \\\\| d \\", "[click](javascript:alert(1))", "![x](http://evil.example/x.png)", "<http://evil.example>",
	"http://evil.example www.evil.example mailto:a@evil.example", "@everyone #1 !2", "# heading", "1. list", "- list", "* list", "+ list", "> quote", "=====", "---",
	"line\nbreak\r\n\r\n| a | b |\n| - | - |\n", "\x1b[31mred\x1b[0m\x07", "\u202egnirts\u202c", "\u2028next\u2029", "\x00\xff\xfe", "~~~~\n```\n", "$x^2$ **b** _i_ ~~s~~",
	"|", "\\", "`", strings.Repeat("`|", 50), strings.Repeat("a", 5000), "\ufeff", "</main></body></html>", "%s %d %!", "\t tab",
}

// everywhere is a run all of whose texts are the same.
func everywhere(text string) Input {
	f := &failure.Analysis{
		Class: failure.Class(text), Severity: failure.Severity(text), Fingerprint: text, Step: text, Summary: text, Actions: []string{text},
		Items: []failure.Item{{File: text, Line: 1, Test: text, Message: text, Expected: text, Received: text}},
	}
	r := loop.Record{
		Number: 1, Attempt: 1, StartedAt: began, Elapsed: time.Second, Agent: text, Strategy: text, Outcome: loop.Failed, Progress: -1, Failure: f,
		Exit:   loop.Exit{Code: -1, Signal: text, Ended: loop.Ended(text)},
		Signal: signal.Signal{Kind: signal.Blocked, Text: text}, Files: []string{text}, Tampered: []string{text},
		Refused: &safety.Finding{Pattern: text, Why: text, Command: text}, Secrets: []safety.Secret{{File: text, Line: 3, Kind: text}},
		Gates: []loop.Gate{{Name: text, Status: loop.GateStatus(text), Note: text, Elapsed: time.Second}},
		Review: &loop.Review{Verdict: loop.Rejected, Agent: text, Summary: text, Elapsed: time.Second, Items: []loop.Finding{
			{Item: failure.Item{File: text, Message: text}, Severity: failure.Severity(text)},
		}},
	}
	second := r
	second.Number, second.Failure, second.Review = 2, nil, &loop.Review{Verdict: loop.Undecided, Agent: text, Summary: text}
	in := Input{
		Run: "6h8w7p2r", Name: text, Kind: "procedure", Status: loop.Blocked, Why: text, StartedAt: began, Now: at(9), Records: []loop.Record{r, second},
		Sandbox: text, Version: text, Next: []Advice{{text, text}}, Changes: &Changes{Files: []File{{Status: "added", Path: text}}},
	}
	for _, k := range []MomentKind{Began, WaitBegan, Resumed, Recovered, Chosen, Asked, Answered, Warned, RolledBack, Rested} {
		in.Moments = append(in.Moments, Moment{At: at(len(in.Moments)), Kind: k, Text: text, Number: 1, Attempt: 1})
	}
	for i, status := range []string{"success", "failure", "asking", "running", text} {
		in.Executions = append(in.Executions, Execution{
			Step: text, Title: text, Kind: text, Agent: text, Status: status, Iteration: 1 + i/3, Try: 1, Alternative: i, StartedAt: at(i), Elapsed: time.Second,
			Failure: strings.Repeat(text, i%2), Output: text,
		})
	}
	in.State.Question = &loop.Question{Text: text, Pattern: text, Attempts: []string{text}, Choices: []control.Choice{{Text: text}}}
	return in
}

var (
	elements = []string{
		"html", "head", "meta", "title", "style", "body", "main", "header", "div", "span", "h1", "h2", "p", "code", "section", "ul", "ol", "li", "b", "i",
		"table", "thead", "tbody", "tr", "th", "td", "br", "footer",
	}
	attributes = []string{"lang", "charset", "name", "content", "http-equiv", "class", "style", "title", "data-name"}
	styles     = regexp.MustCompile(`^((left|width):\d+\.\d\d%;?)+$`)
	classes    = regexp.MustCompile(`^[a-z ]*$`)
)

// checkPage fails for a page that holds anything but the template's elements.
// The page is XML too, so that a parser without leniency can be asked.
func checkPage(t *testing.T, page string) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(page, "<!DOCTYPE html>")))
	count := map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the page is broken: %v", err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			name := token.Name.Local
			if count[name]++; !slices.Contains(elements, name) {
				t.Fatalf("the page holds <%s>", name)
			}
			for _, a := range token.Attr {
				switch key := a.Name.Local; {
				case !slices.Contains(attributes, key), key == "style" && !styles.MatchString(a.Value), key == "class" && !classes.MatchString(a.Value):
					t.Fatalf("<%s> has %s=%q", name, key, a.Value)
				}
			}
		case xml.Comment, xml.ProcInst, xml.Directive:
			t.Fatalf("the page holds %v", token)
		}
	}
	if count["style"] != 1 || count["title"] != 1 || count["main"] != 1 {
		t.Fatalf("the page is not one page: %v", count)
	}
	for _, c := range page {
		if unicode.IsControl(c) && c != '\n' || unicode.Is(unicode.Cf, c) {
			t.Fatalf("the page holds %U", c)
		}
	}
}

var rule = regexp.MustCompile(`^\| (--- \| )*--- \|$`)

// checkMarkdown reads the report as GitHub's Markdown is read, as far as it
// matters: outside of code spans nothing is markup but what the report itself
// writes, rows keep the number of their cells, and no text begins a block.
func checkMarkdown(t *testing.T, text string) {
	t.Helper()
	cells, fenced := 0, false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		for _, c := range line {
			if unicode.IsControl(c) || unicode.Is(unicode.Cf, c) && c != '\u200b' {
				t.Fatalf("a line holds %U: %q", c, line)
			}
		}
		if strings.HasPrefix(line, "```") {
			fenced = !fenced
			continue
		}
		if fenced {
			continue
		}
		n, rest := prose(t, line)
		switch {
		case !strings.HasPrefix(line, "|"):
			cells = 0
		case rule.MatchString(line):
			continue
		case cells == 0:
			cells = n
		case n != cells:
			t.Fatalf("a row has %d bars, not %d: %q", n, cells, line)
		}
		if i := strings.IndexAny(rest, "<>[]_~&$"); i >= 0 {
			t.Fatalf("%q is markup in %q", rest[i], line)
		}
		if strings.Contains(rest, "://") || strings.Contains(strings.ReplaceAll(rest, "www.\u200b", ""), "www.") {
			t.Fatalf("%q holds an address", line)
		}
	}
	if fenced {
		t.Fatal("a fence is not closed")
	}
}

// prose is what of a line is neither escaped nor in a code span, without the
// <br> and ** of the report's own; n counts its pipes, as a table does: also
// those in spans.
func prose(t *testing.T, line string) (n int, rest string) {
	t.Helper()
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
		case line[i] == '|':
			n++
		}
	}
	var b strings.Builder
	for i := 0; i < len(line); i++ {
		switch line[i] {
		case '\\':
			i++
		case '`':
			end := i
			for end < len(line) && line[end] == '`' {
				end++
			}
			fence := line[i:end]
			closing := closed(line[end:], fence)
			if closing < 0 {
				t.Fatalf("a span is not closed in %q", line)
			}
			i = end + closing + len(fence) - 1
		default:
			b.WriteByte(line[i])
		}
	}
	return n, strings.ReplaceAll(b.String(), "<br>", "")
}

// closed is where a run of exactly the fence's length is.
func closed(s, fence string) int {
	for i := 0; i < len(s); i++ {
		if s[i] != '`' {
			continue
		}
		end := i
		for end < len(s) && s[end] == '`' {
			end++
		}
		if end-i == len(fence) {
			return i
		}
		i = end
	}
	return -1
}

func checkReports(t *testing.T, text string) {
	t.Helper()
	r := New(everywhere(text))
	page, err := r.HTML()
	if err != nil {
		t.Fatal(err)
	}
	checkPage(t, page)
	checkMarkdown(t, markdownOf(t, r))
}

func TestHostile(t *testing.T) {
	t.Parallel()
	for _, text := range hostile {
		checkReports(t, text)
	}
	checkReports(t, strings.Join(hostile, " "))
	checkReports(t, strings.Join(hostile, ""))
}

// A text keeps its meaning: what was written is what is read.
func TestEscapedIsReadable(t *testing.T) {
	t.Parallel()
	page, err := New(everywhere(`a < b && "c" | d`)).HTML()
	if err != nil || !strings.Contains(page, `a &lt; b &amp;&amp; &#34;c&#34; | d`) {
		t.Errorf("the page lost the text, or: %v", err)
	}
	for text, want := range map[string]string{
		"a_b": `a\_b`, "see http://x.example": `see http\://x.example`, "1. x": `1\. x`, "- x": `\- x`, "v1.2": "v1.2", "at 10: yes": "at 10: yes", "a@b": "a@\u200bb",
	} {
		if got := escapeMarkdown(text); got != want {
			t.Errorf("escape(%q) = %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"x": "`x`", "": "", "a`b": "`` a`b ``", "a|b": "`a\\|b`", `a\|b`: "`a\\ \\|b`", "`": "`` ` ``",
	} {
		if got := codeSpanInCell(text); got != want {
			t.Errorf("code(%q) = %q, want %q", text, got, want)
		}
	}
}

func FuzzReport(f *testing.F) {
	for _, text := range hostile {
		f.Add(text)
	}
	f.Fuzz(checkReports)
}
