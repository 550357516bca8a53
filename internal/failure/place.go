package failure

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/lazy"
)

// place is where in a file something is.
type place struct {
	file      string
	line, col int
	rest      string // of the text, after the place
	from      int    // where the place begins in the text
}

// placeIn finds the first place in s, in one of the notations that tools use:
//
//	file:12:3  file:12  file(12,3)  file:[12,3]  file", line 12  file line 12  file#L12
//
// A file's name has an extension of letters, so that times and addresses are
// no places.
func placeIn(s string) (place, bool) {
	for at := 0; at < len(s); {
		dot := strings.IndexByte(s[at:], '.')
		if dot < 0 {
			return placeByName(s)
		}
		dot += at
		at = dot + 1
		ext := dot + 1
		for ext < len(s) && wordByte(s[ext]) && ext-dot < 14 {
			ext++
		}
		if ext == dot+1 || isDigit(s[dot+1]) || ext < len(s) && s[ext] == '.' {
			continue
		}
		line, col, end := lineAfter(s, ext)
		if line == 0 {
			continue
		}
		from := fileStart(s, dot)
		if strings.Contains(s[from:ext], "://") && !strings.HasPrefix(s[from:], "file://") {
			continue
		}
		return place{file: tidyFile(s[from:ext]), line: line, col: col, rest: s[end:], from: from}, true
	}
	return place{}, false
}

var (
	// plainFile is a place in a file whose name has no extension.
	plainFile = lazy.Regexp(`(?:^|[ "'(\[])(?:--> ([\w./-]+)|((?:[\w.-]*/)*(?:\w*file|BUILD|WORKSPACE|CODEOWNERS))):(\d{1,6})(?::\d{1,6})?`)
	// keyedFile is one as programs write it for programs: file=a,line=3 or "file": "a", "line": 3.
	keyedFile = lazy.Regexp(`\b(?:(?:source)?(?:file|path)(?:_?name)?|uri|name)"?[=:] ?"?([\w@./\\-]+)"?(?:[,;> ]+(?:.{0,80}?[,;< ])?)` +
		`"?(?:start_?)?[lL]ine(?:_?[nN]umber|[nN]o)?"?[=:] ?"?(\d{1,6})`)
)

// placeByName finds a place that no extension shows.
func placeByName(s string) (place, bool) {
	if m := firstOf(plainFile, s, "file:", "-->", "BUILD:", "WORKSPACE:", "CODEOWNERS:"); m != nil {
		from, to := m[2], m[3]
		if from < 0 {
			from, to = m[4], m[5]
		}
		p := place{file: tidyFile(s[from:to]), rest: s[m[1]:], from: from}
		p.line, _ = number(s, m[6])
		return p, p.line > 0
	}
	if m := firstOf(keyedFile, s, "ine"); len(m) > 0 {
		if s[m[0]] == 'n' && !strings.Contains(s[m[2]:m[3]], ".") { // a name of something else
			return place{}, false
		}
		p := place{file: tidyFile(s[m[2]:m[3]]), rest: s[m[1]:], from: m[0]}
		p.line, _ = number(s, m[4])
		return p, p.line > 0
	}
	return place{}, false
}

// firstOf is where an expression first holds in s; one of the words is there when it can.
func firstOf(e func() *regexp.Regexp, s string, words ...string) []int {
	if !has(s, words...) || !strings.ContainsAny(s, "0123456789") {
		return nil
	}
	return e().FindStringSubmatchIndex(s)
}

// fileStart goes back from the dot before the extension to where the name begins.
func fileStart(s string, dot int) int {
	return strings.LastIndexAny(s[:dot], " \t\"'`(<>[]{}|=,;*") + 1
}

func tidyFile(f string) string {
	f = strings.TrimPrefix(f, "file://")
	f = strings.TrimPrefix(f, "webpack:///")
	if i := strings.LastIndexByte(f, ':'); i > 1 && !strings.HasPrefix(f, "ext:") && !strings.HasPrefix(f, "node:") { // a program's name before it
		f = f[i+1:]
	}
	if len(f) > 2 && f[0] == '.' && f[1] == '/' {
		f = f[2:]
	}
	return cut(f, 300)
}

