package prompt

import (
	"embed"
	"strings"
)

// The fragments that come with pawl: builtin/PHASE/NAME.md.
//
//go:embed builtin
var builtins embed.FS

const (
	builtinFolder = "builtin/"
	builtinSuffix = ".md"
)

// Builtin returns the text of a fragment that comes with pawl, by its name
// without the prefix "builtin:", such as "act/edit-and-test". It may be a
// template.
func Builtin(name string) (string, bool) {
	text, err := builtins.ReadFile(builtinFolder + name + builtinSuffix)
	return string(text), err == nil
}

// Builtins returns the names of all of these fragments, sorted.
func Builtins() []string {
	var names []string
	for _, phase := range entries("builtin") {
		for _, file := range entries(builtinFolder + phase) {
			names = append(names, phase+"/"+strings.TrimSuffix(file, builtinSuffix))
		}
	}
	return names
}

// entries lists a folder. The files are part of the program, so reading one
// that there is cannot fail.
func entries(folder string) []string {
	list, _ := builtins.ReadDir(folder)
	names := make([]string, 0, len(list))
	for _, entry := range list {
		names = append(names, entry.Name())
	}
	return names
}
