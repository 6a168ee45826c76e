package store

import (
	"context"
	"database/sql"
	"encoding/json"
)

// one reads a single row whose only column is a struct as JSON.
func (s *Store) one(ctx context.Context, into any, text string, args ...any) (found bool, err error) {
	err = s.each(ctx, func(body []byte) error {
		found = true
		return json.Unmarshal(body, into)
	}, text, args...)
	return found, err
}

// row scans a single row.
func (s *Store) row(ctx context.Context, text string, args []any, into ...any) error {
	st, err := s.prepared(ctx, text)
	if err != nil {
		return err
	}
	return st.QueryRowContext(ctx, args...).Scan(into...)
}

// each calls fn with the only column of every row. The rows are closed before
// it returns; fn must not wait for anything.
func (s *Store) each(ctx context.Context, fn func(body []byte) error, text string, args ...any) error {
	rows, err := s.query(ctx, text, args...)
	if err != nil {
		return err
	}
	return bodies(rows, fn)
}

// bodies calls fn with the only column of every row and closes the rows.
func bodies(rows *sql.Rows, fn func(body []byte) error) error {
	defer rows.Close()
	for rows.Next() {
		var body []byte
		if err := rows.Scan(&body); err != nil {
			return err
		}
		if err := fn(body); err != nil {
			return err
		}
	}
	return rows.Err()
}
