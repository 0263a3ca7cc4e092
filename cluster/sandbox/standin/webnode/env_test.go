package webnode

import "testing"

func TestHookEnvAsBashReadsIt(t *testing.T) {
	for _, tc := range []struct{ situation, text, key, want, err string }{
		{situation: "quotes", text: "# x\n\nA=\"b c\"\n", key: "A", want: "b c"},
		{situation: "plain", text: "A=b", key: "A", want: "b"},
		{situation: "a comment behind", text: "A=b # c", key: "A", want: "b"},
		{situation: "a carriage return stays", text: "A=true\r\n", key: "A", want: "true\r"},
		{situation: "a backslash", text: "A=b\\ c\n", key: "A", want: "b c"},
		{situation: "a backslash in quotes", text: `A="b\"\c"`, key: "A", want: `b"\c`},
		{situation: "an indented setting", text: "  A=b\n", key: "A", want: "b"},
		{situation: "two settings on a line", text: "B=c A=b\n", key: "A", want: "b"},
		{situation: "the word export", text: "export A=b\n", key: "A", want: "b"},
		{situation: "blanks alone", text: " \t\nA=b\n", key: "A", want: "b"},
		{situation: "an indented comment", text: "  # x\nA=b\n", err: "export: `#': not a valid identifier"},
		{situation: "sourced before anything is exported", text: "  # x\nA=b c\n", err: "line 2: c: command not found"},
		{situation: "a line of a carriage return", text: "A=b\r\n\r\n", err: `line 2: $'\r': command not found`},
		{situation: "two words", text: "A=b c\n", err: "line 1: c: command not found"},
		{situation: "a word alone", text: "A\n", err: "line 1: A: command not found"},
		{situation: "a blank before =", text: "A =b\n", err: "line 1: A: command not found"},
		{situation: "no name", text: "1A=b\n", err: "line 1: 1A=b: command not found"},
		{situation: "an open quote", text: "A=\"b\n", err: "line 1: unexpected EOF while looking for matching `\"'"},
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
