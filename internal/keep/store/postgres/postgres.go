// Package postgres keeps stores in a database of PostgreSQL, which several people
// and machines share. Each repository has a schema of its own in it, so that the
// queries are those of a file and no board sees another. The package opens,
// locks and watches; the queries are the store's. Passwords are in no message.
//
// All who write a board take one lock until they commit, as they do with a file.
// So what a transaction read is still true when it writes, and events are
// committed in the order of their numbers: a reader that continues from the last
// number misses none.
package postgres

import (
	"cmp"
	"context"
	"crypto/sha256"
	"database/sql"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/pawl-dev/pawl/internal/keep/store/database"
)

//go:embed migrations/*.sql
var steps embed.FS

// Limits of the connections.
const (
	readers = 5
	connect = 10 * time.Second
	// turn is how long one attempt to write waits for others; the store makes several.
	turn = 1500 * time.Millisecond
	// statement is how long one may take, and how long somebody who stopped in the
	// middle of a transaction keeps the others waiting.
	statement = 2 * time.Minute
	stopped   = time.Minute
)

// Parameter is the parameter of an address that names the board. Without one the
// repository's remote does.
const Parameter = "repository"

// DB is a board in a database.
type DB struct {
	config   *pgx.ConnConfig
	password string
	board    string
	schema   string
	lock     int64
	reader   *sql.DB
	writer   *sql.DB
	worked   bool        // a connection was there before
	began    string      // when the server was started
	crashed  atomic.Bool // it said so
	identity string      // of the board; "" while it is opened
	gone     atomic.Bool // another one has taken its place
	others   []string    // schemas of the other boards, where this one was just made

	mu      sync.Mutex // guards the next three
	looked  time.Time  // whether it is the same board
	watch   *pgx.Conn
	version int64
}

// Open prepares the database at an address of the form postgres://user@host/database
// for the board of a repository. It is there also with an error, to explain it.
func Open(ctx context.Context, address, repository string) (*DB, error) {
	d := &DB{}
	address, named := splitBoard(address)
	if named != "" {
		repository = named
	}
	config, err := pgx.ParseConfig(address)
	if err != nil {
		return d, fmt.Errorf("%w: cluster.store has no address of PostgreSQL, as postgres://user@host/database "+
			"is one%s",
			database.ErrRefused, reasonInvalid(address, err))
	}
	d.config, d.password, d.board = config, config.Password, repository
	if repository == "" {
		return d, fmt.Errorf("%w: the board has no name: give the repository a remote (git remote add origin …), "+
			"or name it in cluster.store: …?%s=acme/shop", database.ErrRefused, Parameter)
	}
	d.schema = SchemaOf(repository)
	sum := sha256.Sum256([]byte(d.schema))
	d.lock = int64(binary.BigEndian.Uint64(sum[:8])) //nolint:gosec // any number does
	d.preparePools()
	err = d.checkServer(ctx)
	return d, err
}

// splitBoard separates the name of a board from an address.
func splitBoard(address string) (without, board string) {
	u, err := url.Parse(address)
	if err != nil || !u.Query().Has(Parameter) {
		return address, ""
	}
	q := u.Query()
	board = q.Get(Parameter)
	q.Del(Parameter)
	u.RawQuery = q.Encode()
	return u.String(), board
}

// At finds the TCP ports of the servers at an address, and what is on this machine: sockets, and files
// that open it.
func At(address string) (ports []int, paths []string) {
	if address == "" {
		return nil, nil
	}
	plain, _ := splitBoard(address)
	if u, err := url.Parse(plain); err == nil {
		q := u.Query()
		for _, name := range []string{"passfile", "servicefile", "sslkey", "sslcert", "sslrootcert", "sslmode"} {
			if filepath.IsAbs(q.Get(name)) {
				paths = append(paths, q.Get(name))
			}
			if strings.HasPrefix(name, "ssl") { // they are looked for, and may be missing here
				q.Del(name)
			}
		}
		u.RawQuery = q.Encode()
		plain = u.String()
	}
	c, err := pgx.ParseConfig(plain)
	if err != nil { // who uses the address says so; the usual port is the best guess
		return []int{5432}, paths
	}
	at := []*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port}}
	for _, one := range append(at, c.Fallbacks...) {
		if strings.HasPrefix(one.Host, "/") {
			paths = append(paths, one.Host)
		} else {
			ports = append(ports, int(one.Port))
		}
	}
	return ports, paths
}

