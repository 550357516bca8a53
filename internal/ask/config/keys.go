package config

import "strings"

// SchemaURL is where editors find the schema of the newest pawl.
const SchemaURL = "https://raw.githubusercontent.com/pawl-dev/pawl/main/docs/pawl.schema.json"

// Keys are the paths of all keys that are not of the user's own naming, sections
// included, in the order of the file.
func Keys() []string {
	var list []string
	var walk func(sp *spec, path string)
	walk = func(sp *spec, path string) {
		for _, f := range sp.fields {
			if !f.inline {
				below := joinPath(path, f.name)
				list = append(list, below)
				walk(f, below)
			}
		}
	}
	walk(schema(), "")
	return list
}

// NearestKey is the path that was probably meant, or "".
func NearestKey(path string) string {
	all := Keys()
	if near := Nearest(path, all); near != "" {
		return near
	}
	last := path[strings.LastIndexByte(path, '.')+1:]
	for _, k := range all {
		if strings.HasSuffix(k, "."+last) {
			return k
		}
	}
	return ""
}
