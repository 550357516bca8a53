package places

import (
	"strconv"
	"testing"
)

func TestPlacesOfNotations(t *testing.T) {
	t.Parallel()
	for said, want := range map[string]string{
		"src/a.py [12:3]":                    "src/a.py:12",
		"src/a.py (line 12)":                 "src/a.py:12",
		"src/a.py @ 12":                      "src/a.py:12",
		"src/a.py#12":                        "src/a.py:12",
		"src/a.py:L12":                       "src/a.py:12",
		"src/a.py, lines 12 to 14: bad":      "src/a.py:12",
		"'my docs/week 1.md':12: bad":        "my docs/week 1.md:12",
		`C:\a b\c.cs(12,3): error`:           `C:\a b\c.cs:12`,
		"Makefile, line 12: bad":             "Makefile:12",
		`{"line":12,"file":"a.c","msg":"x"}`: "a.c:12",
		"db.example.com:8080 refused":        ":0",
		"app.js (12 kB)":                     ":0",
		"list.txt, 12 lines":                 ":0",
		"took 1.5s:12":                       ":0",
	} {
		if p, _ := In(said); p.File+":"+strconv.Itoa(p.Line) != want {
			t.Errorf("%q: %s:%d, want %s", said, p.File, p.Line, want)
		}
	}
}

func TestValuesOfForms(t *testing.T) {
	t.Parallel()
	for said, values := range map[string][2]string{
		`{"expected":4,"actual":3}`:                                    {"4", "3"},
		"left = 3, right = 4":                                          {"4", "3"},
		"coverage 78% is below the threshold of 80%":                   {"80%", "78%"},
		"Soll: 4, Ist: 3":                                              {"4", "3"},
		"ожидалось 4, получено 3":                                      {"4", "3"},
		"cannot use x (variable of type int) as string value in argum": {"string", "int"},
		"Type 'a' is not assignable to type 'b'.":                      {"'b'", "'a'"},
		"expected a value but was not told":                            {"", ""},
		"expected one of a, b":                                         {"", ""},
		"if (a != b) {":                                                {"", ""},
		"it was 10:30 and is 11:00":                                    {"", ""},
	} {
		if want, got := Values(said); want != values[0] || got != values[1] {
			t.Errorf("%q: want %q, got %q", said, want, got)
		}
	}
}
