package ticket

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestDesk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var d Desk
		take := func(secret, want string) {
			t.Helper()
			if opens, ok := d.Use(secret); ok != (want != "") || ok && opens != want {
				t.Errorf("it opens %q, %t; want %q", opens, ok, want)
			}
		}
		a, b := d.Issue("a"), d.Issue("b")
		take("", "")
		take(a+"x", "")
		take(b, "b")
		take(b, "") // used
		<-time.After(Life)
		take(a, "") // late
		first := d.Issue("first")
		for range most {
			d.Issue("more")
		}
		take(first, "") // too many are out
		if len(d.out) != most {
			t.Errorf("%d are out", len(d.out))
		}
	})
}
