package client

import (
	"context"
	"errors"
	"time"
)

// Drain asks the server to let running turns end, at most so long, and then to
// stop. It says at once how many run.
func (c *Client) Drain(ctx context.Context, wait time.Duration) (running int, err error) {
	var out struct {
		Running int `json:"running"`
	}
	_, err = c.do(ctx, call{method: "POST", path: "/rouse/v1/drain", in: map[string]int{"timeout_sec": int(wait.Seconds())}, out: &out})
	return out.Running, err
}

// Gone returns when the server is not there any more; one that is there and does
// not answer is waited for.
func (c *Client) Gone(ctx context.Context) error {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := c.do(ctx, call{method: "GET", path: "/healthz"}); errors.Is(err, ErrUnreachable) && !errors.Is(err, errSilent) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
