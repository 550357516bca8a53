// Package config turns files, the environment and flags into one checked
// value, and remembers for every value where it came from.
//
// Layers, low to high: built-in, the user-wide file, the project's pawl.yaml,
// the environment, flags. Each becomes a small tree whose nodes know their
// place, and is decoded over those before it: maps by key, lists replaced
// whole. The struct tags of [Config] describe the keys, keys.yaml says what
// they mean, and examples.yaml what a value looks like: the decoder, the JSON
// Schema, the names of variables, provenance and the reference page are all made
// from these. The tests write the schema and the page anew with -update.
//
// The package never guesses: an unknown key, a wrong type or an impossible
// value is an [*Error] with its place. It runs no command, opens no
// connection, and writes a file only in [WriteNew]; [Set] changes a text. No other
// package reads the files or the variables.
package config