// lineAfter reads a line and a column from s[i:]; line 0 means that there is none.
func lineAfter(s string, i int) (line, col, end int) {
	const eslintCompact = ": line "
	switch {
	case i >= len(s):
		return 0, 0, i
	case strings.HasPrefix(s[i:], eslintCompact):
		line, end = number(s, i+len(eslintCompact))
		if rest, ok := strings.CutPrefix(s[end:], ", col "); ok {
			n, width := number(rest, 0)
			return line, n, end + len(", col ") + width
		}
		return line, 0, end
	case s[i] == ':':
		i++
		if i < len(s) && s[i] == '[' { // maven: [12,3]
			return numbers(s, i+1, "]")
		}
		if word, _, _ := strings.Cut(s[i:], " "); word == "line" || word == "" { // .NET: file:line 12; a shell: file: 12:
			line, end = number(s, min(len(s), i+len(word)+1))
			if word == "line" || strings.HasPrefix(s[end:], ": ") {
				return line, 0, end
			}
			return 0, 0, i
		}
		line, i = number(s, i)
		if line > 0 && i+1 < len(s) && s[i] == '-' && isDigit(s[i+1]) { // lines 4 to 6
			_, i = number(s, i+1)
		}
		if line > 0 && i+1 < len(s) && (s[i] == ':' || s[i] == '.') && isDigit(s[i+1]) {
			col, i = number(s, i+1)
		}
		if col > 0 && i+1 < len(s) && s[i] == '-' && isDigit(s[i+1]) { // columns 17 to 29
			_, i = number(s, i+1)
		}
		return line, col, i
	case s[i] == '(':
		return numbers(s, i+1, ")")
	case s[i] == ',' && i+1 < len(s) && isDigit(s[i+1]): // a row of a report in CSV
		if line, end = number(s, i+1); end < len(s) && s[end] == ',' {
			return line, 0, end
		}
		return 0, 0, i
	case strings.HasPrefix(s[i:], "#L"):
		line, end = number(s, i+len("#L"))
		return line, 0, end
	}
	return lineInWords(s, i)
}

// lineInWords reads behind the name of a file "line 12", "12:3" or "(12:3)".
func lineInWords(s string, i int) (line, col, end int) {
	rest := strings.TrimLeft(s[i:], `"'`)
	quoted := len(rest) < len(s)-i
	rest = strings.TrimPrefix(strings.TrimLeft(rest, ",:"), " ")
	at := len(s) - len(rest)
	if at == i || quoted && at == i+1 || rest == "" {
		return 0, 0, i
	}
	if rest[0] == '(' {
		if line, col, end = numbers(s, at+1, ")"); col > 0 {
			return line, col, end
		}
		return 0, 0, i
	}
	if isDigit(rest[0]) {
		line, end = number(s, at)
		switch {
		case strings.HasPrefix(s[end:], "行"), strings.HasPrefix(s[end:], "줄"), strings.HasPrefix(s[end:], "번째 줄"):
			return line, 0, end
		case line > 0 && end+1 < len(s) && s[end] == ':' && isDigit(s[end+1]):
			if col, end = number(s, end+1); end == len(s) || s[end] != ':' { // else it is a time
				return line, col, end
			}
		}
		return 0, 0, i
	}
	if rest[0] == 'L' && len(rest) > 1 && isDigit(rest[1]) {
		line, end = number(rest, 1)
		return line, 0, at + end
	}
	rest = strings.TrimPrefix(rest, "on ")
	word, more, _ := strings.Cut(rest, " ")
	if !lineWord()[smallLetters(strings.TrimRight(word, ":"))] {
		return 0, 0, i
	}
	more = strings.TrimLeft(more, " #:")
	line, end = number(more, 0)
	return line, 0, len(s) - len(more) + end
}

// lineWord holds what people call a line, or a row.
var lineWord = wordSet(`line row ligne zeile línea linea linha riga regel rad linje rivi řádek riadok wiersz linia sor satır
	строка рядок ред línia 第 行 줄 lignes zeilen líneas linhas righe rader linjen regels wierszu wiersza wierszach linii
	řádku řádky строке строки рядку satırda rivillä rivi soron`)

