package safety

import (
	_ "embed"
	"iter"
	"strings"
	"sync"
)

//go:embed lists.txt
var listTable string

var lists = sync.OnceValue(func() map[string][]string { return wordsOf(listTable) })

// list is a list of lists.txt.
func list(name string) []string { return lists()[name] }

// wordsOf are the words of a table's sections.
func wordsOf(table string) map[string][]string {
	out := map[string][]string{}
	for section, line := range sections(table) {
		out[section] = append(out[section], strings.Fields(line)...)
	}
	return out
}

// sections are the indented lines of a table with the text before the colon of
// the line above them. Empty lines and comments do not count.
func sections(table string) iter.Seq2[string, string] {
	return func(yield func(head, line string) bool) {
		head := ""
		for line := range strings.Lines(table) {
			text := strings.TrimSpace(line)
			if text == "" || text[0] == '#' {
				continue
			}
			if line[0] != '\t' {
				head = strings.TrimSuffix(text, ":")
			} else if !yield(head, text) {
				return
			}
		}
	}
}