// preparePools sets what every connection has, and makes the pools. Nothing is dialled
// yet.
func (d *DB) preparePools() {
	host, _ := os.Hostname()
	c := d.config
	for name, value := range map[string]string{
		"application_name": fmt.Sprintf("pawl: process %d on %s", os.Getpid(), host),
		"search_path":      pgx.Identifier{d.schema}.Sanitize(), "jit": "off", "client_encoding": "UTF8",
		"statement_timeout": millisText(statement), "lock_timeout": millisText(turn),
		"idle_in_transaction_session_timeout": millisText(stopped),
	} {
		c.RuntimeParams[name] = value
	}
	c.ConnectTimeout = cmp.Or(c.ConnectTimeout, connect)
	c.OnNotice = func(_ *pgconn.PgConn, n *pgconn.Notice) {
		if n.Code == "57P02" { // crash_shutdown
			d.crashed.Store(true)
		}
	}
	dial := &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 15 * time.Second,
		Interval: 5 * time.Second, Count: 4}, Control: setSendTimeout}
	c.DialFunc = dial.DialContext
	d.reader, d.writer = stdlib.OpenDB(*c), stdlib.OpenDB(*c)
	d.reader.SetMaxOpenConns(readers)
	d.reader.SetMaxIdleConns(2)
	d.writer.SetMaxOpenConns(1)
}

func millisText(t time.Duration) string { return fmt.Sprint(t.Milliseconds()) }

// checkServer checks that the server will do, and makes the schema of a new board.
func (d *DB) checkServer(ctx context.Context) error {
	var encoding string
	var version int
	var there bool
	err := d.reader.QueryRowContext(ctx, `SELECT current_setting('server_encoding'),
		current_setting('server_version_num')::int, to_regnamespace($1) IS NOT NULL, `+started,
		pgx.Identifier{d.schema}.Sanitize()).Scan(&encoding, &version, &there, &d.began)
	switch {
	case err != nil:
		return err
	case encoding != "UTF8":
		return fmt.Errorf("%w: %s has the encoding %s; make one that has UTF8: createdb -E UTF8 -T template0 NAME",
			database.ErrRefused, d.Name(), encoding)
	case version < oldest*10000:
		return fmt.Errorf("%w: the server of %s is PostgreSQL %d; pawl needs %d or newer",
			database.ErrRefused, d.Name(), version/10000, oldest)
	}
	d.worked = true
	if there {
		return nil
	}
	_, err = d.writer.ExecContext(ctx, `CREATE SCHEMA IF NOT EXISTS `+pgx.Identifier{d.schema}.Sanitize())
	if errorCode(err) == "23505" || errorCode(err) == "42P06" { // another one made it meanwhile
		return nil
	}
	if err == nil {
		d.others, err = d.otherBoards(ctx, d.writer) // a reader more would be one more to lose
	}
	return err
}

// Others are the schemas of the other boards of the database.
func (d *DB) Others(ctx context.Context) ([]string, error) { return d.otherBoards(ctx, d.reader) }

func (d *DB) otherBoards(ctx context.Context, from *sql.DB) ([]string, error) {
	var schemas string
	err := from.QueryRowContext(ctx, `SELECT coalesce(string_agg(nspname, ' ' ORDER BY nspname), '')
		FROM pg_namespace WHERE nspname LIKE 'pawl\_%' AND nspname <> $1`, d.schema).Scan(&schemas)
	return strings.Fields(schemas), err
}

