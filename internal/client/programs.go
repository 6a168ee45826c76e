package client

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"rouse"
)

// Program is an agent program of GET /rouse/v1/agents.
type Program struct {
	Name       string   `json:"name"`
	Title      string   `json:"title"`
	Provider   string   `json:"provider_id"`
	Command    []string `json:"command"`
	Installed  bool     `json:"installed"`
	Configured bool     `json:"configured"`
	Package    string   `json:"package,omitempty"`
	Processes  string   `json:"processes"`
	Unusable   string   `json:"unusable,omitempty"`
	// Report is what the last probe brought; nil before the first.
	Report *rouse.ProgramReport `json:"report"`
}

// Programs lists the agent programs that the server knows.
func (c *Client) Programs(ctx context.Context) ([]Program, error) {
	var raw json.RawMessage
	if _, err := c.do(ctx, call{method: http.MethodGet, path: "/rouse/v1/agents", out: &raw}); err != nil {
		return nil, err
	}
	var out struct {
		Programs []Program `json:"programs"`
	}
	return out.Programs, decode(raw, &out)
}

// ProbeProgram has the server start a program, open a session in it and end it
// again; that takes seconds.
func (c *Client) ProbeProgram(ctx context.Context, name string) (rouse.ProgramReport, error) {
	var raw json.RawMessage
	if _, err := c.do(ctx, call{method: http.MethodPost, path: "/rouse/v1/agents/" + url.PathEscape(name) + "/probe", out: &raw}); err != nil {
		return rouse.ProgramReport{}, err
	}
	var out rouse.ProgramReport
	return out, decode(raw, &out)
}
