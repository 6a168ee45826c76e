package store

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"rouse"
)

// Session reads a session's row; NotFound if there is none.
func (tx *Tx) Session(id string) (*rouse.Session, error) {
	var s rouse.Session
	found, err := tx.one(&s, `SELECT body FROM sessions WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent("session", "Session", id)
	}
	return &s, err
}

// InsertSession stores a new session.
func (tx *Tx) InsertSession(s *rouse.Session) error {
	s.Row = 1
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if err := tx.do(`INSERT INTO sessions (id, directory, parent, title, created, updated, archived, running, running_boot, queued, body)
		VALUES ($1,$2,$3,$4,$5,$6,$7,$8,$9,$10,$11)`, s.ID, s.Directory, s.ParentID, s.Title, ms(s.Created), ms(s.Updated),
		ms(s.Archived), s.Running, s.RunningBoot, s.Queued, string(body)); err != nil {
		return err
	}
	return tx.sessionEvent(rouse.SessionCreated, s)
}

// UpdateSession stores a changed row and announces it.
func (tx *Tx) UpdateSession(s *rouse.Session) error {
	s.Row++
	if err := tx.KeepSession(s); err != nil {
		return err
	}
	return tx.sessionEvent(rouse.SessionUpdated, s)
}

// KeepSession stores a changed row without a word: counters and the runner
// change more often than anybody needs to hear. The row version stays.
func (tx *Tx) KeepSession(s *rouse.Session) error {
	body, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return tx.do(`UPDATE sessions SET title=$2, updated=$3, archived=$4, running=$5, running_boot=$6, queued=$7, body=$8, directory=$9
		WHERE id=$1`, s.ID, s.Title, ms(s.Updated), ms(s.Archived), s.Running, s.RunningBoot, s.Queued, string(body), s.Directory)
}

func (tx *Tx) sessionEvent(t rouse.EventType, s *rouse.Session) error {
	row := *s
	return tx.Emit(rouse.Event{Type: t, SessionID: s.ID, Directory: s.Directory, Generation: s.Generation, Row: s.Row, Body: &row}, nil)
}

// DeleteSession removes a session with all that belongs to it, except its
// events, which end with session.deleted.
func (tx *Tx) DeleteSession(s *rouse.Session) error {
	for _, text := range []string{
		`DELETE FROM chunks WHERE part IN (SELECT id FROM parts WHERE message IN (SELECT id FROM messages WHERE session = $1))`,
		`DELETE FROM parts WHERE message IN (SELECT id FROM messages WHERE session = $1)`,
		`DELETE FROM messages WHERE session = $1`,
		`DELETE FROM turns WHERE session = $1`,
		`DELETE FROM requests WHERE session = $1`,
		`DELETE FROM todos WHERE session = $1`,
		`DELETE FROM notices WHERE session = $1`,
		`DELETE FROM verdicts WHERE session = $1`,
		`DELETE FROM rescues WHERE session = $1`,
		`DELETE FROM incidents WHERE session = $1`,
		`DELETE FROM sessions WHERE id = $1`,
	} {
		if err := tx.do(text, s.ID); err != nil {
			return err
		}
	}
	if err := tx.freeProbes(s.ID); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.SessionDeleted, SessionID: s.ID, Directory: s.Directory}, rouse.SessionGone{Session: *s})
}

// Session reads a session; NotFound if there is none.
func (s *Store) Session(ctx context.Context, id string) (*rouse.Session, error) {
	const op = "store: session"
	var out rouse.Session
	found, err := s.one(ctx, &out, `SELECT body FROM sessions WHERE id = $1`, id)
	if err != nil {
		return nil, failure(op, err)
	}
	if !found {
		return nil, absent(op, "Session", id)
	}
	return &out, nil
}

// SessionFilter chooses sessions. The zero value is all of them.
type SessionFilter struct {
	Directory    string
	ParentID     string
	Roots        bool   // only sessions without a parent
	Search       string // part of the title, any case
	UpdatedSince time.Time
	Limit        int    // 0: all
	Cursor       string // SessionPage.Next of the page before
	Busy         bool   // only those with a running or queued turn
}

// SessionPage is one page, most recently updated first.
type SessionPage struct {
	Sessions []rouse.Session
	Total    int // that match, on all pages
	HasMore  bool
	Next     string // cursor; empty on the last page
}

// Sessions lists sessions.
func (s *Store) Sessions(ctx context.Context, f SessionFilter) (SessionPage, error) {
	const op = "store: sessions"
	var where []string
	var args []any
	add := func(cond string, vs ...any) {
		for _, v := range vs {
			args = append(args, v)
			cond = strings.Replace(cond, "?", fmt.Sprintf("$%d", len(args)), 1)
		}
		where = append(where, cond)
	}
	if f.Directory != "" {
		add("directory = ?", f.Directory)
	}
	if f.ParentID != "" {
		add("parent = ?", f.ParentID)
	}
	if f.Roots {
		add("parent = ''")
	}
	if f.Search != "" {
		add("LOWER(title) LIKE ? ESCAPE '\\'", "%"+likeEscape(strings.ToLower(f.Search))+"%")
	}
	if !f.UpdatedSince.IsZero() {
		add("updated >= ?", ms(f.UpdatedSince))
	}
	if f.Busy {
		add("(running <> '' OR queued > 0)")
	}
	var page SessionPage
	if err := s.row(ctx, `SELECT COUNT(*) FROM sessions`+whereOf(where), args, &page.Total); err != nil {
		return page, failure(op, err)
	}
	if f.Cursor != "" {
		at, id, err := readSessionCursor(f.Cursor)
		if err != nil {
			return page, err
		}
		add("(updated < ? OR (updated = ? AND id > ?))", at, at, id)
	}
	text := `SELECT body FROM sessions` + whereOf(where) + ` ORDER BY updated DESC, id`
	if f.Limit > 0 {
		text += fmt.Sprintf(" LIMIT %d", f.Limit+1)
	}
	err := s.each(ctx, func(body []byte) error {
		if f.Limit > 0 && len(page.Sessions) == f.Limit {
			page.HasMore = true
			return nil
		}
		var row rouse.Session
		err := json.Unmarshal(body, &row)
		page.Sessions = append(page.Sessions, row)
		return err
	}, text, args...)
	if page.HasMore {
		last := page.Sessions[len(page.Sessions)-1]
		page.Next = base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "%d %s", ms(last.Updated), last.ID))
	}
	return page, failure(op, err)
}

func whereOf(conds []string) string {
	if len(conds) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(conds, " AND ")
}

func likeEscape(s string) string {
	return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s)
}

func readSessionCursor(c string) (at int64, id string, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(c)
	if err == nil {
		_, err = fmt.Sscanf(string(raw), "%d %s", &at, &id)
	}
	if err != nil {
		return 0, "", rouse.FieldError("store: sessions", "cursor", "cursor %q is not one that a list gave", rouse.Clip(c, 40))
	}
	return at, id, nil
}

// Children lists the sessions whose parent is id, newest first.
func (s *Store) Children(ctx context.Context, id string) ([]rouse.Session, error) {
	page, err := s.Sessions(ctx, SessionFilter{ParentID: id})
	return page.Sessions, err
}

// BusySessions are the ids of sessions with a running or queued turn: what a
// start must look at.
func (s *Store) BusySessions(ctx context.Context) ([]string, error) {
	var ids []string
	err := s.each(ctx, func(body []byte) error { ids = append(ids, string(body)); return nil },
		`SELECT id FROM sessions WHERE running <> '' OR queued > 0 ORDER BY id`)
	return ids, failure("store: busy sessions", err)
}
