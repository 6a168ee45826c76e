package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"
)

// LogEvent is one event of Rouse's own stream: {seq, type, at, session, …}.
type LogEvent struct {
	Seq        int64           `json:"seq"`
	Type       string          `json:"type"` // rouse.turn.settled, rouse.verdict …
	At         time.Time       `json:"at"`
	Session    string          `json:"session"`
	Turn       string          `json:"turn"`
	Generation uint64          `json:"generation"`
	State      string          `json:"state"`
	Data       json.RawMessage `json:"data"`
}

// Log calls handle for each event of the log behind after, from the first one
// kept, until it returns an error (ErrStop for a good end), ctx ends, or the
// connection does.
func (c *Client) Log(ctx context.Context, after int64, handle func(LogEvent) error) error {
	req, err := c.request(ctx, call{method: http.MethodGet, path: "/rouse/v1/events",
		header: http.Header{"Accept": {"text/event-stream"}, "Last-Event-ID": {strconv.FormatInt(after, 10)}}})
	if err != nil {
		return err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return c.unreachable(ctx, err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return refusal(resp)
	}
	in := bufio.NewScanner(resp.Body)
	in.Buffer(make([]byte, 0, 64<<10), maxFrame)
	for in.Scan() {
		data, ok := bytes.CutPrefix(in.Bytes(), []byte("data:"))
		if !ok {
			continue
		}
		var e LogEvent
		if err := decode(bytes.TrimSpace(data), &e); err != nil {
			return err
		}
		switch err := handle(e); {
		case errors.Is(err, ErrStop):
			return nil
		case err != nil:
			return err
		}
	}
	return c.unreachable(ctx, errors.Join(in.Err(), context.Cause(ctx)))
}
