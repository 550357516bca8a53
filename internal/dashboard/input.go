package dashboard

import (
	"strings"
	"unicode"

	tea "charm.land/bubbletea/v2"
	"charm.land/lipgloss/v2"
	"github.com/charmbracelet/x/ansi"
)

// maxInput is how many characters an answer can have.
const maxInput = 4000

// input is one line that a person types. The library's own looks for clipboard
// programs whenever pawl starts, which every sandboxed child would pay for.
type input struct {
	text []rune
	at   int // before which the cursor is
	on   bool
}

func (i *input) reset()        { *i = input{} }
func (i *input) value() string { return strings.TrimSpace(string(i.text)) }

// insert puts text in at the cursor, as one line.
func (i *input) insert(text string) {
	var add []rune
	for _, r := range text {
		if unicode.IsSpace(r) {
			r = ' '
		}
		if !unicode.IsControl(r) && len(i.text)+len(add) < maxInput {
			add = append(add, r)
		}
	}
	i.text = append(i.text[:i.at:i.at], append(add, i.text[i.at:]...)...)
	i.at += len(add)
}

// key takes one key press.
func (i *input) key(k tea.KeyPressMsg) {
	switch k.String() {
	case "backspace", "ctrl+h":
		i.cut(i.at - 1)
	case "ctrl+w", "alt+backspace":
		from := i.at
		for from > 0 && i.text[from-1] == ' ' {
			from--
		}
		for from > 0 && i.text[from-1] != ' ' {
			from--
		}
		i.cut(from)
	case "ctrl+u":
		i.cut(0)
	case "delete", "ctrl+d":
		if i.at < len(i.text) {
			i.at++
			i.cut(i.at - 1)
		}
	case "left", "ctrl+b":
		i.at = max(0, i.at-1)
	case "right", "ctrl+f":
		i.at = min(len(i.text), i.at+1)
	case "home", "ctrl+a":
		i.at = 0
	case "end", "ctrl+e":
		i.at = len(i.text)
	default:
		i.insert(k.Text)
	}
}

// cut removes what is between from and the cursor.
func (i *input) cut(from int) {
	if from = max(0, from); from < i.at {
		i.text = append(i.text[:from:from], i.text[i.at:]...)
		i.at = from
	}
}

// view draws the line with its cursor; of a long one the part that ends with
// the cursor.
func (i *input) view(width int) string {
	room := max(1, width-3)
	before, under, after := string(i.text[:i.at]), " ", ""
	if i.at < len(i.text) {
		under, after = string(i.text[i.at]), string(i.text[i.at+1:])
	}
	if over := lipgloss.Width(before) - room; over > 0 {
		before = "…" + ansi.TruncateLeft(before, over+1, "")
	}
	return "> " + before + lipgloss.NewStyle().Reverse(true).Render(under) + after
}
