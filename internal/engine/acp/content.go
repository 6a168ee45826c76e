package acp

import (
	"context"
	"encoding/base64"
	"net/url"
	"path/filepath"
	"strings"

	"rouse"
	"rouse/internal/engine/acp/wire"
)

// blocks is a prompt as the agent takes it: what it cannot take goes as a link.
func (c *Conversation) blocks(ctx context.Context, h *host, p rouse.Prompt) ([]wire.Block, error) {
	if p.Kind == rouse.TurnCompact {
		c.mu.Lock()
		defer c.mu.Unlock()
		if !c.compact {
			return nil, rouse.Errorf(rouse.Unsupported, "acp: compact", "%s has no command that summarizes a session; it does so by itself", c.e.agent.Title)
		}
		return []wire.Block{wire.TextBlock("/compact")}, nil
	}
	out := c.before(ctx, p)
	given := len(out)
	if p.System != "" {
		out = append(out, wire.TextBlock("<system>\n"+p.System+"\n</system>"))
	}
	caps := h.hello.Capabilities.Prompt
	for i := range p.Parts {
		switch part := &p.Parts[i]; part.Kind {
		case rouse.TextPart:
			if !part.Ignored && part.Text != "" {
				out = append(out, wire.TextBlock(part.Text))
			}
		case rouse.FilePart:
			if part.File != nil {
				out = append(out, fileBlock(part.File, caps))
			}
		}
	}
	if len(out) == given {
		return nil, rouse.Errorf(rouse.Invalid, "acp: prompt", "the prompt has no text")
	}
	return out, nil
}

// fileBlock is an attached file.
func fileBlock(f *rouse.File, caps wire.PromptCapabilities) wire.Block {
	name := f.Filename
	if name == "" {
		if u, err := url.Parse(f.URL); err == nil && u.Scheme != "data" {
			name = filepath.Base(u.Path)
		}
	}
	head, body, inline := strings.Cut(f.URL, ",")
	if !inline || !strings.HasPrefix(head, "data:") {
		return wire.Block{Type: "resource_link", URI: f.URL, Name: name, MimeType: f.Mime}
	}
	text := body
	if strings.HasSuffix(head, ";base64") {
		if strings.HasPrefix(f.Mime, "image/") && caps.Image {
			return wire.Block{Type: "image", Data: body, MimeType: f.Mime}
		}
		raw, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return wire.TextBlock("(the attached file " + name + " could not be read)")
		}
		text = string(raw)
	} else if plain, err := url.PathUnescape(body); err == nil {
		text = plain
	}
	if !strings.HasPrefix(f.Mime, "text/") && f.Mime != "application/json" {
		return wire.TextBlock("(a file of type " + f.Mime + " was attached, " + name + "; it cannot be passed on to " + "this agent)")
	}
	if caps.EmbeddedContext {
		return wire.Block{Type: "resource", Resource: &wire.Resource{URI: "attachment:" + name, MimeType: f.Mime, Text: text}}
	}
	return wire.TextBlock("<file name=\"" + name + "\">\n" + text + "\n</file>")
}
