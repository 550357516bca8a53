// Package lists makes one list of another. What package slices has is used from there.
package lists

import (
	"cmp"
	"slices"
	"strings"
)

// Each makes a list of another, element by element.
func Each[F, T any](list []F, of func(F) T) []T {
	out := make([]T, len(list))
	for i, one := range list {
		out[i] = of(one)
	}
	return out
}

// Pick makes a list of those elements of another that take says true of.
func Pick[F, T any](list []F, take func(F) (T, bool)) (out []T) {
	for _, one := range list {
		if picked, ok := take(one); ok {
			out = append(out, picked)
		}
	}
	return out
}

// Union adds to a list those of more that it does not have.
func Union[T comparable](list []T, more ...T) []T {
	for _, one := range more {
		if !slices.Contains(list, one) {
			list = append(list, one)
		}
	}
	return list
}

// Distinct sorts a list in its place, and leaves each element in it once.
func Distinct[T cmp.Ordered](list []T) []T {
	slices.Sort(list)
	return slices.Compact(list)
}

// Set has all elements, to be asked for.
func Set[T comparable](list []T) map[T]bool {
	set := make(map[T]bool, len(list))
	for _, one := range list {
		set[one] = true
	}
	return set
}

// ToMap makes a map of a list: of gives the key and the value of each element, and the
// last one with a key counts.
func ToMap[F any, K comparable, V any](list []F, of func(F) (K, V)) map[K]V {
	all := make(map[K]V, len(list))
	for _, one := range list {
		key, value := of(one)
		all[key] = value
	}
	return all
}

// NonEmpty leaves out the empty texts.
func NonEmpty(texts ...string) []string {
	return slices.DeleteFunc(slices.Clone(texts), func(text string) bool { return text == "" })
}

// LookupEnv finds a variable in an environment K=V, in which the last of two equal names counts.
func LookupEnv(env []string, name string) (value string, ok bool) {
	for _, kv := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Getenv is [LookupEnv] where a variable that is missing is an empty one.
func Getenv(env []string, name string) string {
	value, _ := LookupEnv(env, name)
	return value
}
