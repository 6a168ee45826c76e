package acp

// qwen is Qwen Code. It starts in mode "auto", where a model decides what may
// run; "default" asks. It is silent while it waits for a provider to let it in
// again, writes nothing to stderr, and asks us to drain a queue of its own in
// mid-turn; a refusal of that does not stop it (qwen 0.24.4).
var qwen = Agent{
	Name: "qwen", Title: "Qwen Code", Type: "qwen",
	Command: []string{"qwen", "--acp"},
	Mode:    "default",
	Vendor:  "alibaba",
	Login:   "qwen",
	Package: "@qwen-code/qwen-code",
}
