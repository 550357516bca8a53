//go:build !linux

package main

// pretend is for tests that run on Linux only.
func pretend() {}