// numbers reads "12,3" or "12" up to the closing byte.
func numbers(s string, i int, closing string) (line, col, end int) {
	line, i = number(s, i)
	if i < len(s) && (s[i] == ',' || s[i] == ':') {
		i++
		if i < len(s) && s[i] == ' ' { // nim: (12, 3)
			i++
		}
		col, i = number(s, i)
	}
	if line == 0 || !strings.HasPrefix(s[i:], closing) {
		return 0, 0, i
	}
	return line, col, i + 1
}

// number reads a decimal number of at most 7 digits; 0 means none.
func number(s string, i int) (n, end int) {
	from := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == from || i-from > 7 {
		return 0, i
	}
	n, _ = strconv.Atoi(s[from:i])
	return n, i
}

// fileIn finds the name of a file of the project that s speaks of without a line, or "".
func fileIn(s string) string {
	if _, file, ok := strings.Cut(s, "Merge conflict in "); ok { // git's, of any name
		return file
	}
	if program, said, ok := strings.Cut(s, ": "); ok && looksLikeFile(program) {
		if file := fileIn(said); file != "" { // "release.sh: CHANGES.md has no …"
			return file
		}
	}
	for _, m := range fileName().FindAllStringSubmatch(s, 6) {
		file := tidyFile(m[1])
		if !foreign(file) && !strings.HasPrefix(file, "/tmp/") && !hostName().MatchString(file) {
			return file
		}
	}
	return ""
}

// fileName is one by its folder or its extension, and no log, host or version.
var fileName = lazy.Regexp(`(?:^|[\s"'(\x60\x{2018}=])((?:[\w@.~-]*/)*[\w@.-]*\w\.(?:[a-km-zA-KM-Z][a-z0-9]{0,7}|l[a-np-z0-9]?[a-z0-9]*))(?:$|[\s"':;,)\x60\x{2019}：，、])`)

// hostName looks like the name of a file and is none.
var hostName = lazy.Regexp(`^[^/]*(?:\.(?:com|org|net|io|dev|example)|[A-Z]\w*\.js|\.[a-z]{6,})$`)

// foreign tells whether a file belongs to a library or a runtime, not to the
// project.
func foreign(file string) bool {
	for _, p := range []string{
		"node_modules/", `node_modules\`, "node:",
		"site-packages/", "dist-packages/", "/usr/lib/", "/usr/local/lib/", "/usr/include/",
		"/go/src/runtime/", "/go/src/testing/", "/go/src/internal/",
		"/go/src/", "/pkg/mod/", "/.cargo/registry/", "/rustc/", "/gems/", "/rubygems/",
		"<frozen ", "<string>", "_testmain.go",
		"internal/", "/vendor/", "java.base/", "/toolchains/", "/lib/python", "<autogenerated>", "<anonymous", "/usr/bin/",
		"asm_", "/libc", "module.js", "events.js", "libsanitizer/", "ext:", "/sysdeps/", "/csu/",
	} {
		if strings.Contains(file, p) {
			return !strings.HasPrefix(file, "internal/") || p != "internal/"
		}
	}
	return false
}

// frame finds the place of the project in a stack trace, and its line: the last call
// in a Python trace, the first elsewhere. A place in a library is better than none.
func frame(t text) (best place, said string) {
	distant := false // best lies in a library
	ruby, after, url := strings.Contains(t.s, ":in "), strings.Contains(t.s, "from "), strings.Contains(t.s, "file:///")
	for i := range t.len() {
		l := t.line(i)
		if l == "" {
			continue
		}
		below, linked := after && strings.Contains(l, "from "), url && strings.Contains(l, "file:///")
		inRuby := ruby && strings.Contains(l, ":in ")
		tells := below || linked
		if wordByte(l[0]) && !tells && !inRuby {
			continue
		}
		python := strings.Contains(l, `File "`)
		tells = tells || python || l[0] == '\t' || l[0] == '/' || strings.HasPrefix(strings.TrimLeft(l, " |#"), "at ") ||
			ruby && has(l, ":in `", ":in '")
		if !tells {
			continue
		}
		p, ok := placeIn(l)
		if !ok {
			continue
		}
		if said != "" && !distant && !python {
			continue // the first of the project stays
		}
		if away := foreign(p.file); said == "" || !away {
			best, said, distant = p, l, away
		}
	}
	return best, said
}
