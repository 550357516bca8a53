package board

import (
	"slices"
	"strconv"
	"strings"
)

// parseMarkdown reads a task list. An item with items below it is an
// operation that holds them; other text below an item is its description,
// and lines such as "needs: a, b" directly below it are its fields. Headings
// and text that is in no item are passed over, code blocks too.
func parseMarkdown(text string, problems *ProblemsError) []Draft {
	m := &markdown{problems: problems}
	for i, l := range strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n") {
		m.readLine(i+1, l)
	}
	m.closeItems(-1)
	return m.drafts
}

type markdown struct {
	problems *ProblemsError
	drafts   []Draft
	open     []item // the item that is being read, with those that it is in
	fence    string // of the code block that is being read
}

// item is an open list item.
type item struct {
	draft  int
	indent int      // of its marker, in columns
	lead   int      // of the first line of its description
	fields bool     // fields may still follow
	text   []string // description, with its indent
	holds  bool     // items were below it
}

func (m *markdown) readLine(n int, l string) {
	indent, rest := cutIndent(l)
	if m.fence != "" {
		if strings.HasPrefix(rest, m.fence) && strings.Trim(rest, m.fence[:1]+" \t") == "" {
			m.fence = ""
		}
		m.addDescription(l, indent)
		return
	}
	if mark, ok := cutBullet(rest); ok {
		if done, title, ok := readCheckbox(mark); ok {
			m.openItem(n, indent, done, title)
			return
		}
	}
	if rest != "" && len(m.open) > 0 {
		m.closeItems(indent)
	}
	for _, f := range []string{"```", "~~~"} {
		if strings.HasPrefix(rest, f) {
			m.fence = f
		}
	}
	if len(m.open) > 0 && m.readField(n, rest) {
		return
	}
	m.addDescription(l, indent)
}

// addDescription takes a line for the description of the item that is open, if any.
func (m *markdown) addDescription(l string, indent int) {
	if len(m.open) == 0 {
		return
	}
	top := &m.open[len(m.open)-1]
	if strings.TrimSpace(l) == "" {
		if len(top.text) > 0 {
			top.text = append(top.text, "")
		}
		return
	}
	if len(top.text) == 0 {
		top.lead = indent
	}
	top.fields = false
	top.text = append(top.text, removeIndent(l, top.lead))
}

// openItem opens an item.
func (m *markdown) openItem(n, indent int, done bool, title string) {
	m.closeItems(indent)
	d := Draft{Line: n, Case: Case{Title: title, Type: Task}}
	if done {
		d.Case.Status, d.Case.Why = Done, "done in the list"
	}
	if len(m.open) > 0 {
		top := &m.open[len(m.open)-1]
		top.holds = true
		m.drafts[top.draft].Case.Type = Operation
		d.In = top.draft + 1
	}
	m.drafts = append(m.drafts, d)
	m.open = append(m.open, item{draft: len(m.drafts) - 1, indent: indent, fields: true})
}

// closeItems ends the items that a line with an indent is not in; with -1 all.
func (m *markdown) closeItems(indent int) {
	for len(m.open) > 0 && m.open[len(m.open)-1].indent >= indent {
		top := m.open[len(m.open)-1]
		m.drafts[top.draft].Case.Description = strings.TrimRight(strings.Join(top.text, "\n"), " \t\n")
		m.open = m.open[:len(m.open)-1]
	}
}

// readField reads a field of the item that is open; false when the line is none.
func (m *markdown) readField(n int, l string) bool {
	top := &m.open[len(m.open)-1]
	key, value, found := strings.Cut(l, ":")
	if !found || !top.fields || top.holds {
		return false
	}
	c := &m.drafts[top.draft].Case
	value = strings.TrimSpace(value)
	switch key {
	case "ref":
		c.Ref = value
	case "needs":
		c.Needs = append(c.Needs, splitAtCommas(value)...)
	case "tags":
		c.Tags = append(c.Tags, splitAtCommas(value)...)
	case "acceptance":
		c.Acceptance = append(c.Acceptance, value)
	case "verify", "sealed":
		check, err := ReadTaskCheck(value)
		if err != nil {
			m.problems.add(n, "%s: %v", key, err)
		}
		list := &c.Verify
		if key == "sealed" {
			list = &c.Sealed
		}
		*list = append(*list, check)
	case "parent":
		c.Parent = value
	case "priority":
		p, err := strconv.Atoi(value)
		if err != nil {
			m.problems.add(n, "the priority %q is not a whole number", cutForMessage(value))
		}
		c.Priority = p
	case "iteration_control":
		for _, setting := range splitAtCommas(value) {
			control, err := c.Control.With(setting)
			if err != nil {
				m.problems.add(n, "%v", err)
				return true
			}
			c.Control = control
		}
	default:
		return false
	}
	return true
}

func splitAtCommas(s string) []string { return strings.Split(s, ",") }

// cutIndent gives the columns of blanks before a line, and the rest of it.
func cutIndent(l string) (columns int, rest string) {
	for i, r := range l {
		switch r {
		case ' ':
			columns++
		case '\t':
			columns += 4 - columns%4
		default:
			return columns, strings.TrimRight(l[i:], " \t\r")
		}
	}
	return columns, ""
}

// removeIndent takes up to so many columns of blanks away.
func removeIndent(l string, columns int) string {
	for at := 0; at < columns && strings.IndexAny(l, " \t") == 0; l = l[1:] {
		if l[0] == '\t' {
			at += 4 - at%4
		} else {
			at++
		}
	}
	return strings.TrimRight(l, " \t\r")
}

// cutBullet gives the text of a list item.
func cutBullet(l string) (text string, ok bool) {
	mark, text, found := strings.Cut(l, " ")
	if !found || mark == "" {
		return "", false
	}
	if mark == "-" || mark == "*" || mark == "+" {
		return strings.TrimSpace(text), true
	}
	digits := strings.TrimRight(mark, ".)")
	ordered := len(digits) == len(mark)-1 && digits != "" && len(digits) < 10 &&
		strings.Trim(digits, "0123456789") == ""
	return strings.TrimSpace(text), ordered
}

// readCheckbox reads a list item with a box before its text. What stands at "[~]" or "[/]" is begun, and to be done like
// what stands at "[ ]"; what stands at "[-]" is dropped, and done.
func readCheckbox(item string) (done bool, text string, ok bool) {
	end := strings.IndexByte(item, ']')
	if end < 1 || item[0] != '[' {
		return false, "", false
	}
	mark, rest := item[1:end], item[end+1:]
	if !strings.HasPrefix(rest, " ") && !strings.HasPrefix(rest, "\t") {
		return false, "", false
	}
	done = slices.Contains([]string{"x", "X", "-", "✓", "✔", "v"}, mark)
	begun := slices.Contains([]string{"", " ", "~", "/", ">", "o", ".", "*", "!", "?", "…"}, mark)
	return done, strings.TrimSpace(rest), done || begun
}
