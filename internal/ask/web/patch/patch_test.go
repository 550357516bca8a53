package patch_test

import (
	"fmt"

	"github.com/pawl-dev/pawl/internal/ask/web/patch"
)

func ExampleRead() {
	d := patch.Read(`diff --git a/a b/a
old mode 100644
new mode 100755
@@ -3 +3,2 @@ func main() {
-one
+two
+three
`)
	h := d.Hunks[0]
	fmt.Println(d.OldMode, d.NewMode, h.OldStart, h.OldLines, h.NewStart, h.NewLines, h.Heading)
	fmt.Printf("%q\n", h.Lines)
	fmt.Println(patch.Read("Binary files a/b and b/b differ").Binary)
	// Output:
	// 100644 100755 3 1 3 2 func main() {
	// ["-one" "+two" "+three"]
	// true
}
