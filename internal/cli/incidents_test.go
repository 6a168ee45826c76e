package cli

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestACutMessageSaysSo: what is left out of a table's cell is marked.
func TestACutMessageSaysSo(t *testing.T) {
	for _, n := range []int{60, 61, 500} {
		message := strings.Repeat("é", n)
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"incidents":[{"id":"inc_1","session":"ses_1","kind":"failed","status":"open","message":%q,"actions":["resume"]}]}`, message)
		}))
		var out, side bytes.Buffer
		code := Main(t.Context(), []string{"incidents", "--server", srv.URL}, nil, &out, &side)
		srv.Close()
		if code != exitDone || strings.Contains(out.String(), "…") != (n > 60) || !strings.Contains(out.String(), strings.Repeat("é", 59)) {
			t.Errorf("%d characters: code %d, %s %s", n, code, out.String(), side.String())
		}
	}
}
