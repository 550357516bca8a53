package failure

import "strings"

// This file sees through what systems put before each line of a program's
// output: GitHub Actions' time stamps, steps and commands, GitLab's times,
// BuildKit's step numbers, the names that runners of several programs put in
// front.

// prefixOf returns the length of what stands before the line that a program
// printed. Most lines have no such prefix, which the first byte tells.
func prefixOf(l string) int {
	n := 0
	for range 4 { // a time stamp, then a name, then a command, …
		more := onePrefix(l[n:])
		if more == 0 {
			return n
		}
		n += more
	}
	return n
}

func onePrefix(l string) int {
	if len(l) < 4 {
		return 0
	}
	switch c := l[0]; {
	case c == '2' && len(l) > 20 && l[4] == '-':
		return stampPrefix(l)
	case c == '#':
		return max(commandPrefix(l), stepPrefix(l))
	case c == '[':
		return namePrefix(l)
	case c == ':':
		return commandPrefix(l)
	case 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z':
		return max(composePrefix(l), columnsPrefix(l))
	}
	return 0
}

// stampPrefix: "2026-01-01T00:00:00.0000000Z ", GitLab's the same with "00O "
// behind it.
func stampPrefix(l string) int {
	if l[10] != 'T' || l[13] != ':' || !isDigit(l[1]) {
		return 0
	}
	n := strings.IndexByte(l[:min(32, len(l))], 'Z')
	if n < 19 || n+1 >= len(l) || l[n+1] != ' ' {
		return 0
	}
	n += 2
	if r := l[n:]; len(r) >= 4 && isDigit(r[0]) && isDigit(r[1]) && (r[2] == 'O' || r[2] == 'E') && (r[3] == ' ' || r[3] == '+') {
		n += 4
	}
	return n
}

// commandPrefix: "##[error]", "::error file=a.go,line=3::".
func commandPrefix(l string) int {
	for _, p := range []string{"##[error]", "##[warning]", "##[group]", "##[command]", "##[debug]", "##[notice]", "::error::", "::warning::"} {
		if strings.HasPrefix(l, p) {
			return len(p)
		}
	}
	return 0
}

// stepPrefix: BuildKit's "#8 4.201 " before what a step prints; "#8 " alone
// stands before its own words.
func stepPrefix(l string) int {
	n, i := number(l, 1)
	if n == 0 || i >= len(l) || l[i] != ' ' {
		return 0
	}
	j := i + 1
	for j < len(l) && (isDigit(l[j]) || l[j] == '.') {
		j++
	}
	if j > i+2 && j < len(l) && l[j] == ' ' && strings.IndexByte(l[i+1:j], '.') > 0 {
		return j + 1
	}
	return i + 1
}

// namePrefix: "[web] ", "[test ] ", in small letters. The levels of logs are
// no names.
func namePrefix(l string) int {
	end := strings.IndexByte(l[:min(len(l), 32)], ']')
	if end < 2 || end+1 >= len(l) || l[end+1] != ' ' || !isLower(l[1]) {
		return 0
	}
	name := strings.TrimRight(l[1:end], " ")
	for i := range len(name) {
		if c := name[i]; !wordByte(c) && strings.IndexByte("-.:/", c) < 0 || isUpper(c) {
			return 0
		}
	}
	switch name {
	case "error", "err", "warn", "warning", "info", "debug", "trace", "fatal", "notice", "fail", "failed", "ok", "pass", "e", "w":
		return 0
	}
	return end + 2
}

// composePrefix: "web-1  | ".
func composePrefix(l string) int {
	n := 0
	for n < len(l) && n < 40 && (wordByte(l[n]) || l[n] == '-' || l[n] == '.') {
		n++
	}
	i := n
	for i < len(l) && l[i] == ' ' {
		i++
	}
	if i == n || i+1 >= len(l) || l[i] != '|' || l[i+1] != ' ' {
		return 0
	}
	return i + 2
}

// columnsPrefix: "job<tab>step<tab>2026-01-01T00:00:00.0000000Z ", as
// `gh run view --log` prints it.
func columnsPrefix(l string) int {
	first := strings.IndexByte(l[:min(len(l), 120)], '\t')
	if first < 0 {
		return 0
	}
	second := strings.IndexByte(l[first+1:min(len(l), first+160)], '\t')
	if second < 0 {
		return 0
	}
	at := first + second + 2
	if rest := strings.TrimPrefix(l[at:], "\ufeff"); len(rest) > 20 && rest[0] == '2' && rest[4] == '-' {
		if n := stampPrefix(rest); n > 0 {
			return len(l) - len(rest) + n
		}
	}
	return 0
}
