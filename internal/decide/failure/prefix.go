package failure

import (
	"slices"
	"strings"

	"github.com/pawl-dev/pawl/internal/decide/failure/words"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
)

// A CI system's time stamp, "2026-01-01T00:00:00.0000000Z "; GitLab puts "00O "
// behind it.
const stampForm = `2\d..-.{5}T..:[0-9:.]+Z (?:\d\d[OE][ +])?`

// clockForms begin each line of logs with a time: Jenkins, TeamCity, and many more. A single line with one is a line
// of a program's log.
const clockForms = `\[?(?:\d{4}-\d\d-\d\d[T ])?\d\d:\d\d:\d\d(?:[.,]\d+)?(?: ?(?:Z|UTC|[+-]\d\d:?\d\d))?\]?(?:[WEFi]? ?:\t? *(?:\[Step \d+/\d+\] ?)?|[ \t]{1,2}|$)`

var clock = lazy.Regexp(`^` + clockForms)

// clocked tells whether nearly all lines of s begin with a time.
func clocked(s string) bool {
	with, all := 0, 0
	for l := range strings.SplitSeq(words.Cut(s, 64<<10), "\n") {
		if strings.TrimSpace(l) == "" {
			continue
		}
		if all++; clock().MatchString(l[:min(len(l), 80)]) {
			with++
		}
	}
	return with > 2 && with*10 >= all*8
}

// prefix is what systems put before each line of a program's output.
var prefix = lazy.Regexp(`^(?:` + strings.Join([]string{
	stampForm,
	`[A-Za-z][^\t]*\t[^\t]*\t\x{feff}?` + stampForm,      // `gh run view --log`: job, step, time
	`##\[(?:error|warning|group|command|debug|notice)\]`, // Azure Pipelines
	`::(?:error|warning)::`,                              // GitHub Actions
	`#[1-9]\d* (?:\d[\d.]*\.[\d.]* )?`,                   // BuildKit's step, with the time before what it prints
	` {0,8}[A-Za-z][\w.-]* +\| `,                         // docker compose: "web-1  | "
	`│ `,                                                 // Terraform's box
	`\[[a-z][a-z0-9_.:/-]* *\] `,                         // runners of several programs: "[web] "
	`\[[a-z][a-z0-9_-]*:\d+\] `,                          // Drone and Woodpecker: "[test:12] "
}, "|") + `)`)

// level is the level of a log, which looks like the name of a program.
var level = lazy.Regexp(`^\[(?:error|err|warn|warning|info|debug|trace|fatal|notice|fail|failed|ok|pass|e|w) *\]`)

// prefixOf returns the length of what stands before the line that a program
// printed: a time stamp, then a name, then a command, and so on.
func prefixOf(l string) int {
	n := 0
	for range 4 {
		rest := l[n:min(len(l), n+400)]
		at := prefix().FindStringIndex(rest)
		if at == nil || level().MatchString(rest) {
			break
		}
		n += at[1]
	}
	return n
}

// owners are what a runner of several packages puts before the lines of each:
// "web:test: " of Turborepo, "packages/web test: " of pnpm.
type owners []string

// ownerForm begins a line by which such a runner shows itself.
var ownerForm = lazy.Regexp(`(?m)^(?:(@?[\w./@-]+[:#][A-Za-z][\w:-]*): (?:cache (?:miss|hit|bypass)|> |$)|([\w./@-]+ [A-Za-z][\w:-]*)\$ \S)`)

const maxOwners = 50

func ownersIn(s string) owners {
	if !strings.Contains(s, ": cache ") && !strings.Contains(s, ": > ") && !strings.Contains(s, ": \n") && !strings.Contains(s, "$ ") {
		return nil
	}
	var all owners
	for _, m := range ownerForm().FindAllStringSubmatch(s, 20*maxOwners) {
		one := m[1] + m[2] + ": "
		if len(all) < maxOwners && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// before is the length of the owner in front of a line; 0 when there is none.
func (all owners) before(l string) int {
	for _, one := range all {
		if strings.HasPrefix(l, one) {
			return len(one)
		}
	}
	return 0
}
