package cli

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/spf13/pflag"
)

// A command that pawl prints works as printed: there is such a command, it has these flags,
// and it takes so many arguments. What is printed is in string literals, in the help, and in
// the sentences of the documents.
func TestPrintedCommands(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, text := range printedTexts(t) {
		for _, line := range commandsIn(text.text) {
			seen++
			if err := checkPrinted(line); err != nil {
				t.Errorf("%s: %q: %v", text.place, line, err)
			}
		}
	}
	if seen < 300 {
		t.Errorf("only %d commands were found; the test does not see what it should", seen)
	}
}

// A test of the test: what it finds in a sentence, and what it says of it.
func TestPrintedCommandsAreJudged(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, line, err string }{
		{"Start one: pawl serve", "pawl serve", ""},
		{"pawl waits until then", "", ""},
		{"Or add %d: pawl case add TITLE, then go on", "pawl case add TITLE", ""},
		{"'pawl serve --url' prints it", "pawl serve --url", ""},
		{"Look: pawl serve --uri", "pawl serve --uri", "unknown flag: --uri"},
		{"Look: pawl case look %s", "pawl case look %s", `unknown command "look"`},
		{"See: pawl show ", "pawl show \x00", ""},
		{"See: pawl show", "pawl show", "needs a run"},
		{"pawl run NAME \"do it, now\"", "pawl run NAME \"do it, now\"", ""},
		{"pawl settle %s %s --mine", "pawl settle %s %s --mine", ""},
		{"Write one with: pawl init", "pawl init", ""},
		{"pawl stop is %s", "pawl stop is %s", "needs"},
	} {
		lines := commandsIn(c.text)
		if c.line == "" {
			if len(lines) > 0 {
				t.Errorf("%q: found %q", c.text, lines)
			}
			continue
		}
		if len(lines) != 1 || lines[0] != c.line {
			t.Errorf("%q: found %q, want %q", c.text, lines, c.line)
			continue
		}
		if err := checkPrinted(lines[0]); (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%q: %v, want %q", c.line, err, c.err)
		}
	}
}

// What a page shows in a sentence. Its blocks are looked at where they are run.
var (
	fences     = regexp.MustCompile("(?ms)^( *)```[a-z]*\n.*?```$")
	inlineCode = regexp.MustCompile("`pawl [^`]*`")
)

type printedText struct{ place, text string }

// printedTexts are all string literals of the product, what is concatenated as one text with
// a NUL for each value in it, and the other texts that people see.
func printedTexts(t *testing.T) (texts []printedText) {
	t.Helper()
	const top = "../../.."
	files := token.NewFileSet()
	err := filepath.WalkDir(filepath.Join(top, "internal"), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "dist" || strings.HasSuffix(path, "internal/test")):
			return filepath.SkipDir
		case strings.HasSuffix(path, "_test.go") || !strings.HasSuffix(path, ".go"):
			return nil
		}
		f, err := parser.ParseFile(files, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text, isText := textOf(e)
			if isText {
				texts = append(texts, printedText{files.Position(n.Pos()).String(), text})
			}
			return !isText
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(top, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	guides, err := filepath.Glob(filepath.Join(top, "docs", "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range slices.Concat(pages, guides, []string{filepath.Join(top, "README.md")}) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, span := range inlineCode.FindAllString(fences.ReplaceAllString(string(text), ""), -1) {
			texts = append(texts, printedText{page, strings.ReplaceAll(span, "\n", " ")})
		}
	}
	for line := range strings.Lines(helpTexts) {
		if example, ok := strings.CutPrefix(line, "  "); ok {
			texts = append(texts, printedText{"help.txt", example})
		}
	}
	return texts
}

// textOf is the text of a literal, or of literals and values that are added up.
func textOf(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		return text, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		if e.Op != token.ADD {
			return "", false
		}
		left, isLeft := textOf(e.X)
		right, isRight := textOf(e.Y)
		if !isLeft {
			left = "\x00"
		}
		if !isRight {
			right = "\x00"
		}
		return left + right, isLeft || isRight
	}
	return "", false
}

// begins is the start of a command in a text.
var begins = regexp.MustCompile(`(?m)(^|[\s'"` + "`" + `(=|])pawl `)

