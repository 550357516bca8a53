package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"strings"

	"gocloud.dev/blob"
	_ "gocloud.dev/blob/gcsblob" // gs://
	_ "gocloud.dev/blob/s3blob"  // s3://
	"gocloud.dev/gcerrors"

	"github.com/pawl-dev/pawl/internal/keep/outputs"
)

// Bucket opens s3://NAME/FOLDER or gs://NAME/FOLDER. What comes after a "?" is for the
// library: region=, endpoint=, use_path_style=. Keys are those of the machine.
func (Program) Bucket(ctx context.Context, address string) (outputs.Objects, error) {
	u, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	folder := strings.Trim(u.Path, "/")
	u.Path = ""
	b, err := blob.OpenBucket(ctx, u.String())
	if err == nil && folder != "" {
		b = blob.PrefixedBucket(b, folder+"/")
	}
	return bucket{b}, err
}

type bucket struct{ *blob.Bucket }

func (b bucket) List(ctx context.Context, prefix string, each func(outputs.Object)) error {
	for all := b.Bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		o, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return known(err)
		}
		each(outputs.Object{Name: o.Key, Size: o.Size, Changed: o.ModTime})
	}
}

func (b bucket) Read(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
	r, err := b.NewRangeReader(ctx, name, from, -1, nil)
	if err != nil {
		return nil, known(err)
	}
	return r, nil
}

func (b bucket) Write(ctx context.Context, name string, data io.Reader) error {
	o := blob.WriterOptions{ContentType: "application/octet-stream", MaxConcurrency: 1}
	return known(b.Upload(ctx, name, data, &o))
}

func (b bucket) Remove(ctx context.Context, name string) error { return known(b.Delete(ctx, name)) }

// known is an error by which others can tell that there is no such object.
func known(err error) error {
	if gcerrors.Code(err) == gcerrors.NotFound {
		return fmt.Errorf("%w: %v", fs.ErrNotExist, err)
	}
	return err
}
