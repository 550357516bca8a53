package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pawl-dev/pawl/internal/ask/config/quantity"
)

// decoder fills a Config from trees, each over those before, collects the
// faults, and notes where each value came from: of a section the place of its
// key.
type decoder struct {
	home string
	errs Errors
	from map[string]position
	// top is where a key of a wrong section is looked for; nil is the schema.
	top *spec
	// listed are the sections whose keys an error has shown.
	listed map[*spec]bool
}

func (d *decoder) addError(at position, suggestion, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, errorAtPlace(at, suggestion, format, args...))
	}
}

// decodeValue decodes n into v, whose key is path. What n does not name stays, but
// in a section whose keys only make sense together: a file's takes the place of
// the one before, while a variable or flag has one key only.
func (d *decoder) decodeValue(sp *spec, n *node, v reflect.Value, path string) {
	if n == nil || n.kind == nullNode {
		return
	}
	replaces := sp.whole && n.at.src.layer <= project
	if replaces && !v.IsZero() {
		v.SetZero()
		d.forgetBelow(path + ".")
	}
	fresh := replaces
	if sp.optional {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
			fresh = true
		}
		v = v.Elem()
	}
	if fresh {
		d.fillDefaults(sp, v, path)
	}
	switch sp.shape {
	case anyShape: // read and ignored
	case sectionShape:
		d.decodeSection(sp, n, v, path)
	case tableShape:
		d.decodeTable(sp, n, v, path, nil)
	case listShape:
		d.decodeList(sp, n, v, path)
	case argvShape:
		d.from[path] = n.at
		d.decodeArgv(n, v, path)
	default:
		d.from[path] = n.at
		if err := d.decodeScalar(sp, n, v); err != nil {
			d.addError(n.at, Nearest(n.text, sp.enum), "%s %s", cmp.Or(path, "the file"), err)
		}
	}
}

// forgetBelow drops the places of keys that begin with prefix.
func (d *decoder) forgetBelow(prefix string) {
	maps.DeleteFunc(d.from, func(key string, _ position) bool { return strings.HasPrefix(key, prefix) })
}

// fillDefaults fills a new value of sp.
func (d *decoder) fillDefaults(sp *spec, v reflect.Value, path string) {
	for _, f := range sp.fields {
		below, field := joinPath(path, f.name), v.Field(f.index)
		if f.shape == sectionShape && !f.optional {
			d.fillDefaults(f, field, below)
		}
		d.decodeValue(f, f.defaultNode(), field, below)
	}
}

func (d *decoder) decodeSection(sp *spec, n *node, v reflect.Value, path string) {
	if n.kind != mapNode {
		near, hint := d.meantElsewhere(sp, n)
		d.addError(n.at, near, "%s must be %s, not %s%s", cmp.Or(path, "the file"), sp.expectedText(), n.kindName(),
			hint)
		return
	}
	if f, ok := v.Addr().Interface().(*Fragment); ok {
		f.at = n.at
	}
	for _, p := range n.pairs {
		ignored := path == "" && strings.HasPrefix(p.key, "x-")
		if sp.findField(p.key) == nil && sp.inlineTable() == nil && !ignored {
			d.failUnknown(sp, p)
		}
	}
	for _, f := range sp.fields {
		if f.inline {
			d.decodeTable(f, n, v.Field(f.index), path, sp)
			continue
		}
		if p, ok := n.pairOfKey(f.name); ok && p.value.kind != nullNode {
			if f.lists != nil {
				other := f.lists
				if p.value.kind == listNode {
					f, other = f.lists, f
				}
				v.Field(other.index).SetZero() // as another layer gave it
			}
			d.decodeBelow(f, p, v.Field(f.index), path)
		}
	}
}

// decodeBelow decodes what stands under a key of path.
func (d *decoder) decodeBelow(sp *spec, p pair, v reflect.Value, path string) {
	path = joinPath(path, p.key)
	d.from[path] = p.at
	d.decodeValue(sp, p.value, v, path)
}