// OthersWhenMade are the schemas of the boards that were there when this one was made; none
// when it was there already.
func (d *DB) OthersWhenMade() []string { return d.others }

const started = `pg_postmaster_start_time()::text`

// Restarted is true once the server was started again, has crashed, or is another one: what
// was stored last may be gone.
func (d *DB) Restarted(ctx context.Context) (bool, error) {
	now := ""
	err := d.reader.QueryRowContext(ctx, `SELECT `+started).Scan(&now)
	if err != nil {
		return false, err
	}
	return now != d.began || d.crashed.Load(), nil
}

// oldest is the oldest server that is known to do.
const oldest = 13

var noName = regexp.MustCompile(`[^a-z0-9]+`)

// SchemaOf is the schema of a board: its name as far as one can read it, and a hash of it.
func SchemaOf(board string) string {
	sum := sha256.Sum256([]byte(board))
	plain := strings.Trim(noName.ReplaceAllString(strings.ToLower(board), "_"), "_")
	return "pawl_" + plain[max(0, len(plain)-40):] + "_" + hex.EncodeToString(sum[:4])
}

// Name is the address without its password, with the name of the board.
func (d *DB) Name() string {
	if d.config == nil {
		return "cluster.store"
	}
	u := url.URL{Scheme: "postgres", User: url.User(d.config.User), Path: "/" + d.config.Database,
		Host: net.JoinHostPort(d.config.Host, fmt.Sprint(d.config.Port))}
	q := url.Values{}
	if strings.HasPrefix(d.config.Host, "/") {
		u.Host = ""
		q.Set("host", d.config.Host)
	}
	if d.board != "" {
		q.Set(Parameter, d.board)
	}
	u.RawQuery = q.Encode()
	return u.String()
}

// Board is the name of the repository whose board it is, and the schema that it is in.
func (d *DB) Board() (name, schema string) { return d.board, d.schema }

// Reader is the pool for reading.
func (d *DB) Reader() *sql.DB { return d.reader }

// Writer opens a connection that writes. Once there was one, it waits a little
// before it says that there is none: a server that is restarted is back soon.
func (d *DB) Writer(ctx context.Context) (*sql.Conn, error) {
	c, err := d.writer.Conn(ctx)
	if err != nil && d.Passing(err) {
		select {
		case <-ctx.Done():
		case <-time.After(turn):
		}
	}
	return c, err
}

// execStatements sends statements that need no answer, all at once.
func execStatements(ctx context.Context, c *sql.Conn, text string) error {
	return c.Raw(func(conn any) error {
		own, ok := conn.(*stdlib.Conn)
		if !ok {
			return fmt.Errorf("%T is no connection of pgx", conn)
		}
		_, err := own.Conn().PgConn().Exec(ctx, text).ReadAll()
		return err
	})
}

// Begin takes the lock of the board. What is not durable may be lost when the
// server loses its power, in order from the last.
func (d *DB) Begin(ctx context.Context, c *sql.Conn, durable bool) error {
	durably := "off"
	if durable {
		durably = "on"
	}
	if d.gone.Load() {
		return d.judgeIdentity(nil)
	}
	err := d.judgeIdentity(execStatements(ctx, c, fmt.Sprintf(
		`BEGIN; SET LOCAL synchronous_commit TO %s; SELECT pg_advisory_xact_lock(%d); %s`, durably, d.lock,
		d.sameBoard())))
	if err != nil {
		d.End(context.WithoutCancel(ctx), c, durable, false) // it may be begun again
	}
	return err
}

// errUnknown goes before the error of a commit whose answer was lost.
var errUnknown = errors.New("whether it was stored is not known, so look before you do it again")

