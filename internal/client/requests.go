package client

import (
	"context"
	"maps"
	"net/http"
	"slices"
)

// Permissions lists the open permission requests of all sessions.
func (c *Client) Permissions(ctx context.Context) ([]Request, error) {
	return c.requests(ctx, "/permission")
}

// Questions lists the open questions of all sessions.
func (c *Client) Questions(ctx context.Context) ([]Request, error) {
	return c.requests(ctx, "/question")
}

func (c *Client) requests(ctx context.Context, path string) ([]Request, error) {
	var out []Request
	_, err := c.do(ctx, call{method: http.MethodGet, path: path, out: &out})
	return out, err
}

// ReplyPermission answers "once", "always" or "reject"; message, for reject,
// is told to the model.
func (c *Client) ReplyPermission(ctx context.Context, id, reply, message string) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/permission/" + esc(id) + "/reply", in: permissionReply{reply, message}})
	return err
}

// ReplyQuestion answers each question with the chosen labels.
func (c *Client) ReplyQuestion(ctx context.Context, id string, answers [][]string) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/question/" + esc(id) + "/reply", in: questionReply{answers}})
	return err
}

// RejectQuestion leaves a question unanswered.
func (c *Client) RejectQuestion(ctx context.Context, id string) error {
	_, err := c.do(ctx, call{method: http.MethodPost, path: "/question/" + esc(id) + "/reject"})
	return err
}

// Providers lists the providers, which of them can take work, and quota marks.
func (c *Client) Providers(ctx context.Context) (*Providers, error) {
	p := new(Providers)
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/provider", out: p})
	return p, err
}

// Agents lists the agents, hidden ones included.
func (c *Client) Agents(ctx context.Context) ([]Agent, error) {
	var out []Agent
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/agent", out: &out})
	return out, err
}

// Busy lists the sessions that have a turn running.
func (c *Client) Busy(ctx context.Context) ([]string, error) {
	var all map[string]struct{}
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/session/status", out: &all}); err != nil {
		return nil, err
	}
	return slices.Sorted(maps.Keys(all)), nil
}

// Health asks whether the server answers; it needs the token like any call.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var h Health
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/global/health", out: &h})
	return h, err
}

// Ready says whether the server accepts prompts: Full while its database
// refuses writes.
func (c *Client) Ready(ctx context.Context) error {
	_, err := c.do(ctx, call{method: http.MethodGet, path: "/readyz"})
	return err
}
