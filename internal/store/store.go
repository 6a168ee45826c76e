// Package store keeps Rouse's state: all SQL is here. A change of state and
// its events are one transaction, written by one goroutine (the committer)
// that batches many sessions' writes; reads have their own connections.
//
// Nothing outside sees a driver's error: errors are rouse.Error, NotFound for
// an absent row, Unavailable when the database cannot be written or read.
package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"modernc.org/sqlite" // also the driver "sqlite"

	"rouse"
)

// Options of Open. The zero value works.
type Options struct {
	// Committed is called by the committer after each commit with its events
	// in order; it must not block. Nil: nobody listens.
	Committed func([]rouse.Event)
	// BackupDir is where a copy is put before a migration; "" is beside the
	// database.
	BackupDir string
	// Fault, when set, is asked before each commit; an error refuses it as a
	// broken disk would. For drills and simulations.
	Fault func() error
	// Readers is the number of read connections; default 4.
	Readers int
	// Logger gets one line when commits begin to fail, and one when they work; nil is slog.Default.
	Logger *slog.Logger
}

// Store is an open database. Serve must run for writes to happen.
type Store struct {
	path      string
	log       *slog.Logger
	committed func([]rouse.Event)
	fault     func() error

	write *sql.DB // one connection
	read  *sql.DB
	stmts sync.Map // query text -> *sql.Stmt on read

	queue    chan *op
	refusing atomic.Bool  // the last commit failed
	refused  time.Time    // the first of those that failed; committer only
	seq      atomic.Int64 // newest committed
	parts    int64        // last part number; committer only
	chunk    atomic.Int64 // last chunk number

	mu     sync.Mutex
	closed bool
	done   chan struct{} // closed when Serve has returned
	served bool
}

// Open opens or creates the database at path and migrates it. A database that
// is newer than this program is refused and left untouched.
func Open(ctx context.Context, path string, opt Options) (*Store, error) {
	const opName = "store: open"
	readers := opt.Readers
	if readers == 0 {
		readers = 4
	}
	log := opt.Logger
	if log == nil {
		log = slog.Default()
	}
	write, err := openDB(path, 1, "")
	if err != nil {
		return nil, failure(opName, err)
	}
	if err := migrate(ctx, write, path, opt.BackupDir, log); err != nil {
		return nil, errors.Join(rouse.Wrap(opName, err), write.Close())
	}
	read, err := openDB(path, readers, "&_pragma=query_only(1)")
	if err != nil {
		return nil, errors.Join(failure(opName, err), write.Close())
	}
	s := &Store{
		path: path, log: log, committed: opt.Committed, fault: opt.Fault, write: write, read: read,
		queue: make(chan *op, 1024), done: make(chan struct{}),
	}
	if err := s.recount(ctx); err != nil {
		return nil, errors.Join(failure(opName, err), write.Close(), read.Close())
	}
	return s, nil
}

func openDB(path string, conns int, more string) (*sql.DB, error) {
	// auto_vacuum only takes effect on a new file; the rest on each connection.
	dsn := "file:" + (&url.URL{Path: path}).EscapedPath() +
		"?_txlock=immediate&_pragma=busy_timeout(5000)&_pragma=auto_vacuum(2)&_pragma=journal_mode(WAL)" +
		"&_pragma=synchronous(NORMAL)&_pragma=journal_size_limit(67108864)&_pragma=cache_size(-2000)" + more
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns)
	return db, nil
}

// recount reads the counters that the committer keeps in memory.
func (s *Store) recount(ctx context.Context) error {
	var seq, part, chunk int64
	err := s.write.QueryRowContext(ctx, `SELECT
		(SELECT COALESCE(MAX(seq), 0) FROM events),
		(SELECT COALESCE(MAX(n), 0) FROM parts),
		(SELECT COALESCE(MAX(n), 0) FROM chunks)`).Scan(&seq, &part, &chunk)
	s.seq.Store(seq)
	s.parts = part
	s.chunk.Store(chunk)
	return err
}

// Head is the sequence number of the newest committed event, 0 before any.
func (s *Store) Head() int64 { return s.seq.Load() }

// Refusing says that the last commit failed: nothing is accepted now. The lease
// is renewed every 2 s, so it is no older than that.
func (s *Store) Refusing() bool { return s.refusing.Load() }

// Path is the database's file.
func (s *Store) Path() string { return s.path }

// Close waits for Serve to have returned (its context must be done), moves the
// log into the database and closes it. A second call does nothing.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	served := s.served
	s.mu.Unlock()
	if served {
		<-s.done
	}
	s.stmts.Range(func(_, st any) bool { _ = st.(*sql.Stmt).Close(); return true })
	err := s.read.Close()
	if _, err := s.write.Exec("PRAGMA wal_checkpoint(TRUNCATE)"); err != nil {
		s.log.Warn("store.checkpoint", "err", err) // the log file stays and is read at the next start
	}
	return errors.Join(err, s.write.Close())
}

// query runs a prepared statement on a read connection.
func (s *Store) query(ctx context.Context, text string, args ...any) (*sql.Rows, error) {
	st, err := s.prepared(ctx, text)
	if err != nil {
		return nil, err
	}
	return st.QueryContext(ctx, args...)
}

func (s *Store) prepared(ctx context.Context, text string) (*sql.Stmt, error) {
	if st, ok := s.stmts.Load(text); ok {
		return st.(*sql.Stmt), nil
	}
	st, err := s.read.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if old, loaded := s.stmts.LoadOrStore(text, st); loaded {
		_ = st.Close()
		return old.(*sql.Stmt), nil
	}
	return st, nil
}

// sqliteWords says what a person can do about an error code of SQLite,
// https://sqlite.org/rescode.html.
var sqliteWords = map[int]string{
	8:  "the database cannot be written: look at the rights of the data folder",
	11: "the database file is damaged: restore a backup",
	13: "the disk that holds the database is full: free some space",
	14: "the database file cannot be opened: look at the rights of the data folder",
	26: "the database file is damaged, or no database: restore a backup",
}

// failure turns a driver's error into one that may leave the package.
func failure(op string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, sql.ErrNoRows):
		return &rouse.Error{Kind: rouse.NotFound, Op: op, Err: err}
	case errors.As(err, new(*rouse.Error)):
		return rouse.Wrap(op, err)
	default:
		msg := "the database cannot be used right now"
		if e := (*sqlite.Error)(nil); errors.As(err, &e) {
			msg = cmp.Or(sqliteWords[e.Code()&0xff], msg)
		}
		return &rouse.Error{Kind: rouse.Unavailable, Op: op, Msg: msg, Err: err}
	}
}

func absent(op, what, id string) error {
	return rouse.Errorf(rouse.NotFound, op, "%s not found: %s", what, rouse.Clip(id, 64))
}

func ms(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func fromMS(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.UnixMilli(n).UTC()
}

func quote(s string) string {
	out := []byte{'\''}
	for i := range len(s) {
		if s[i] == '\'' {
			out = append(out, '\'')
		}
		out = append(out, s[i])
	}
	return string(append(out, '\''))
}

func placeholders(n int) string {
	out := make([]byte, 0, 5*n)
	for i := range n {
		if i > 0 {
			out = append(out, ',')
		}
		out = fmt.Appendf(out, "$%d", i+1)
	}
	return string(out)
}
