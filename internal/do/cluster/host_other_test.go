//go:build !linux

package cluster_test

import (
	"errors"
	"syscall"
)

func onHost() *syscall.SysProcAttr { return nil }

func rename(string) error { return errors.ErrUnsupported }
