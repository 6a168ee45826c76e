package opencode

import (
	"encoding/json"
	"net/http"

	"rouse"
	"rouse/internal/session"
)

// The routes that run a turn without being a prompt of their own: a summary, a
// person's command in the shell, and named templates.

// summarize compacts the transcript, as a turn of its own.
func (h *Handler) summarize(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need("providerID", "modelID")
	model := rouse.ModelRef{Provider: f.text("providerID"), Model: f.text("modelID")}
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	_, _, err = h.runPrompt(r.Context(), session.Prompt{SessionID: id, Kind: rouse.TurnCompact, Model: model,
		Parts: []rouse.Part{{Kind: rouse.CompactionPart, Extra: json.RawMessage(`{"auto":false}`)}}})
	h.done(w, r, err)
}

// shell runs one command in the session's directory, as a turn of its own; a
// busy session refuses.
func (h *Handler) shell(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need("agent", "command")
	p := session.Prompt{SessionID: id, Kind: rouse.TurnShell, IfIdle: true,
		Parts: []rouse.Part{{Kind: rouse.TextPart, Synthetic: true, Text: "The person ran this command."}},
		Agent: f.text("agent"), Model: f.model("model"), Command: f.text("command"), MessageID: f.messageID("messageID", false)}
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	h.await(w, r, p)
}

// command runs a named template as a prompt.
func (h *Handler) command(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need("command")
	name, arguments := f.text("command"), f.text("arguments")
	p := session.Prompt{SessionID: id, Agent: f.text("agent"), Model: f.model("model"), MessageID: f.messageID("messageID", false)}
	text, ok := expand(name, arguments)
	if !ok && *f.err == nil {
		f.fault("command", "there is no command %q; use %s", rouse.Clip(name, 40), commandNames())
	}
	p.Parts = []rouse.Part{{Kind: rouse.TextPart, Text: text}}
	for _, in := range f.list("parts") {
		p.Parts = append(p.Parts, in.part())
	}
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	h.await(w, r, p)
}

// initialize is the command init under an older route; it answers true.
func (h *Handler) initialize(w http.ResponseWriter, r *http.Request) {
	id, f, err := h.form(w, r)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	f.need("providerID", "modelID")
	text, _ := expand("init", "")
	p := session.Prompt{SessionID: id, Model: rouse.ModelRef{Provider: f.text("providerID"), Model: f.text("modelID")},
		MessageID: f.messageID("messageID", false), Parts: []rouse.Part{{Kind: rouse.TextPart, Text: text}}}
	if *f.err != nil {
		h.fail(w, r, *f.err)
		return
	}
	_, _, err = h.runPrompt(r.Context(), p)
	h.done(w, r, err)
}
