package postgres

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

// errorCode returns PostgreSQL's own code of an error; "" if the server did not make it.
func errorCode(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// Passing is true while others have the lock, and while a server that was there is
// away: it may be restarted.
func (d *DB) Passing(err error) bool {
	away := d.worked && d.Lost(err)
	return away || errors.Is(kindOfError(err), database.ErrBusy)
}

// Lost is true when the connection ended.
func (d *DB) Lost(err error) bool { return errors.Is(kindOfError(err), database.ErrAway) }

// Ended reports whether the call failed because its context was done.
func (d *DB) Ended(err error) bool { return pgconn.Timeout(err) || errors.Is(err, context.Canceled) }

// kindOfError is one of the kinds of errors; nil is none of them.
func kindOfError(err error) error {
	switch c := errorCode(err); {
	case c == "28P01", c == "28000", c == "3D000", c == "42501":
		return database.ErrRefused
	case c == "25006", c == "53100":
		return database.ErrUnwritable
	case c == "55P03", c == "40001", c == "40P01", c == "53300", c == "57014":
		return database.ErrBusy
	case c == "XX001", c == "XX002":
		return database.ErrDamaged
	case c == "57P01", c == "57P02", c == "57P03", c == "57P05", c == "25P03", strings.HasPrefix(c, "08"):
		return database.ErrAway
	case c != "":
		return nil
	}
	var dial *pgconn.ConnectError
	var network net.Error
	lost := errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF)
	switch {
	case err == nil:
		return nil
	case lost, errors.As(err, &dial), errors.As(err, &network), strings.Contains(err.Error(), "conn closed"):
		return database.ErrAway
	}
	return nil
}

var advices = map[string]string{
	"28P01": "check the user and the password, which is taken from the address, from PGPASSWORD or from ~/.pgpass",
	"28000": "have the server's pg_hba.conf let this user in",
	"3D000": "make the database: createdb NAME",
	"42501": "have its owner let this user make a schema: GRANT CREATE ON DATABASE … TO …",
	"25006": "this server only reads, as a copy of another one does: name the one that is written to",
	"53100": "make room on the server's disk",
	"53300": "the server has no connection left: end programs that use it, or raise max_connections",
	"57014": "a statement took too long: look at what else the server does, and try again",
}

// Diagnose says which error it is, and what the person can do about it.
func (d *DB) Diagnose(err error) (text string, kind error) {
	kind = kindOfError(err)
	if kind == nil {
		return "", nil
	}
	advice := advices[errorCode(err)]
	switch {
	case advice != "":
	case errors.Is(kind, database.ErrBusy):
		return fmt.Sprintf("%s has %s locked; let it end, or end it, and try again", d.lockHolder(), d.Name()), kind
	case errors.Is(kind, database.ErrDamaged):
		advice = "have the server's operator look at it: pawl leaves it as it is"
	case strings.Contains(strings.ToLower(err.Error()), "tls"):
		advice = "see that sslmode and sslrootcert of the address fit what the server has"
	case errors.Is(err, errUnknown):
		advice = "see that the server is up"
	default:
		advice = "see that the server is up and can be reached from here, and try again: nothing was stored"
	}
	return fmt.Sprintf("%s: %s; %s", d.Name(), d.maskPassword(err.Error()), advice), kind
}

func (d *DB) maskPassword(text string) string {
	for _, secret := range []string{d.password, url.QueryEscape(d.password), url.PathEscape(d.password)} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "xxxxx")
		}
	}
	return strings.ReplaceAll(text, "\n", " ")
}

// reasonInvalid returns ": " and the reason why an address cannot be parsed. It is "" if
// the reason might show a password.
func reasonInvalid(address string, err error) string {
	if strings.Contains(address, "@") {
		if user, _, _ := strings.Cut(address, "@"); strings.Count(user, ":") > 1 {
			return ""
		}
	}
	if strings.Contains(address, "password=") {
		return ""
	}
	return ": " + err.Error()
}

// Waited is who has the lock, or that the server is away.
func (d *DB) Waited(err error) string {
	if d.Lost(err) {
		return "which cannot be reached (" + d.Name() + ")"
	}
	return "which " + d.lockHolder() + " has locked"
}

// lockHolder names the process that has the board locked, as its connection is named.
func (d *DB) lockHolder() string {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	var name string
	err := d.reader.QueryRowContext(ctx, `SELECT a.application_name
		FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid
		WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 1
		AND (l.classid::bigint << 32 | l.objid::bigint) = $1`, d.lock).Scan(&name)
	if err != nil || name == "" {
		return "another process"
	}
	return strings.TrimPrefix(name, "pawl: ")
}
