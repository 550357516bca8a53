package archtest

import (
	"bytes"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"strings"
)

// The limits of length, in lines.
const (
	maxFile   = 500
	maxReadme = 200
)

func checkLength(t *tree, found report) {
	t.each(func(_ *pkg, f *file) {
		if f.generated {
			return
		}
		if n := bytes.Count(f.src, []byte("\n")); n > maxFile {
			found(f.path, 0, "the file has %d lines", n)
		}
	})
}

// statement is a string that begins like SQL in the upper case in which
// this project writes it.
var statement = regexp.MustCompile(`^\s*(SELECT\s.+\sFROM\s|INSERT\s+(OR\s+\w+\s+)?INTO\s|UPDATE\s+\w+\s+SET\s|DELETE\s+FROM\s|CREATE\s+(UNIQUE\s+)?(TABLE|INDEX|TRIGGER|VIEW)\s|ALTER\s+TABLE\s|DROP\s+(TABLE|INDEX)\s|PRAGMA\s)`)

func checkSQL(t *tree, found report) {
	t.strings(func(p *pkg, f *file, line int, s string) {
		inStore := p.room == "store" || strings.HasPrefix(p.room, "store/")
		if !inStore && statement.MatchString(s) {
			found(f.path, line, "%s has an SQL statement", p.room)
		}
	})
}

// plural is a word in two numbers at once.
var plural = regexp.MustCompile(`[a-z]\(s\)`)

func checkPlural(t *tree, found report) {
	t.strings(func(_ *pkg, f *file, line int, s string) {
		// The message of this guard is fixed: other programs read it.
		if plural.MatchString(s) && !f.test && !strings.HasPrefix(s, "Thrashing detected: ") {
			found(f.path, line, "%q: write fault.Numbered", s)
		}
	})
}

// strings calls do for each string in the code.
func (t *tree) strings(do func(p *pkg, f *file, line int, s string)) {
	t.each(func(p *pkg, f *file) {
		if p.room == "archtest" {
			return
		}
		t.inspect(f, func(n ast.Node, line int) {
			lit, ok := n.(*ast.BasicLit)
			if !ok || lit.Kind != token.STRING {
				return
			}
			if s, ok := literal(lit); ok {
				do(p, f, line, s)
			}
		})
	})
}

// foreign are the traces of one machine. The expressions are written so
// that they do not find themselves.
var foreign = []struct {
	what string
	expr *regexp.Regexp
	// builds is true for what matters only in files that build the project:
	// a recorded failure may well quote it.
	builds bool
}{
	{"a path of one machine", regexp.MustCompile(`(?m)(?:^|[^\w.\-/~}$*])(/(?:work|root)/[\w.\-]+)`), false},
	{"a host of a private network", regexp.MustCompile(`https?://((?:10|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.[\d.]+|[\w.\-]+\.(?:internal|corp|lan))\b`), false},
	{"a registry", regexp.MustCompile(`\b(registry\.npmjs[.]org|registry\.yarnpkg[.]com|(?:proxy|sum)\.golang[.]org|goproxy[.](?:io|cn)|pypi[.]org|files\.pythonhosted[.]org|(?:index\.|static\.)?crates[.]io|(?:deb|security)\.debian[.]org|repo\.maven\.apache[.]org|repo1\.maven[.]org|rubygems[.]org)\b`), false},
	{"a choice of registry", regexp.MustCompile(`\b(GO(?:PROXY|SUMDB|NOSUMDB)=\S|(?:--)?registry=\S|GOFLAGS=-insecure)`), true},
}

func checkMachine(t *tree, found report) {
	for _, x := range t.texts {
		for _, trace := range foreign {
			if trace.builds && !buildFile(x.path) {
				continue
			}
			for _, at := range trace.expr.FindAllSubmatchIndex(x.data, -1) {
				found(x.path, lineOf(x.data, at[2]), "%s: %s", trace.what, x.data[at[2]:at[3]])
			}
		}
	}
}

// buildFile is true for files that build, test or install the project.
func buildFile(name string) bool {
	top, _, _ := strings.Cut(name, "/")
	switch path.Base(name) {
	case "Makefile", "Dockerfile", ".npmrc", "package.json", "package-lock.json", "go.mod":
		return !inTestdata(name)
	}
	return top == "scripts" || top == ".ci" || top == ".github" || top == "e2e"
}

func checkReadme(t *tree, found report) {
	for _, x := range t.texts {
		if n := bytes.Count(x.data, []byte("\n")); x.path == "README.md" && n > maxReadme {
			found(x.path, 0, "%d lines", n)
		}
	}
}

func checkMap(t *tree, found report) {
	for _, x := range t.texts {
		if x.path != "ARCHITECTURE.md" {
			continue
		}
		for _, p := range t.pkgs {
			if p.internal() && !bytes.Contains(x.data, []byte(path.Base(p.dir)+"/")) {
				found(x.path, 0, "the package %s is missing", p.room)
			}
		}
	}
}
