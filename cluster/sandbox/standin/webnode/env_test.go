package webnode

import "testing"

func TestHookEnvAsBashReadsIt(t *testing.T) {
	for _, tc := range []struct{ situation, text, key, want, err string }{
		{situation: "quotes", text: "# x\n\nA=\"b c\"\n", key: "A", want: "b c"},
		{situation: "plain", text: "A=b", key: "A", want: "b"},
		{situation: "a comment behind", text: "A=b # c", key: "A", want: "b"},
		{situation: "a carriage return stays", text: "A=true\r\n", key: "A", want: "true\r"},
		{situation: "an indented comment", text: "  # x\nA=b\n", err: "export: `#': not a valid identifier"},
		{situation: "a line of a carriage return", text: "\r\n", err: "export: `\r': not a valid identifier"},
		{situation: "two words", text: "A=b c\n", err: "c: command not found"},
		{situation: "pod security policies", text: "USE_POD_SECURITY_POLICY=true\n", err: "UID: readonly variable"},
	} {
		env, err := source(tc.text)
		said := ""
		if err != nil {
			said = err.Error()
		}
		if said != tc.err || env[tc.key] != tc.want {
			t.Errorf("%s: %q, %q", tc.situation, env[tc.key], said)
		}
	}
}
