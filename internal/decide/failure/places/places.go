// Package places reads in a line where in a file something is, and which two values it compares.
package places

import (
	"regexp"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// Place is a position in a file.
type Place struct {
	File      string
	Line, Col int
	Rest      string // of the text, after the place
	From      int    // where the place begins in the text
}

// In finds the first place in s, in one of the notations that tools use:
//
//	file:12:3  file:12  file(12,3)  file:[12,3]  file", line 12  file line 12  file#L12
//
// A file's name has an extension of letters, so that times and addresses are
// no places.
func In(s string) (Place, bool) {
	for at := 0; at < len(s); {
		dot := strings.IndexByte(s[at:], '.')
		if dot < 0 {
			return findByFileName(s)
		}
		dot += at
		at = dot + 1
		ext := dot + 1
		for ext < len(s) && words.IsWord(s[ext]) && ext-dot < 14 {
			ext++
		}
		if ext == dot+1 || words.IsDigit(s[dot+1]) || ext < len(s) && s[ext] == '.' {
			continue
		}
		line, col, end := lineAfter(s, ext)
		if line == 0 {
			continue
		}
		from := fileStart(s, dot, ext)
		local := strings.HasPrefix(s[from:], "file://") || strings.HasPrefix(s[from:], "webpack://")
		web := strings.Contains(s[from:ext], "://") && !local
		if web || served().MatchString(s[from:ext]) {
			continue
		}
		return Place{File: Tidy(s[from:ext]), Line: line, Col: col, Rest: s[end:], From: from}, true
	}
	return Place{}, false
}

var (
	// plainFile is a place in a file whose name has no extension.
	plainFile = lazy.Regexp(`(?:^|[ "'(\[])(?:--> ([\w./-]+)|((?:[\w.-]*/)*(?:\w*file|BUILD|WORKSPACE` +
		`|CODEOWNERS)))(?::|,? line )(\d{1,6})(?::(\d{1,6}))?`)
	// pathFirst is one that begins a line, by its folder.
	pathFirst = lazy.Regexp(`^\s*(/?(?:[\w.-]+/)+[\w-]+):(\d{1,6})(?::(\d{1,6}))?: `)
	// keyedFile is one as programs write it for programs: file=a,line=3 or "file": "a", "line": 3.
	keyedFile = lazy.Regexp(`\b(?:(?:source)?(?:file|path)(?:_?name)?|uri` +
		`|name)"?[=:] ?"?([\w@./\\-]+)"?(?:[,;> ]+(?:.{0,80}?[,;<{ ])?)` +
		`"?(?:(?:start_?)?[lL]ine(?:_?[nN]umber|[nN]o)?|row)"?[=:] ?"?(\d{1,6})`)
	// keyedLine is one where the line stands first.
	keyedLine = lazy.Regexp(`\b(?:[lL]ine(?:_?[nN]umber|[nN]o)?` +
		`|row)"?[=:] ?"?(\d{1,6})"?[,; ](?:.{0,60}?[,; ])??"?(?:file|path)(?:_?[nN]ame)?"?[=:] ?"?([\w@./\\-]+\.\w+)`)
)

// lineOfFile is a place as PowerShell says it: "at line: 3 in C:\a.ps1".
var lineOfFile = lazy.Regexp(`^\s*at line: (\d+) in (\S.*\.\w+)$`)

// findByFileName finds a place that no extension shows.
func findByFileName(s string) (Place, bool) {
	if m := firstMatch(plainFile, s, "file:", "file, line ", "file line ", "-->", "BUILD:", "WORKSPACE:",
		"CODEOWNERS:"); m != nil {
		from, to := m[2], m[3]
		if from < 0 {
			from, to = m[4], m[5]
		}
		p := Place{File: Tidy(s[from:to]), Rest: s[m[1]:], From: from}
		p.Line, _ = words.Number(s, m[6])
		if m[8] >= 0 {
			p.Col, _ = words.Number(s, m[8])
		}
		return p, p.Line > 0
	}
	if m := firstMatch(pathFirst, s, "/"); m != nil {
		p := Place{File: Tidy(s[m[2]:m[3]]), Rest: s[m[1]:], From: m[2]}
		p.Line, _ = words.Number(s, m[4])
		return p, p.Line > 0
	}
	return Keyed(s)
}

// Keyed finds a place in the fields of a record.
func Keyed(s string) (Place, bool) {
	if m := firstMatch(keyedFile, s, "ine", "row"); len(m) > 0 {
		if s[m[0]] == 'n' && !strings.Contains(s[m[2]:m[3]], ".") { // a name of something else
			return Place{}, false
		}
		p := Place{File: Tidy(s[m[2]:m[3]]), Rest: s[m[1]:], From: m[0]}
		p.Line, _ = words.Number(s, m[4])
		return p, p.Line > 0
	}
	if m := lineOfFile().FindStringSubmatch(s); m != nil {
		line, _ := words.Number(m[1], 0)
		return Place{File: Tidy(m[2]), Line: line}, line > 0
	}
	if m := firstMatch(keyedLine, s, "ine", "row"); len(m) > 0 {
		p := Place{File: Tidy(s[m[4]:m[5]]), Rest: s[m[1]:], From: m[0]}
		p.Line, _ = words.Number(s, m[2])
		return p, p.Line > 0
	}
	return Place{}, false
}

// firstMatch returns the indexes of the first match of e in s, or nil. To be fast it tries e only
// if s has a digit and one of the words.
func firstMatch(e func() *regexp.Regexp, s string, one ...string) []int {
	if !words.Has(s, one...) || !strings.ContainsAny(s, "0123456789") {
		return nil
	}
	return e().FindStringSubmatchIndex(s)
}

// fileStart goes back from the dot before the extension to where the name begins.
func fileStart(s string, dot, ext int) int {
	if ext < len(s) && strings.IndexByte("\"'`", s[ext]) >= 0 { // with blanks in it
		if from := strings.LastIndexByte(s[:dot], s[ext]) + 1; from > 0 &&
			strings.Count(s[:from], s[ext:ext+1])%2 == 1 {
			return from
		}
	}
	from := strings.LastIndexAny(s[:dot], " \t\"'`(<>[]{}|=,;*") + 1
	said := strings.TrimPrefix(s, "e: ")
	if from > 0 && hasDrive(said) && strings.Contains(s[from:dot], `\`) && !hasDrive(s[from:]) { // it has blanks
		return len(s) - len(said)
	}
	return from
}

// hasDrive reports whether s begins with a path of Windows.
func hasDrive(s string) bool { return len(s) > 3 && s[1] == ':' && s[2] == '\\' && words.IsUpper(s[0]) }

// Tidy is the name of a file without what a program puts before it.
func Tidy(f string) string {
	f = strings.TrimPrefix(f, "file://")
	if _, below, ok := strings.Cut(f, "/./"); ok && strings.HasPrefix(f, "webpack://") {
		f = below
	}
	f = strings.TrimPrefix(f, "webpack:///")
	// a program's name before it
	if i := strings.LastIndexByte(f, ':'); i > 1 && !strings.HasPrefix(f, "ext:") && !strings.HasPrefix(f, "node:") {
		f = f[i+1:]
	}
	if len(f) > 2 && f[0] == '.' && f[1] == '/' {
		f = f[2:]
	}
	return words.Cut(f, 300)
}

// lineAfter reads a line and a column from s[i:]; line 0 means that there is none.
func lineAfter(s string, i int) (line, col, end int) {
	const eslintCompact = ": line "
	switch {
	case i >= len(s):
		return 0, 0, i
	case strings.HasPrefix(s[i:], eslintCompact):
		line, end = words.Number(s, i+len(eslintCompact))
		if rest, ok := strings.CutPrefix(s[end:], ", col "); ok {
			n, width := words.Number(rest, 0)
			return line, n, end + len(", col ") + width
		}
		return line, 0, end
	case strings.HasPrefix(s[i:], ": ("): // Kotlin, once: file: (12, 3): message
		return readNumbers(s, i+3, ")")
	case strings.HasPrefix(s[i:], ": At "): // HCL 1
		return lineInColons(s, i+len(": At "))
	case s[i] == ':':
		return lineInColons(s, i+1)
	case s[i] == '(':
		return readNumbers(s, i+1, ")")
	}
	return lineInWords(s, i)
}

// lineInColons reads "12:3", "12-14", "L12", "line 12" and "[12,3]" behind a colon.
func lineInColons(s string, i int) (line, col, end int) {
	if i < len(s) && s[i] == '[' { // maven: [12,3]
		return readNumbers(s, i+1, "]")
	}
	if i+1 < len(s) && s[i] == 'L' && words.IsDigit(s[i+1]) {
		line, end = words.Number(s, i+1)
		return line, 0, end
	}
	if word, _, _ := strings.Cut(s[i:], " "); word == "" || LineWord()[word] { // .NET: file:line 12; a shell: file: 12:
		line, end = words.Number(s, min(len(s), i+len(word)+1))
		if word != "" || strings.HasPrefix(s[end:], ": ") {
			return line, 0, end
		}
		if col, after := words.Number(s, min(len(s), end+1)); col > 0 && strings.HasPrefix(s[after:], ": ") {
			return line, col, after // Prometheus: file: 12:3: message
		}
		return 0, 0, i
	}
	line, i = words.Number(s, i)
	if line > 0 && i+1 < len(s) && s[i] == '-' && words.IsDigit(s[i+1]) { // lines 4 to 6
		_, i = words.Number(s, i+1)
	}
	if line > 0 && i+1 < len(s) && (s[i] == ':' || s[i] == '.') && words.IsDigit(s[i+1]) {
		col, i = words.Number(s, i+1)
	}
	return line, col, i
}

// lineInWords reads behind the name of a file "[12]", "#L12", "line 12", "12:3" or "(12:3)".
func lineInWords(s string, i int) (line, col, end int) {
	if s[i] == '[' || s[i] == '#' {
		return lineInMarks(s, i)
	}
	rest := strings.TrimLeft(s[i:], `"'`)
	quoted := len(rest) < len(s)-i
	if quoted && len(rest) > 1 && rest[0] == ':' && words.IsDigit(rest[1]) {
		return lineAfter(s, len(s)-len(rest))
	}
	rest = strings.TrimPrefix(strings.TrimLeft(rest, ",:"), " ")
	at := len(s) - len(rest)
	if at == i || quoted && at == i+1 || rest == "" {
		return 0, 0, i
	}
	if (rest[0] == '(' || rest[0] == '[') && len(rest) > 1 && words.IsDigit(rest[1]) {
		line, col, end = readNumbers(s, at+1, map[byte]string{'(': ")", '[': "]"}[rest[0]])
		if col > 0 || strings.HasPrefix(s[end:], ":") {
			return line, col, end
		}
		return 0, 0, i
	}
	if after, ok := strings.CutPrefix(rest, "@ "); ok && words.IsDigit((after + " ")[0]) {
		line, end = words.Number(after, 0)
		return line, 0, len(s) - len(after) + end
	}
	if words.IsDigit(rest[0]) {
		line, end = words.Number(s, at)
		switch {
		case strings.HasPrefix(s[end:], "行"), strings.HasPrefix(s[end:], "줄"), strings.HasPrefix(s[end:], "번째 줄"):
			return line, 0, end
		case line > 0 && end+1 < len(s) && s[end] == ':' && words.IsDigit(s[end+1]):
			if col, end = words.Number(s, end+1); end == len(s) || s[end] != ':' { // else it is a time
				return line, col, end
			}
		}
		return 0, 0, i
	}
	if rest[0] == 'L' && len(rest) > 1 && words.IsDigit(rest[1]) {
		line, end = words.Number(rest, 1)
		return line, 0, at + end
	}
	for _, before := range []string{"on ", "at ", "@ ", "("} {
		rest = strings.TrimPrefix(rest, before)
	}
	word, more, _ := strings.Cut(rest, " ")
	if !LineWord()[words.Small(strings.TrimRight(word, ":"))] {
		return 0, 0, i
	}
	more = strings.TrimLeft(more, " #:")
	line, end = words.Number(more, 0)
	return line, 0, len(s) - len(more) + end
}

// lineInMarks reads "[12:3]", "[12]:", "#12" and "#L12".
func lineInMarks(s string, i int) (line, col, end int) {
	if s[i] == '#' {
		rest := strings.TrimPrefix(s[i+1:], "L")
		line, end = words.Number(s, len(s)-len(rest))
		return line, 0, end
	}
	return 0, 0, i
}

// LineWord has the words for a line, or a row.
var LineWord = words.Set(`line lines row ligne zeile línea linea linha riga regel rad linje rivi řádek riadok wiersz linia sor satır
	строка рядок ред línia 第 行 줄 lignes zeilen líneas linhas righe rader linjen regels wierszu wiersza wierszach linii
	řádku řádky строке строки рядку satırda rivillä rivi soron`)

// readNumbers reads "12,3" or "12" up to the closing byte.
func readNumbers(s string, i int, closing string) (line, col, end int) {
	line, i = words.Number(s, i)
	if i < len(s) && (s[i] == ',' || s[i] == ':') {
		i++
		if i < len(s) && s[i] == ' ' { // nim: (12, 3)
			i++
		}
		col, i = words.Number(s, i)
	}
	if line == 0 || !strings.HasPrefix(s[i:], closing) {
		return 0, 0, i
	}
	return line, col, i + 1
}

// FileIn finds the name of a file of the project that s speaks of without a line, or "".
func FileIn(s string) string {
	if _, file, ok := strings.Cut(s, "Merge conflict in "); ok { // git's, of any name
		return file
	}
	if program, said, ok := strings.Cut(s, ": "); ok && IsFile(program) {
		if file := FileIn(said); file != "" { // "release.sh: CHANGES.md has no …"
			return file
		}
	}
	for _, m := range fileName().FindAllStringSubmatch(s, 6) {
		file := Tidy(m[1])
		isHost := hostName().MatchString(file) && !longExtension().MatchString(file)
		if !IsForeign(file) && !strings.HasPrefix(file, "/tmp/") && !isHost {
			return file
		}
	}
	if m := ruleFile().FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// ruleFile is a file by which a tool of this name works, and has no extension.
var ruleFile = lazy.Regexp(`\b(?i:in|of|your|the) ((?:Pod|Gem|Pip|Docker|Container|Make|Rake|Just|Task` +
	`|Jenkins|Vagrant|Proc|Brew|Fast|Cart|Snake|Earth)file)\b(?:[^.]|$)`)

// fileName is one by its folder or its extension, and no log, host or version.
var fileName = lazy.Regexp(`(?:^|[\s"'(\x60\x{2018}=])((?:[\pL\pN_@.~-]*/)*[\pL\pN_@.-]*\w\.(?:` +
	`[a-km-zA-KM-Z][a-z0-9]{0,7}` +
	`|l[a-np-z0-9]?[a-z0-9]*))(?:$|[\s"':;,)\x60\x{2019}：，、])`)

// served is a host, behind which stands a port.
var served = lazy.Regexp(`^[^/\\]*\.(?:com|org|net|io|dev|example|internal|local|localhost)$`)

// hostName looks like the name of a file and is none.
var hostName = lazy.Regexp(`^[^/]*(?:\.(?:com|org|net|io|dev|example)|[A-Z]\w*\.js|\.[a-z]{6,}|\.[A-Z]\d+)$`)

// longExtension ends the names of files that look like names of hosts or modules.
var longExtension = lazy.Regexp(`\.(?:\w+proj|gradle|svelte|prisma|graphql` +
	`|feature|properties|\w+spec|config|tfvars|jsonnet)$`)

// IsForeign reports whether a file belongs to a library or a runtime, not to the project.
func IsForeign(file string) bool {
	if file == "testing.go" { // go test names its own file so
		return true
	}
	for _, p := range []string{
		"node_modules/", `node_modules\`, "node:",
		"site-packages/", "dist-packages/", "/usr/lib/", "/usr/local/lib/", "/usr/include/",
		"/go/src/runtime/", "/go/src/testing/", "/go/src/internal/",
		"/go/src/", "/pkg/mod/", "/.cargo/registry/", "/rustc/", "/library/std/src/", "/library/core/src/",
		"/gems/", "/rubygems/",
		"<frozen ", "<string>", "_testmain.go",
		"/vendor/", "java.base/", "/toolchains/", "/lib/python", "<autogenerated>",
		"<anonymous", "/usr/bin/",
		"asm_", "/libc", "libsanitizer/", "ext:", "/sysdeps/", "/csu/", "/dotnet/sdk/",
		`\dotnet\sdk\`, "/julia/stdlib/", `\julia\stdlib\`,
	} {
		if strings.Contains(file, p) {
			return true
		}
	}
	return strings.HasPrefix(file, "vendor/") || ofNode().MatchString(file)
}

// ofNode matches node's own files, as it names them in a stack.
var ofNode = lazy.Regexp(`^(?:internal/.*|_\w+|events|module|net|util|timers|fs|dns|tls|vm|child_process|` +
	`bootstrap_node)\.js$`)

// head matches the name of a file above a list: "In a.c:", "FILE: a.php", "## Errors in a.md", "a.tpl ... bad".
var head = lazy.Regexp(`^(?:==> |[#*]+ |--- (?:a/)?|)(?:(?i:(?:errors?|problems?|issues?)` +
	` (?:found )?in|in|file|datei|fichier|checking)\b:? +)?` +
	`(\S.*?)(?: (?i:[-–:] )?[(\[]?\d+ ?\pL*[)\]]?| *\.{2,} *\pL+| {2,}\pL+| <==)?:?$`)

// Heading is the file that a line names above a list of what is wrong in it; "" for none.
func Heading(s string) string {
	if dot := strings.IndexByte(s, '.'); dot < 0 || len(s) > longest {
		return ""
	}
	if inner := strings.TrimSuffix(strings.TrimSuffix(s, ":"), "]"); inner != s && strings.HasPrefix(inner, "[") {
		s = inner[1:] // "[a.md]:"
	}
	if m := head().FindStringSubmatch(s); len(m) > 0 && IsFile(m[1]) {
		return Tidy(m[1])
	}
	if IsFile(s) {
		return s
	}
	return ""
}

// IsFile reports whether a line is nothing but the name of a file.
func IsFile(s string) bool {
	if len(s) > 300 || len(s) < 3 || strings.HasSuffix(s, ".") || strings.HasSuffix(s, ":") ||
		strings.Contains(s, "  ") || strings.ContainsAny(s,
		"|<>=\"'`?(") {
		return false
	}
	dot := strings.LastIndexByte(s, '.')
	if dot <= 0 || dot == len(s)-1 || len(s)-dot > 8 {
		return false
	}
	for i := dot + 1; i < len(s); i++ {
		if !words.IsWord(s[i]) {
			return false
		}
	}
	return !words.IsDigit(s[dot+1]) && (strings.ContainsAny(s, `/\`) || !strings.Contains(s, " "))
}
