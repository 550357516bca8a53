package safety_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pawl-dev/pawl/internal/decide/safety"
)

// Of very many secrets the first hundred are named.
func TestManySecrets(t *testing.T) {
	t.Parallel()
	patch := "+++ b/keys.go\n@@ -0,0 +1,150 @@\n" + strings.Repeat("+key := \"AKIA"+"Q3EGRIOH7VZKNB5T\"\n", 150)
	found := safety.Secrets(patch)
	if len(found) != 100 {
		t.Fatalf("%d secrets are named", len(found))
	}
	for n, s := range found {
		if s.File != "keys.go" || s.Line != n+1 {
			t.Fatal(fmt.Sprint("secret ", n, " is ", s))
		}
	}
}
