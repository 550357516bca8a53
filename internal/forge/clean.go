package forge

import (
	"reflect"
	"strings"

	"github.com/pawl-dev/pawl/internal/board"
)

// clean takes out of what a forge said all that could steer a terminal or is not seen, in each
// text of a decoded answer. A text is one line, unless it is the body of an issue or a comment.
func clean(v reflect.Value, lines bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			clean(v.Elem(), lines)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if field := v.Type().Field(i); field.IsExported() {
				clean(v.Field(i), field.Tag.Get("json") == "body")
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			for i := range v.Len() {
				clean(v.Index(i), lines)
			}
		}
	case reflect.String:
		v.SetString(visible(v.String(), lines))
	}
}

// visible is what is seen of a text.
func visible(text string, lines bool) string {
	text = board.Seen(text)
	if lines {
		return text
	}
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(text)
}
