package workflow

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// function is one that expressions have beyond the library's own.
type function struct {
	name string // as the library calls it
	word string // as a person writes it; "" for operators
	call func(args ...any) (any, error)
	as   any // its type, as new(func(…) …)
}

func compared(hold func(order int, ok bool) bool) func(args ...any) (any, error) {
	return func(args ...any) (any, error) { return hold(compareLoose(args[0], args[1])), nil }
}

var functions = []function{
	{"_equal", "", compared(func(o int, ok bool) bool { return ok && o == 0 }), new(func(any, any) bool)},
	{"_unequal", "", compared(func(o int, ok bool) bool { return !ok || o != 0 }), new(func(any, any) bool)},
	{"_less", "", compared(func(o int, ok bool) bool { return ok && o < 0 }), new(func(any, any) bool)},
	{"_atMost", "", compared(func(o int, ok bool) bool { return ok && o <= 0 }), new(func(any, any) bool)},
	{"_greater", "", compared(func(o int, ok bool) bool { return ok && o > 0 }), new(func(any, any) bool)},
	{"_atLeast", "", compared(func(o int, ok bool) bool { return ok && o >= 0 }), new(func(any, any) bool)},
	{"_and", "", func(a ...any) (any, error) {
		if truthy(a[0]) {
			return a[1], nil
		}
		return a[0], nil
	}, new(func(any, any) any)},
	{"_or", "", func(a ...any) (any, error) {
		if truthy(a[0]) {
			return a[0], nil
		}
		return a[1], nil
	}, new(func(any, any) any)},
	{"_not", "", func(a ...any) (any, error) { return !truthy(a[0]), nil }, new(func(any) bool)},
	{"_contains", "contains", containsLoose, new(func(any, any) bool)},
	{"_startsWith", "startsWith", func(a ...any) (any, error) {
		return strings.HasPrefix(strings.ToLower(asText(a[0])), strings.ToLower(asText(a[1]))), nil
	}, new(func(any, any) bool)},
	{"_endsWith", "endsWith", func(a ...any) (any, error) {
		return strings.HasSuffix(strings.ToLower(asText(a[0])), strings.ToLower(asText(a[1]))), nil
	}, new(func(any, any) bool)},
	{"_format", "format", format, new(func(string, ...any) string)},
	{"_join", "join", join, new(func(any, ...string) string)},
	{"_toJSON", "toJSON", func(a ...any) (any, error) {
		data, err := json.MarshalIndent(a[0], "", "  ")
		return string(data), err
	}, new(func(any) string)},
	{"_fromJSON", "fromJSON", func(a ...any) (any, error) {
		var v any
		if err := json.Unmarshal([]byte(asText(a[0])), &v); err != nil {
			return nil, fmt.Errorf("fromJSON: the text is not JSON: %v", err)
		}
		return v, nil
	}, new(func(any) any)},
}

// truthy is false for nothing, false, 0 and the empty text.
func truthy(v any) bool {
	switch v := v.(type) {
	case nil:
		return false
	case bool:
		return v
	case string:
		return v != ""
	}
	if n, ok := asNumber(v); ok {
		return n != 0
	}
	return true
}

// compareLoose orders two values. ok is false where there is no order: lists,
// maps, and what is no number beside one.
func compareLoose(a, b any) (order int, ok bool) {
	x, xText := a.(string)
	y, yText := b.(string)
	if xText && yText {
		return strings.Compare(strings.ToLower(x), strings.ToLower(y)), true
	}
	m, mOK := asNumber(a)
	n, nOK := asNumber(b)
	switch {
	case !mOK || !nOK:
		return 0, false
	case m < n:
		return -1, true
	case m > n:
		return 1, true
	}
	return 0, m == n
}

// asNumber follows GitHub Actions: nothing and the empty text are 0, true is 1.
func asNumber(v any) (n float64, ok bool) {
	switch v := v.(type) {
	case nil:
		return 0, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int:
		return float64(v), true
	case float64:
		return v, !math.IsNaN(v)
	case string:
		v = strings.TrimSpace(v)
		if v == "" {
			return 0, true
		}
		n, err := strconv.ParseFloat(v, 64)
		return n, err == nil
	}
	return 0, false
}

// asText is how a value stands in a text.
func asText(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	if data, err := json.Marshal(v); err == nil {
		return string(data)
	}
	return fmt.Sprint(v)
}

func containsLoose(a ...any) (any, error) {
	if list, ok := a[0].([]any); ok {
		for _, item := range list {
			if o, ok := compareLoose(item, a[1]); ok && o == 0 {
				return true, nil
			}
		}
		return false, nil
	}
	return strings.Contains(strings.ToLower(asText(a[0])), strings.ToLower(asText(a[1]))), nil
}

// format puts its arguments for {0}, {1} …; {{ and }} are braces.
func format(a ...any) (any, error) {
	text := asText(a[0])
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if pair := text[i:min(i+2, len(text))]; pair == "{{" || pair == "}}" {
			b.WriteByte(text[i])
			i++
			continue
		}
		if text[i] != '{' {
			b.WriteByte(text[i])
			continue
		}
		end := strings.IndexByte(text[i:], '}')
		if end < 0 {
			return nil, fmt.Errorf("format: a { is not closed in %q", text)
		}
		n, err := strconv.Atoi(text[i+1 : i+end])
		if err != nil || n < 0 || n+1 >= len(a) {
			return nil, fmt.Errorf("format: there is no argument for %s", text[i:i+end+1])
		}
		b.WriteString(asText(a[n+1]))
		i += end
	}
	return b.String(), nil
}

func join(a ...any) (any, error) {
	separator := ","
	if len(a) > 1 {
		separator = asText(a[1])
	}
	list, ok := a[0].([]any)
	if !ok {
		return asText(a[0]), nil
	}
	words := make([]string, len(list))
	for i, v := range list {
		words[i] = asText(v)
	}
	return strings.Join(words, separator), nil
}