// commandsIn are the command lines of a text. "pawl waits" is none: there is no such command.
func commandsIn(text string) (lines []string) {
	for _, at := range begins.FindAllStringIndex(text, -1) {
		from := at[1] - len("pawl ")
		quote := ""
		if from > 0 && strings.ContainsRune("'\"`", rune(text[from-1])) {
			quote = text[from-1 : from]
		}
		line := cutCommand(text[from:], quote)
		if words := strings.Fields(line); len(words) > 1 && isCommand(words[1]) {
			if quote != "" && !strings.Contains(line, " -") && isComplete(words[1:]) {
				continue // it is named, not to be typed
			}
			lines = append(lines, line)
		}
	}
	return lines
}

var names = sync.OnceValue(func() (all []string) {
	for _, c := range Root().Commands() {
		all = append(append(all, c.Name()), c.Aliases...)
	}
	return all
})

// isComplete is true of a command that has no arguments.
func isComplete(words []string) bool {
	_, rest, err := Root().Find(words)
	return err == nil && len(rest) == 0
}

func isCommand(name string) bool { return slices.Contains(names(), name) }

// cutCommand ends a command line where its sentence goes on.
func cutCommand(text, quote string) string {
	if quote != "" {
		text, _, _ = strings.Cut(text, quote)
	}
	inQuote := rune(0)
	for i, r := range text {
		next := byte(' ')
		if i+1 < len(text) {
			next = text[i+1]
		}
		switch {
		case r == inQuote:
			inQuote = 0
		case inQuote != 0:
		case r == '"' || r == '\'':
			inQuote = r
		case r == '\n', r == ')', r == ';', strings.HasPrefix(text[i:], " #"), strings.HasPrefix(text[i:], "  "),
			strings.HasPrefix(text[i:], " | "), strings.HasPrefix(text[i:], " >"),
			strings.ContainsRune(",:.?", r) && (next == ' ' || next == '\n') && !strings.HasSuffix(text[:i], "."):
			return strings.TrimRight(text[:i], " ")
		}
	}
	if strings.HasSuffix(text, " ") {
		return text + "\x00" // the value that is added
	}
	return strings.TrimRight(text, ".")
}

// lastValue is a value that follows a word, as a part of the sentence.
var lastValue = regexp.MustCompile(`([a-z])(%s|\x00)$`)

func checkPrinted(line string) error {
	words := shellWords(lastValue.ReplaceAllString(line, "$1"))
	cmd, rest, err := Root().Find(words[1:])
	switch {
	case err != nil:
		return err
	case cmd.HasSubCommands() && len(rest) > 0 && (rest[0][0] == '%' || rest[0] == "\x00"):
		return nil // whichever it is
	}
	flags := pflag.NewFlagSet("printed", pflag.ContinueOnError)
	flags.SetInterspersed(cmd.Name() != "schedule" && cmd.Name() != "shell")
	add := func(f *pflag.Flag) {
		if flags.Lookup(f.Name) != nil {
			return
		}
		c := *f
		c.Value = anyValue{f.Value.Type()}
		flags.AddFlag(&c)
	}
	cmd.Flags().VisitAll(add)
	cmd.InheritedFlags().VisitAll(add)
	for _, name := range []string{"help", "version"} {
		add(&pflag.Flag{Name: name, NoOptDefVal: "true", Value: anyValue{"bool"}})
	}
	if err := flags.Parse(rest); err != nil || flags.Changed("help") || cmd.Args == nil {
		return err
	}
	if err := cmd.Args(cmd, flags.Args()); err != nil && !strings.HasSuffix(line, "\x00") { // of any number of words
		return err
	}
	return nil
}

// anyValue takes any value of a flag: a printed one may stand for a value.
type anyValue struct{ kind string }

func (anyValue) String() string   { return "" }
func (anyValue) Set(string) error { return nil }
func (v anyValue) Type() string   { return v.kind }

// shellWords are the words of a command line up to a redirection.
func shellWords(line string) (words []string) {
	for _, word := range regexp.MustCompile(`("[^"]*"|'[^']*'|[^\s"'])+`).FindAllString(line, -1) {
		if strings.HasPrefix(word, "<") || word == "&&" {
			break
		}
		words = append(words, strings.Trim(word, `"'`))
	}
	return words
}
