package action_test

import (
	"os"
	"testing"

	"github.com/pawl-dev/pawl/internal/test/gittest"
)

func TestMain(m *testing.M) { os.Exit(gittest.Run(m)) }