// Commit commits and wakes those who watch.
func (d *DB) Commit(ctx context.Context, c *sql.Conn) error {
	ctx, cancel := context.WithTimeout(ctx, statement)
	defer cancel()
	err := execStatements(ctx, c, fmt.Sprintf(`NOTIFY %s; COMMIT`, pgx.Identifier{d.schema}.Sanitize()))
	if err != nil && d.Lost(err) {
		return fmt.Errorf("%w: %w", errUnknown, err)
	}
	return err
}

// End rolls back what was not committed.
func (d *DB) End(ctx context.Context, c *sql.Conn, _, committed bool) {
	if committed {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, connect)
	defer cancel()
	_ = execStatements(ctx, c, `ROLLBACK`) // what is lost was rolled back by the server
}

// Values are brought into what PostgreSQL stores: a text is UTF-8 without zeros.
func (d *DB) Values(args []any) []any {
	values := make([]any, len(args))
	for i, a := range args {
		switch v := reflect.ValueOf(a); v.Kind() { //nolint:exhaustive // the others are taken as they are
		case reflect.Bool:
			values[i] = int64(0)
			if v.Bool() {
				values[i] = int64(1)
			}
		case reflect.String:
			values[i] = strings.ReplaceAll(strings.ToValidUTF8(v.String(), "\uFFFD"), "\x00", "\uFFFD")
		default:
			values[i] = a
		}
	}
	return values
}

// Steps are the files of the schema.
func (d *DB) Steps() (files fs.FS, migrated string) {
	return steps, `SELECT count(*) FROM pg_tables WHERE schemaname = current_schema() AND tablename = 'migrations'`
}

// Keep keeps nothing: copies of a server's databases are its operator's.
func (d *DB) Keep(context.Context, int) error { return nil }

// Older is never there.
func (d *DB) Older(int) string { return "" }

// BackUp does nothing, as Keep.
func (d *DB) BackUp(context.Context) {}

// Check sees that the server answers; what is damaged it says itself.
func (d *DB) Check(ctx context.Context) error {
	_, err := d.reader.ExecContext(ctx, `SELECT 1`)
	return err
}

// Close closes all connections; to close twice does nothing.
func (d *DB) Close() error {
	d.mu.Lock()
	d.closeWatch()
	d.mu.Unlock()
	var errs []error
	for _, pool := range []*sql.DB{d.reader, d.writer} {
		if pool != nil {
			errs = append(errs, pool.Close())
		}
	}
	return errors.Join(errs...)
}

// sameEvery is how often it is looked whether the board is the same.
const sameEvery = time.Second

// glance is how long it is looked for notices that have come.
const glance = time.Millisecond

// Version is the number of the notices that came, and of the times that the
// connection for them was opened: what happened before is not known then.
func (d *DB) Version(ctx context.Context) (int64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.watch == nil || d.watch.IsClosed() {
		if err := d.startListening(ctx); err != nil {
			return d.version, err
		}
	}
	if time.Since(d.looked) > sameEvery {
		if err := d.checkSameBoard(ctx, d.watch); err != nil { // the next call opens another connection
			d.closeWatch()
			return d.version, err
		}
		d.looked = time.Now()
	}
	for {
		soon, cancel := context.WithTimeout(ctx, glance)
		_, err := d.watch.WaitForNotification(soon)
		cancel()
		switch {
		case err == nil:
			d.version++
		case ctx.Err() != nil:
			return d.version, ctx.Err()
		case pgconn.Timeout(err) || errors.Is(err, context.DeadlineExceeded):
			return d.version, nil
		default: // the next call opens another one
			d.closeWatch()
			return d.version, err
		}
	}
}

func (d *DB) startListening(ctx context.Context) error {
	d.closeWatch()
	conn, err := pgx.ConnectConfig(ctx, d.config.Copy())
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{d.schema}.Sanitize()); err != nil {
		_ = conn.Close(ctx)
		return err
	}
	d.watch = conn
	d.version++
	return nil
}

func (d *DB) closeWatch() {
	if d.watch != nil {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = d.watch.Close(ctx) // nothing is stored by it
		cancel()
		d.watch = nil
	}
}