// failUnknown reports a key that its section does not have.
func (d *decoder) failUnknown(sp *spec, p pair) {
	if len(d.errs) >= maxErrors {
		return
	}
	if near := Nearest(p.key, sp.sectionKeys()); near != "" {
		d.addError(p.at, near, "unknown key %q", p.key)
		return
	}
	top := d.top
	top = cmp.Or(top, schema())
	switch near := d.elsewhereKey(sp, top, p.key); {
	case near == p.key:
		d.addError(p.at, "", "key %q belongs at the top of the file, not here", p.key)
	case near != "" && sp == top:
		d.addError(p.at, near, "unknown key %q", p.key)
	default:
		d.addError(p.at, near, "unknown key %q%s", p.key, d.listSectionKeys(sp))
	}
}

// elsewhereKey is the key of another section that was probably meant; "" for none.
func (d *decoder) elsewhereKey(sp, top *spec, key string) string {
	for _, f := range top.fields {
		if f.shape == sectionShape && f.findField(snakeCase(key)) != nil {
			return joinPath(f.name, snakeCase(key))
		}
	}
	near := suggestKeyLike(key)
	far := sp != top && strings.Count(near, ".") > 1 // from one place deep in the file to another
	if d.top != nil || far {
		return ""
	}
	return near
}

// listSectionKeys lists the keys of a section in an error, once.
func (d *decoder) listSectionKeys(sp *spec) string {
	if d.listed[sp] {
		return ""
	}
	if d.listed == nil {
		d.listed = map[*spec]bool{}
	}
	d.listed[sp] = true
	return "; the keys here are " + strings.Join(sp.sectionKeys(), ", ")
}

// decodeTable decodes a map with keys of the user's own. section is the section
// that the table is inline in, whose keys it leaves alone, or nil.
func (d *decoder) decodeTable(sp *spec, n *node, v reflect.Value, path string, section *spec) {
	if n.kind != mapNode {
		d.addError(n.at, "", "%s must be a map, not %s", path, n.kindName())
		return
	}
	if v.IsNil() {
		v.Set(reflect.MakeMap(v.Type()))
	}
	for _, p := range n.pairs {
		if section != nil && section.findField(p.key) != nil {
			continue
		}
		if strings.TrimSpace(p.key) == "" {
			d.addError(p.at, "", "a name in %s cannot be empty", path)
			continue
		}
		below := p.value
		if below.kind == nullNode && sp.elem.shape == sectionShape {
			below = &node{kind: mapNode, at: below.at}
		}
		key, elem := reflect.ValueOf(p.key), reflect.New(v.Type().Elem()).Elem()
		if known := v.MapIndex(key); known.IsValid() {
			elem.Set(known)
		} else {
			d.fillDefaults(sp.elem, elem, joinPath(path, p.key))
		}
		d.decodeBelow(sp.elem, pair{p.key, p.at, below}, elem, path)
		v.SetMapIndex(key, elem)
	}
}

func (d *decoder) decodeList(sp *spec, n *node, v reflect.Value, path string) {
	d.from[path] = n.at
	if n.kind != listNode {
		hint := ""
		if n.kind != mapNode {
			hint = fmt.Sprintf("; write [%s]", Flow(n.text))
		}
		d.addError(n.at, "", "%s must be a list, not %s%s", path, n.kindName(), hint)
		return
	}
	if v.Len() > 0 {
		d.forgetBelow(path + "[")
	}
	out := reflect.MakeSlice(v.Type(), len(n.items), len(n.items))
	for i, item := range n.items {
		at := path + "[" + strconv.Itoa(i) + "]"
		if item.kind == nullNode {
			d.addError(item.at, "", "%s is empty", at)
			continue
		}
		d.from[at] = item.at
		d.fillDefaults(sp.elem, out.Index(i), at)
		d.decodeValue(sp.elem, item, out.Index(i), at)
	}
	v.Set(out)
}

func (d *decoder) decodeArgv(n *node, v reflect.Value, path string) {
	var words []string
	switch n.kind {
	case textNode:
		split, err := quantity.SplitWords(n.text)
		if err != nil {
			d.addError(n.at, "", "%s %v", path, err)
			return
		}
		words = split
	case listNode:
		for i, item := range n.items {
			if item.kind != textNode && item.kind != numberNode && item.kind != fractionNode && item.kind != boolNode {
				d.addError(item.at, "", "%s[%d] must be text, not %s", path, i, item.kindName())
				return
			}
			words = append(words, item.text)
		}
	default:
		d.addError(n.at, "", "%s must be a list of words or a command line, not %s", path, n.kindName())
		return
	}
	if len(words) == 0 || words[0] == "" {
		d.addError(n.at, "", "%s is empty: name a program", path)
		return
	}
	if strings.ContainsRune(words[0], filepath.Separator) || strings.HasPrefix(words[0], "~/") {
		words[0] = d.resolvePath(n.at.src, words[0])
	}
	v.Set(reflect.ValueOf(quantity.Argv(words)))
}

