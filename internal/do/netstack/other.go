//go:build !linux

package netstack

import (
	"context"
	"errors"

	"github.com/pawl-dev/pawl/internal/do/sandbox"
)

// Serve is for boxes, of which this system has none.
func Serve(context.Context, int, sandbox.Policy, func(host, why string)) error {
	return errors.New("there is no sandbox here")
}
