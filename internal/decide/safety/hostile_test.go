package safety

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The work for a command is paid from a budget in proportion to its length,
// whatever it is made of; a danger that is nested too deeply does not get by.
func TestHostileCommands(t *testing.T) {
	t.Parallel()
	const mega = 1 << 20
	for name, text := range map[string]string{
		"long word":     strings.Repeat("a", mega),
		"words":         strings.Repeat("a ", mega/2),
		"braces":        strings.Repeat("{a,", mega/3),
		"more braces":   strings.Repeat("{a,b}", mega/5),
		"open":          strings.Repeat("$(", mega/2),
		"parameters":    strings.Repeat("${a:-", mega/5),
		"backticks":     strings.Repeat("`", mega),
		"arithmetic":    strings.Repeat("$((", mega/3),
		"documents":     strings.Repeat("cat <<A\n", mega/8),
		"one line":      strings.Repeat("<<A ", mega/4),
		"pipes":         strings.Repeat("a|", mega/2),
		"redirects":     strings.Repeat("a ", 1000) + strings.Repeat(">x ", mega/4),
		"quotes":        strings.Repeat("'\"", mega/2),
		"doubling":      strings.Repeat("A=$A$A;", mega/7) + "$A",
		"grown":         "A=aaaaaaaaaaaaaaaa;" + strings.Repeat("A=$A$A;", 60) + "$A",
		"finds":         "find . " + strings.Repeat("-exec find . ", mega/13),
		"evals":         strings.Repeat("eval ", mega/5) + "ls",
		"shells":        strings.Repeat("sh -c 'a' ;", mega/11),
		"sudo":          strings.Repeat("env ", mega/4),
		"xargs":         strings.Repeat("xargs ", mega/6),
		"cases":         strings.Repeat("case a in ", mega/10),
		"functions":     strings.Repeat("f() { ", mega/6),
		"subshells":     strings.Repeat("(", mega),
		"sql":           "psql -c '" + strings.Repeat(`\! a `, mega/5) + "'",
		"code":          "python3 -c \"os.system(" + strings.Repeat("'a',", mega/4) + ")\"",
		"aliases":       strings.Repeat("alias a=a; a;", mega/13),
		"control bytes": strings.Repeat("\x00\x01\x02\x03\xff ", mega/6),
		"processes":     strings.Repeat("<(", mega/2),
		"tests":         strings.Repeat("[[ ", mega/3),
		"git":           strings.Repeat("git -c alias.a=!git ", mega/20),
		"over the cap":  strings.Repeat("a;", mega) + "rm -rf /",
	} {
		f, found := home.Command(text)
		if found && (len(f.Command) > 200 || !utf8.ValidString(f.Command)) {
			t.Errorf("%s: %d bytes shown", name, len(f.Command))
		}
	}
	deep := "rm -rf /"
	for range 60 {
		deep = "$(" + deep + ")"
	}
	if f, ok := home.Command(deep); !ok {
		t.Error("what is nested sixty times gets by")
	} else if f.Pattern != "tangled" && f.Pattern != "remove-outside" {
		t.Errorf("found %s", f.Pattern)
	}
}

// A program that runs a command line, in itself again and again, is not read for ever.
func TestTangledCommands(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"eval", "env", "xargs", "watch"} {
		for times, want := range map[int]bool{3: false, 60: true} {
			if f, found := home.Command(strings.Repeat(program+" ", times) + "ls"); found != want || found && f.Pattern != "tangled" {
				t.Errorf("%s %d times: %v %s", program, times, found, f.Pattern)
			}
		}
	}
}

func FuzzCommand(f *testing.F) {
	for _, name := range []string{"ordinary.txt", "destructive.txt"} {
		for _, c := range lines(f, name) {
			f.Add(c)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, found := home.Command(text)
		if found && (got.Pattern == "" || got.Why == "" || len(got.Command) > 200 || !utf8.ValidString(got.Command) || strings.ContainsAny(got.Command, "\n\x00")) {
			t.Errorf("%+v", got)
		}
		// What is forbidden stays so behind something harmless.
		if found && got.Pattern != "tangled" {
			if _, still := home.Command("true\n" + text); !still {
				t.Errorf("not found behind another command: %q", text)
			}
		}
	})
}

func BenchmarkCommand(b *testing.B) {
	all := lines(b, "ordinary.txt")
	size := 0
	for _, c := range all {
		size += len(c)
	}
	b.SetBytes(int64(size))
	for b.Loop() {
		for _, c := range all {
			home.Command(c)
		}
	}
}