// resolvePath makes a path absolute: relative to the file that names it, ~ is the
// home folder.
func (d *decoder) resolvePath(src *source, path string) string {
	switch {
	case path == "":
		return ""
	case d.home != "" && strings.HasPrefix(path+"/", "~/"):
		return filepath.Join(d.home, path[1:])
	case filepath.IsAbs(path):
		return filepath.Clean(path)
	}
	return filepath.Join(src.dir, path)
}

// decodeScalar decodes one value. The error's text stands after the key's name.
func (d *decoder) decodeScalar(sp *spec, n *node, v reflect.Value) error {
	if n.kind == listNode || n.kind == mapNode {
		return fmt.Errorf("must be %s, not %s", sp.expectedText(), n.kindName())
	}
	switch sp.shape {
	case textShape:
		return setTextValue(sp, n, v)
	case wholeShape:
		return setWholeNumber(sp, n, v)
	case switchShape:
		return setSwitch(sp, n, v)
	case durationShape:
		return setDuration(sp, n, v)
	case bytesShape:
		b, err := quantity.ParseBytes(n.text)
		v.SetInt(int64(b))
		return err
	case percentShape:
		p, err := quantity.ParsePercent(n.text)
		v.SetInt(int64(p))
		return err
	case usdShape:
		m, err := quantity.ParseUSD(n.text)
		v.SetInt(int64(m))
		return err
	case pathShape:
		if n.kind != textNode {
			return fmt.Errorf("must be a path, not %s", n.kindName())
		}
		v.SetString(d.resolvePath(n.at.src, n.text))
	default:
		panic("config: no scalar: " + sp.name) // value sends the other shapes elsewhere
	}
	return nil
}

func setTextValue(sp *spec, n *node, v reflect.Value) error {
	if n.kind != textNode && !sp.loose {
		return fmt.Errorf("must be text, not %s; write %q", n.kindName(), n.text)
	}
	if len(sp.enum) > 0 && !slices.Contains(sp.enum, n.text) {
		return fmt.Errorf("must be %s, not %q", sp.expectedText(), n.text)
	}
	v.SetString(n.text)
	return nil
}

func setWholeNumber(sp *spec, n *node, v reflect.Value) error {
	i, err := strconv.ParseInt(strings.ReplaceAll(n.text, "_", ""), 0, 32)
	isNumber := n.kind == numberNode || n.loose
	if err != nil || !isNumber {
		if errors.Is(err, strconv.ErrRange) {
			return fmt.Errorf("is out of range: %s", n.text)
		}
		return fmt.Errorf("must be a whole number, not %s", n.kindName())
	}
	if least, ok := sp.minimumOf(); ok && int(i) < least {
		if i < 0 && least == 0 {
			return fmt.Errorf("cannot be negative (%d)", i)
		}
		return fmt.Errorf("must be %d or more, not %d", least, i)
	}
	v.SetInt(i)
	return nil
}

func setSwitch(_ *spec, n *node, v reflect.Value) error {
	isBool := n.kind == boolNode || n.loose
	if !isBool || !slices.Contains([]string{"true", "false"}, n.text) {
		hint := ""
		switch strings.ToLower(n.text) {
		case "yes", "on", "y", "1":
			hint = "; write true"
		case "no", "off", "n", "0":
			hint = "; write false"
		}
		return fmt.Errorf("must be true or false, not %s%s", n.kindName(), hint)
	}
	v.SetBool(n.text == "true")
	return nil
}

