// Package config turns files, the environment and flags into one checked
// value, and remembers for every value where it came from.
//
// Layers, low to high: built-in, the user-wide file, the project's pawl.yaml,
// the environment, flags. Each becomes a small tree whose nodes know their
// place; the trees are merged (maps by key, lists replaced whole) and decoded
// into a [Config] once. The struct tags of Config are the only description of
// the keys: the decoder, the JSON Schema, the environment's names, provenance
// and the reference page are all read from them.
//
// The package never guesses: an unknown key, a wrong type or an impossible
// value is an [*Error] with its place. It runs no command, opens no
// connection, and writes a file only in [WriteNew]. Nobody else reads the
// files or the variables.
package config
