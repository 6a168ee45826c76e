package store

import (
	"context"
	"encoding/json"

	"rouse"
)

// OpenRequest stores what a person is asked and announces it.
func (tx *Tx) OpenRequest(s *rouse.Session, r *rouse.Request) error {
	body, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := tx.do(`INSERT INTO requests (id, session, kind, body) VALUES ($1,$2,$3,$4)`, r.ID, r.SessionID, r.Kind, string(body)); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.RequestAsked, SessionID: s.ID, Directory: s.Directory, TurnID: r.TurnID, Generation: r.Generation, MessageID: r.MessageID}, r)
}

// CloseRequest removes an open request and announces the reply. An "always"
// is remembered for the session's directory.
func (tx *Tx) CloseRequest(s *rouse.Session, r *rouse.Request, reply rouse.Reply) error {
	if err := tx.do(`DELETE FROM requests WHERE id = $1`, r.ID); err != nil {
		return err
	}
	if reply.Verb == rouse.ReplyAlways {
		for _, pattern := range r.Always {
			if err := tx.do(`INSERT INTO grants (directory, permission, pattern, at) VALUES ($1,$2,$3,$4) ON CONFLICT DO NOTHING`,
				s.Directory, r.Permission, pattern, ms(tx.now)); err != nil {
				return err
			}
		}
	}
	return tx.Emit(rouse.Event{Type: rouse.RequestReplied, SessionID: s.ID, Directory: s.Directory, TurnID: r.TurnID, Generation: r.Generation},
		rouse.RepliedFact{RequestID: r.ID, Kind: r.Kind, Reply: reply})
}

// Requests reads a session's open requests inside the transaction.
func (tx *Tx) Requests(sessionID string) (out []rouse.Request, err error) {
	err = tx.each(collect(&out), `SELECT body FROM requests WHERE session = $1 ORDER BY id`, sessionID)
	return out, err
}

func collect[T any](out *[]T) func([]byte) error {
	return func(body []byte) error {
		var v T
		err := json.Unmarshal(body, &v)
		*out = append(*out, v)
		return err
	}
}

// Requests lists open requests of one kind; sessionID "" is all sessions.
func (s *Store) Requests(ctx context.Context, sessionID, kind string) ([]rouse.Request, error) {
	var out []rouse.Request
	err := s.each(ctx, collect(&out), `SELECT body FROM requests WHERE kind = $1 AND ($2 = '' OR session = $2) ORDER BY id`, kind, sessionID)
	return out, failure("store: requests", err)
}

// Request reads an open request; NotFound if it was answered or never was.
func (s *Store) Request(ctx context.Context, id string) (*rouse.Request, error) {
	const op = "store: request"
	var r rouse.Request
	found, err := s.one(ctx, &r, `SELECT body FROM requests WHERE id = $1`, id)
	if err == nil && !found {
		return nil, absent(op, "Request", id)
	}
	return &r, failure(op, err)
}

// Grants are the rules that people gave with "always" in a directory, oldest
// first.
func (tx *Tx) Grants(directory string) (rules []rouse.PermissionRule, err error) {
	err = tx.each(func(body []byte) error {
		r := rouse.PermissionRule{Action: rouse.Allow}
		err := json.Unmarshal(body, &r)
		rules = append(rules, r)
		return err
	}, `SELECT json_object('permission', permission, 'pattern', pattern) FROM grants
		WHERE directory = $1 ORDER BY at, permission, pattern`, directory)
	return rules, err
}

// PutTodos replaces a session's list and announces it.
func (tx *Tx) PutTodos(s *rouse.Session, todos []rouse.Todo) error {
	if todos == nil {
		todos = []rouse.Todo{}
	}
	body, err := json.Marshal(todos)
	if err != nil {
		return err
	}
	if err := tx.do(`INSERT INTO todos (session, body) VALUES ($1,$2) ON CONFLICT (session) DO UPDATE SET body = excluded.body`, s.ID, string(body)); err != nil {
		return err
	}
	return tx.Emit(rouse.Event{Type: rouse.TodoUpdated, SessionID: s.ID, Directory: s.Directory, Generation: s.Generation}, todos)
}

// Todos reads a session's list; empty when it has none.
func (s *Store) Todos(ctx context.Context, sessionID string) ([]rouse.Todo, error) {
	out := []rouse.Todo{}
	_, err := s.one(ctx, &out, `SELECT body FROM todos WHERE session = $1`, sessionID)
	return out, failure("store: todos", err)
}

// messagesFrom lists the messages of a session from one on.
func (tx *Tx) messagesFrom(sessionID string, from *rouse.Message) (out []rouse.Message, err error) {
	err = tx.each(collect(&out), `SELECT body FROM messages WHERE session = $1 AND (created > $2 OR (created = $2 AND id >= $3)) ORDER BY created, id`,
		sessionID, ms(from.Created), from.ID)
	return out, err
}

// TurnEntries lists the messages of a turn with their parts.
func (tx *Tx) TurnEntries(sessionID string, generation uint64) ([]rouse.Entry, error) {
	var out []rouse.Entry
	err := tx.each(func(body []byte) error {
		var m rouse.Message
		err := json.Unmarshal(body, &m)
		out = append(out, rouse.Entry{Message: m})
		return err
	}, `SELECT body FROM messages WHERE session = $1 AND generation = $2 ORDER BY created, id`, sessionID, int64(generation))
	for i := range out {
		if err == nil {
			out[i].Parts, err = tx.Parts(out[i].Message.ID)
		}
	}
	return out, err
}
