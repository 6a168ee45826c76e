package diagnostics

import (
	"encoding/base64"
	"net/url"
	"strings"
	"testing"
)

// furtherCanaries are secrets that only their look tells from prose, and those
// that stand in the layout of some language, shell or wire.
var furtherCanaries = func() (list []string) {
	const key = "janeroejaneroe12"
	for _, prefix := range strings.Fields("csk- fw_ tgp_v1_ SG. dop_v1_ hvs. xapp-1-A0- dp.pt. ATATT3x 123456789:AA sq0atp- shpat_ AGE-SECRET-KEY-1 proj_ team_ user_ cus_") {
		list = append(list, prefix+key)
	}
	for _, layout := range []string{"AWS_SECRET_ACCESS_KEY=@/K7MD", "aws_secret_access_key = wJal/@/K7MDENG+x", `{"SecretAccessKey":"@/ab"}`, "AccountKey=@/ab+cd==;EndpointSuffix=x",
		"Ocp-Apim-Subscription-Key: @", `"private_key_id": "@"`, "Authorization: AWS4-HMAC-SHA256 Credential=@/2026/us, Signature=abc@", "X-Amz-Signature=@", "X-CSRF-Token: @",
		"PRIVATE-TOKEN: @", "token=@", `{"token":"@"}`, "SECRET_KEY: @", "passphrase=@", "pwd=@", "credential=@", `auth: "@"`, "export PERPLEXITY_KEY=@", "machine x login y password @",
		"--api-key @", "--token @", "API key @ is invalid", "invalid x-api-key @", `["x-api-key","@"]`, "{'x-api-key': '@'}", "(b'x-api-key', b'@')", "'x-api-key': [ '@' ]",
		"map[Authorization:[Bearer @]]", "map[X-Api-Key:[@]]", `{\"api_key\":\"@\"}`, `{\"password\":\"@\"}`, `{\\\"Authorization\\\":\\\"Bearer @\\\"}`,
		`account "@"`, "account_id=@", "tenant @", "organization @ has been disabled", "USER=janeroe", "?key=@", "&sig=@&se=2", "localhost:8080/x?key=@", "10.0.0.3/x?key=@",
		"host.example?key=@", "api_key%3D@", "Authorization%3A%20Bearer%20@", "jane.roe%40mail.example.com", "%2Fhome%2Fjaneroe%2Fx", "https%3A%2F%2Fopencode.ai%2Fworkspace%2Fjaneroe",
		`/Users/Jane janeroe/Documents/x`, `C:\Users\Jane janeroe\x`, `{"role":"user","content":"plan of janeroe"}`, `{\"type\":\"text\",\"text\":\"a \\\"plan\\\" of janeroe\"}`,
		"sk-ant-api03-janeroejaneroe\njaneroejaneroe12", "janeroejanerjanero/janeroejanerjanero+x\n-----END OPENSSH PRIVATE KEY-----",
		"-----BEGIN PGP PRIVATE KEY BLOCK-----\njaneroe\n-----END PGP PRIVATE KEY BLOCK-----"} {
		list = append(list, strings.ReplaceAll(layout, "@", key))
	}
	return list
}()

// Encoding a secret does not make it less of one.
func TestWrappedSecrets(t *testing.T) {
	for _, canary := range canaries {
		if strings.ContainsAny(canary, "\n%") {
			continue
		}
		for form, wrapped := range map[string]string{"percent": url.QueryEscape(canary), "percent twice": url.PathEscape(url.PathEscape(canary + "/")),
			"base64": base64.StdEncoding.EncodeToString([]byte(canary)), "base64url": base64.RawURLEncoding.EncodeToString([]byte(canary))} {
			if form == "percent" && !strings.Contains(wrapped, "%") {
				continue
			}
			if got := Sanitize("it failed: " + wrapped + " end"); len(wrapped) >= 16 && strings.Contains(got, wrapped) {
				t.Errorf("%q, %s: %q", canary, form, got)
			}
		}
	}
}

// In a string of JSON a control stands as letters.
func TestSecretsBehindEscapes(t *testing.T) {
	for _, canary := range canaries {
		for _, around := range []string{`{"message":"failed:\n@"}`, `{"message":"\u001b[31m@\u001b[0m"}`, `"a \\n@"`, `\t@\r\n`, `\u0007@`} {
			quoted := strings.NewReplacer("\n", `\n`, "\"", `\"`).Replace(canary)
			if got := Sanitize(strings.Replace(around, "@", quoted, 1)); leaks(got) && canary[0] != '\\' {
				t.Errorf("%q in %q: %q", canary, around, got)
			}
		}
	}
	for _, text := range []string{`key sk-ant-api03-abcdefgh\njaneroejaneroe12 end`, `sk-abcdefgh\u001b[1mjaneroejaneroe12`, `sk-abcdefgh\u200bjaneroejaneroe12`, `api_key:\n  janeroejaneroe12`,
		"Cookie= cookie: a=janeroe1; b=janeroe", "password= x-api-key: janeroe1", "API key provided: API key provided: janeroe"} {
		if got := Sanitize(text); leaks(got) {
			t.Errorf("%q: %q", text, got)
		}
	}
	for _, text := range []string{`a\nb`, `{"a":"line one\nline two"}`, `\u00e9t\u00e9`} {
		if got := Sanitize(text); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// What only has a word of a secret's is a message.
func TestWhatIsNoSecretStays(t *testing.T) {
	for _, text := range []string{"max_tokens=200000 is above 64000", "The model claude-sonnet-4-5-20250929 needs an API key", "API key not valid", "invalid token at line 12",
		"tokens per minute: 30000, requests 50", "Your account is on the free plan; tenant limits apply", "is 100%25 used", "retry in 4hr 59min", "context_length_exceeded at 131072",
		"key claude-3-5-haiku-20241022 was not found", "/Users and groups", "a & b = c", "gpt-4o-2024-08-06 and o4-mini-2025-04-16 in eu-central-1", "Qm9vbQ is a word",
		`the field "input" is missing`, "signature verification failed", "author of the change", "user=true small=false"} {
		if got := Sanitize(text); got != text {
			t.Errorf("%q: %q", text, got)
		}
	}
}
