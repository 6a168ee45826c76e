package opencode

import "testing"

// An agent program's models are those that are configured and those that
// sessions use; another provider's are its own.
func TestListedModels(t *testing.T) {
	r := newRig(t, 64)
	for _, m := range []map[string]string{{"providerID": "acp:mine", "id": "big/one"}, {"providerID": "acp:mine", "id": "big/one"}, {"providerID": "drill", "id": "echo"}} {
		r.want(200, "POST", "/session", map[string]any{"model": m})
	}
	var list struct {
		All, Providers []struct {
			ID     string
			Models map[string]struct{ Name string }
		}
		Default map[string]string
	}
	for _, path := range []string{"/provider", "/config/providers"} {
		list.All, list.Providers = nil, nil
		r.want(200, "GET", path, nil).into(t, &list)
		found := 0
		for _, p := range append(list.All, list.Providers...) {
			if p.ID != "acp:mine" && p.ID != "drill" {
				continue
			}
			found++
			if _, used := p.Models["big/one"]; len(p.Models) != 2 || used != (p.ID == "acp:mine") {
				t.Errorf("%s: %s has %v", path, p.ID, p.Models)
			}
		}
		if found != 2 || list.Default["acp:mine"] != "default" {
			t.Errorf("%s: %d providers, default %v", path, found, list.Default)
		}
	}
}