func setDuration(sp *spec, n *node, v reflect.Value) error {
	if n.kind == boolNode {
		return fmt.Errorf("must be a duration, not %s", n.kindName())
	}
	var value quantity.Duration
	var err error
	switch {
	case sp.flagMS && n.at.src.layer == flags, sp.bare == "milliseconds":
		value, err = quantity.FlagDuration(n.text)
	case sp.bare != "":
		value, err = quantity.BareDuration(n.text, quantity.BareUnits[sp.bare])
	case quantity.IsNumber(n.text) && n.text != "0":
		def, _ := quantity.ParseDuration(sp.def)
		return fmt.Errorf("needs a unit: write %s", quantity.WithUnits(n.text, def))
	default:
		value, err = quantity.ParseDuration(n.text)
	}
	if err != nil {
		return err
	}
	if sp.min != "" {
		if least, _ := quantity.ParseDuration(sp.min); value < least {
			return fmt.Errorf("must be %s or more, not %s", least, value)
		}
	}
	v.SetInt(int64(value))
	return nil
}

// kindName names the kind of a node, with a scalar's text.
func (n *node) kindName() string {
	switch {
	case n.plainColon():
		return "a map; a text with a colon and a blank in it needs quotes"
	case n.kind == listNode || n.kind == mapNode || n.kind == nullNode:
		return n.kind.String()
	case n.kind == boolNode || n.kind == numberNode || n.kind == fractionNode:
		return n.text
	case len(n.text) > 40:
		return fmt.Sprintf("the text %q", strings.ToValidUTF8(n.text[:40], "")+"…")
	}
	return fmt.Sprintf("%q", n.text)
}

// plainColon reports whether a map may be meant as a text: one pair in a line, without brackets.
func (n *node) plainColon() bool {
	if n.kind != mapNode || len(n.pairs) != 1 || n.at.src == nil || n.at.line < 1 || n.at.line > len(n.at.src.lines) {
		return false
	}
	line := []rune(n.at.src.lines[n.at.line-1])
	v := n.pairs[0].value
	return n.at.column >= 1 && n.at.column <= len(line) && line[n.at.column-1] != '{' && v != nil &&
		v.kind == textNode && v.at.line == n.at.line
}

var expected = map[shape]string{
	textShape: "text", wholeShape: "a whole number", switchShape: "true or false", durationShape: "a duration",
	bytesShape: "a size", usdShape: "an amount in US dollars", percentShape: "a part such as 80%", pathShape: "a path",
	argvShape: "a list", listShape: "a list",
	tableShape: "a map", sectionShape: "a map",
}

func (sp *spec) expectedText() string {
	switch n := len(sp.enum); {
	case sp.shape == textShape && n > 1:
		return strings.Join(sp.enum[:n-1], ", ") + " or " + sp.enum[n-1]
	case sp.short != "" && sp.shortShape == listShape:
		return "a map or a list"
	case sp.short != "":
		return "text or a map"
	}
	return expected[sp.shape]
}

// meantElsewhere guesses how a value that stands for a whole section was meant: as
// the value of a key of this name, or of one in the section.
func (d *decoder) meantElsewhere(sp *spec, n *node) (near, hint string) {
	isPlain := n.kind != listNode && n.kind != mapNode
	switch {
	case isPlain && sp.short != "" && sp.shortShape == listShape:
		return "", fmt.Sprintf("; write [%s]", Flow(n.text))
	case isPlain && sp.findField("command") != nil:
		return "", fmt.Sprintf("; write {command: %s}", Flow(n.text))
	case n.kind == textNode && d.top == nil && sp.name != "":
		for _, k := range Keys() {
			if strings.HasSuffix(k, "."+sp.name) {
				return k, ""
			}
		}
	}
	return "", ""
}

// suggestKeyLike is the key anywhere in the file that a key in a wrong place, or by a word of
// another program, was probably meant to be; "" for none.
func suggestKeyLike(key string) string {
	if schema().findField(snakeCase(key)) != nil {
		return snakeCase(key)
	}
	switch snakeCase(key) {
	case "gates", "checks", "tests", "verify", "commands":
		return "verification"
	case "model", "command", "env":
		return "agents.NAME." + snakeCase(key)
	}
	for _, k := range Keys() {
		if strings.HasSuffix(k, "."+snakeCase(key)) {
			return k
		}
	}
	for _, k := range Keys() {
		if len(key) > 3 && Distance(snakeCase(key), k[strings.LastIndexByte(k, '.')+1:]) == 1 {
			return k
		}
	}
	return ""
}
