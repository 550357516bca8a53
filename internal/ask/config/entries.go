package config

import (
	"cmp"
	"fmt"
	"net/url"
	"reflect"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
	"github.com/pawl-dev/pawl/internal/decide/lazy"
	"github.com/pawl-dev/pawl/internal/decide/loop"
)

// Entry is one effective value and where it came from.
type Entry struct {
	Path  string `json:"path"`
	Value string `json:"value"`
	// Source is "built-in", "user-wide FILE:LINE", "FILE:LINE",
	// "environment NAME" or "flag --NAME".
	Source string `json:"source"`
}

// hidden replaces a secret.
const hidden = "***"

var secretName = lazy.Regexp(`(?i)KEY|TOKEN|SECRET|PASSWORD`)

// Entries are all effective values in the order of the schema, entries with
// names of the user's own sorted by name. What is not set and has no default
// is left out below such names and in lists. Values of variables whose name
// says that they are secret, and the paths and headers of webhooks, are hidden.
func (c *Config) Entries() []Entry {
	l := lister{from: c.from}
	l.listValue(schema(), reflect.ValueOf(c).Elem(), "", false)
	return l.entries
}

type lister struct {
	from    map[string]position
	entries []Entry
}

func (l *lister) addEntry(path, value string) {
	source := "built-in"
	if at, ok := l.from[path]; ok {
		source = at.String()
	}
	l.entries = append(l.entries, Entry{path, value, source})
}

// listValue lists v. Below free, what is not set is left out.
func (l *lister) listValue(sp *spec, v reflect.Value, path string, free bool) {
	_, set := l.from[path]
	if sp.optional {
		if v.IsNil() {
			if !free && sp.isSingleValue() {
				l.addEntry(path, "null")
			}
			return
		}
		v, free = v.Elem(), free || sp.shape == sectionShape
	}
	switch {
	case sp.shape == sectionShape:
		for _, f := range sp.fields {
			below := path
			if !f.inline {
				below = joinPath(path, f.name)
			}
			if f.lists != nil && v.Field(f.lists.index).Len() > 0 {
				f = f.lists
			}
			l.listValue(f, v.Field(f.index), below, free)
		}
	case sp.shape == tableShape:
		l.listTable(sp, v, path, free)
	case sp.shape == listShape && sp.elem.shape == sectionShape && v.Len() > 0:
		for i := range v.Len() {
			l.listValue(sp.elem, v.Index(i), fmt.Sprintf("%s[%d]", path, i), true)
		}
	case free && !set:
	default:
		l.addEntry(path, renderValue(sp, v))
	}
}

func (l *lister) listTable(sp *spec, v reflect.Value, path string, free bool) {
	if v.Len() == 0 {
		if !free && !sp.inline {
			l.addEntry(path, "{}")
		}
		return
	}
	names := make(map[string]reflect.Value, v.Len())
	for it := v.MapRange(); it.Next(); {
		names[it.Key().String()] = it.Value()
	}
	for _, name := range sortedKeys(names) {
		below := joinPath(path, name)
		secret := sp.name == "headers" || secretName().MatchString(name)
		if secret && sp.elem.isSingleValue() {
			l.addEntry(below, hidden)
			continue
		}
		l.listValue(sp.elem, names[name], below, true)
	}
}

func renderValue(sp *spec, v reflect.Value) string {
	switch sp.shape {
	case listShape, argvShape:
		items := make([]string, v.Len())
		for i := range items {
			items[i] = Flow(v.Index(i).String())
		}
		return "[" + strings.Join(items, ", ") + "]"
	case durationShape:
		return quantity.Duration(v.Int()).String()
	case bytesShape:
		return quantity.Bytes(v.Int()).String()
	case usdShape:
		return quantity.USDText(loop.MicroUSD(v.Int()))
	case wholeShape, percentShape:
		return strconv.FormatInt(v.Int(), 10)
	case switchShape:
		return strconv.FormatBool(v.Bool())
	case textShape, pathShape, tableShape, sectionShape:
	}
	if sp.name == "webhook" {
		return HideAddress(v.String())
	}
	return cmp.Or(v.String(), `""`)
}

// HideAddress keeps the host of a webhook; its path is often the secret. The
// name of a variable is none.
func HideAddress(address string) string {
	if name, rest, ok := strings.Cut(strings.TrimPrefix(address, "${"), "}"); ok && strings.HasPrefix(address, "${") {
		if rest != "" {
			rest = hidden
		}
		return "${" + name + "}" + rest
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		return hidden
	}
	return u.Scheme + "://" + u.Host + "/" + hidden
}

// plainFlow is text that needs no quotes in a YAML list or as a YAML value.
var plainFlow = lazy.Regexp(`^[A-Za-z./_][A-Za-z0-9./_:=@+-]*$`)

// notText are words that YAML, or another reader of it, takes for something
// else than text.
var notText = lazy.Regexp(`(?i)^(true|false|yes|no|on|off|y|n|null|~|\.inf|\.nan|\.[0-9].*)$`)

// Flow writes a text so that YAML reads it back as text.
func Flow(s string) string {
	if plainFlow().MatchString(s) && !notText().MatchString(s) && !strings.HasSuffix(s, ":") {
		return s
	}
	return strconv.Quote(s) // which YAML reads
}
