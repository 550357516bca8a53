//go:build !linux

package main

// lowly is for the attacks on a box, which is Linux's.
func lowly() {}

func noLinks() {}
