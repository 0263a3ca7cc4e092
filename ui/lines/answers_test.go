package lines

import (
	"os"
	"strings"
	"testing"
)

const token = "let-me-in-4711"

func saved(t *testing.T, o Options) string {
	t.Helper()
	b, err := os.ReadFile(o.Link.Path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// For every kind of answer: Enter keeps the current answer, an invalid answer is rejected and asked for again, and a
// valid answer is saved immediately.
func TestAnswers(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	converse(t, o, func(k *talk) {
		k.says("1", "e")
		k.hears(
			"Answer 1 of 7: Port of the gateway.", "Open in both firewalls.", "Now: 51820, from WireGuard's own.",
			"Answer, Enter keeps it:",
		)
		k.says("99999", "")
		k.hears(`Invalid answer: "99999" is not a port`, "Answer 2 of 7: Use jumbo frames.", "Now: no, from most can't.")
		k.says("maybe", "y")
		k.hears(
			`Invalid answer: "maybe" is neither yes nor no.`, "Saved.", "Answer 3 of 7: Which side listens.",
			"Now: 2, the provider, from the usual one.", "1: the consumer.", "2: the provider.", "1 to 2, Enter keeps it:",
		)
		k.says("3", "b")
		k.hears("Invalid answer: ", "Answer 2 of 7: Use jumbo frames.", "Now: yes, given by you.")
		k.says("-", "1")
		k.hears("Saved.", "Saved.", "Answer 4 of 7: A note.", "Now empty.")
		k.says("?", `\b`)
		k.hears("net.note: For whoever comes next.", `\b is the answer b.`, "Saved.")
		k.says("", "", "s")
		k.hears(
			"Answer 7 of 7: Routes.", "Now 3 lines, from an example.", "# what it carries\nroutes:\n  - 10.1.0.0/16\n",
		)
		k.says("e")
		k.hears("an editor requires a terminal; type the lines")
		k.says("routes:\n  - 0.0.0.0/0\n.")
		k.hears("Invalid answer: line 2: not everything may go through.")
		k.says("routes:\n  - 10.9.0.0/16\n.")
		k.hears("Saved.", "No check of this step has changed", "Step 1, Sites:")
	})
	text := saved(t, o)
	for _, want := range []string{"net.listens: consumer", "net.note: b", "10.9.0.0/16"} {
		if !strings.Contains(text, want) {
			t.Errorf("the link file lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "net.fast") {
		t.Errorf("a default is in the link file:\n%s", text)
	}
}

// A secret answer reaches the checks, but is neither printed nor written to a file.
func TestASecretIsNeverSaid(t *testing.T) {
	m := &tunnel{}
	o := m.options(t)
	converse(t, o, func(k *talk) {
		k.says("1", "e", "80", "", "", "", token)
		k.hears(
			"Token, Enter keeps it:", "The value is kept in memory only, and not shown while you type.",
			"carrick keeps the answer until you quit.",
		)
		k.says("4711-is-no-number", "")
		k.hears("Invalid answer: the input is not of type number.")
		k.says("", "e", "", "", "", "")
		k.hears("Already given, and kept in memory only.")
		k.says("b", "q")
		if err := k.leaves(); err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{token, "4711"} {
			if strings.Contains(k.text(), secret) {
				t.Errorf("it said the secret:\n%s", k.text())
			}
		}
	})
	if text := saved(t, o); strings.Contains(text, token) {
		t.Errorf("the secret is in the link file:\n%s", text)
	}
	if len(m.vetted) == 0 || m.vetted[0] != token {
		t.Errorf("the checks got %q", m.vetted)
	}
}

// On the first visit the wizard asks only for missing answers.
func TestANeededAnswerIsAskedFirst(t *testing.T) {
	m := &tunnel{}
	converse(t, ownerless(t, m), func(k *talk) {
		k.hears("Step 2 of 3", "Answer 1 of 1: Owner of the keys.", "Now empty.", "Answer:")
		k.says("", "Not A Name", "b")
		k.hears(
			"Invalid answer: an answer is required.", `"Not A Name" is not a name`,
			"An answer is missing: e opens the question.", "In this step",
		)
		k.says("e", "ana")
		k.hears("Saved.", "Step 2, Tunnel keys:")
		k.says("n", "b")
		k.hears("Answers: 1; e goes")
	})
}

func TestQuestionsKnowHelpAndQuit(t *testing.T) {
	for _, before := range [][]string{{"1", "e"}, {"1", "e", "", "", "", ""}, {"a"}, {"s"}, {"s", "b"}} {
		converse(t, (&tunnel{}).options(t), func(k *talk) {
			k.says(before...)
			k.hears()
			k.says("?")
			if news := k.hears(); len(news) < 40 {
				t.Errorf("after %q there is no help: %q", before, news)
			}
			k.says("q")
			if err := k.leaves(); err != nil {
				t.Errorf("after %q q ended with %v", before, err)
			}
		})
	}
}
