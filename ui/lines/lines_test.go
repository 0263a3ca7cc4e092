package lines

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"carrick/steps"
)

func TestAGuideIsWalkedAndTakenBack(t *testing.T) {
	m := &tunnel{}
	converse(t, m.options(t), func(k *talk) {
		k.hears("This is Tunnel, link milan-rome.", "consumer: milan", "provider: rome", "Step 2 of 3: Tunnel keys.",
			"Each side proves itself with a key pair of its own.",
			"Answers: 1; e goes through them.",
			"consumer: ok: the keys Secret holds one key pair.",
			"Later: 1 check, blocked by a check on the provider: the keys Secret holds one key pair.",
			"provider: warning: the credential lives for 30 days more: it ends in 6 days.", "Fix: tunnel keys --renew",
			"provider: FAIL: the keys Secret holds one key pair: there is no key pair.",
			"Why: a half pair answers nobody.", "Fix: f 1 runs the fix: Make the keys.",
			"In this step: 1 ok, 1 failed, 1 warning and 1 later.", "a applies 1 change.", "n next")
		k.says("d")
		k.hears("create Secret tunnel/keys.", "+kind: Secret")
		k.says("a")
		k.hears(
			"On the provider, rome: 1 change.", "Make the keys:", "create Secret tunnel/keys.", "Apply this change? [y/N]",
		)
		k.says("y")
		k.hears(
			"step 2 of 3, provider: making the keys.", "step 2 of 3, provider: created Secret tunnel/keys.",
			"Done: 1 change in 1 second.",
			"provider: ok: the keys Secret holds one key pair.", "consumer: ok: the gateway answers a handshake.",
			"In this step: 3 ok and 1 warning.",
		)
		k.says("n")
		k.hears("Step 3 of 3: Carry.", "both sides: ok: the tunnel carries.", "This step only runs checks.")
		k.says("a", "u")
		k.hears("This step changes nothing: it only runs checks.", "u all undoes")
		k.says("n")
		k.hears(
			"Summary of milan-rome.", "All checks pass: ", "Step 2, Tunnel keys: 3 ok and 1 warning.", "carrick undo ",
			": undoes the changes that the link made",
		)
		k.says("o")
		k.hears(
			"On the provider this link created 1 resource.", "Secret tunnel/keys.", "On the consumer this link created nothing.",
		)
		k.says("m")
		k.hears("Step 2, Tunnel keys. On the consumer, Tunnel keys: ok. On the provider, Tunnel keys: warning.")
		k.says("u")
		k.hears("On the provider, rome: 1 resource.", "delete Secret tunnel/keys.", "Undo this resource? [y/N]")
		k.says("y")
		k.hears(
			"step 2 of 3, provider: deleted Secret tunnel/keys.", "Not all checks pass: ",
			"FAIL: provider: the keys Secret holds one key pair",
		)
		k.says("l", "q")
		if err := k.leaves(); err != nil {
			t.Fatal(err)
		}
		if news := k.hears(
			"deleted Secret tunnel/keys.", "Tunnel, link milan-rome: ",
		); strings.Contains(news, "Step 1, Sites") {
			t.Errorf("the summary is said twice:\n%s", news)
		}
	})
	if m.made() {
		t.Error("it was not taken back")
	}
}

func TestTheFarewellSaysWhereAllStands(t *testing.T) {
	converse(t, (&tunnel{}).options(t), func(k *talk) {
		k.says("q")
		if err := k.leaves(); err != nil {
			t.Fatal(err)
		}
		k.hears(
			"Tunnel, link milan-rome: ", "Step 3, Carry: 2 later.",
			"FAIL: provider: the keys Secret holds one key pair: there is no key pair.", "carrick check ",
			": runs every check once",
		)
	})
	o := (&tunnel{}).options(t)
	o.Passing, o.Banner, o.Notes = true, "demo: two control planes", []string{". /tmp/env"}
	converse(t, o, func(k *talk) {
		k.says("?", "q")
		k.hears(
			"This is carrick in text mode; demo: two control planes.", ". /tmp/env", "The clusters of the demo are deleted",
		)
	})
}

// The end of the input never means yes, and is always reported.
func TestTheInputEndsAtEachQuestion(t *testing.T) {
	for name, c := range map[string]struct {
		input         string
		options       func(*testing.T, *tunnel) Options
		what, instead string
	}{
		"the guide":          {"", clusters, "Guide, 1 to 2", "--guide NAME"},
		"the first side":     {"1\n", clusters, "The consumer", "--context NAME"},
		"the second side":    {"1\n1\n", clusters, "The provider", "--remote-context NAME"},
		"the name":           {"1\n1\n2\n", clusters, "Name of this link", "--name NAME"},
		"a step":             {"", fresh, "Step 2, Tunnel keys", "carrick apply"},
		"a yes":              {"a\n", fresh, "Apply this change?", "--step keys --yes"},
		"a yes that ends":    {"a\ny", fresh, "Apply this change?", "--step keys --yes"},
		"a yes to an undo":   {"a\ny\nu\n", fresh, "Undo this resource?", "carrick undo"},
		"an answer":          {"e\n", fresh, "Answer, Enter keeps it", "keys.owner"},
		"a needed answer":    {"", ownerless, "Answer:", "keys.owner"},
		"a secret":           {"1\ne\n\n\n\n\n", fresh, "Token", "--secret net.token=@FILE"},
		"a text":             {"1\ne\n\n\n\n\n\n\nroutes:\n  - 10.2.0.0/16\n", fresh, "Routes", "net.routes"},
		"the summary":        {"s\n", fresh, "Summary", "carrick check"},
		"a yes to take over": {"a\ny\n", taken, "Take over fields of helm", "--take-over"},
		"a yes to replace":   {"a\ny\n", fixedInPlace, "Delete and recreate?", "--replace"},
	} {
		t.Run(name, func(t *testing.T) {
			m := &tunnel{}
			said, err := piped(t, c.options(t, m), c.input)
			nobody(t, said, err, c.what, c.instead)
			if m.made() && name != "a yes to an undo" {
				t.Error("the end of the input was taken for a yes")
			}
			if !m.made() && name == "a yes to an undo" {
				t.Error("the end of the input was taken for a yes")
			}
		})
	}
}

func TestNoMeansNo(t *testing.T) {
	for _, no := range []string{"", "n", "no", "b", "N"} {
		m := &tunnel{}
		converse(t, m.options(t), func(k *talk) {
			k.hears("Step 2 of 3")
			k.says("a", "maybe")
			k.hears(`"maybe" is neither y nor n.`)
			k.says("?", "d")
			k.hears("y is yes. Enter, n and b are no", "+kind: Secret")
			k.says(no)
			k.hears("Nothing was changed.")
		})
		if m.made() {
			t.Errorf("%q was a yes", no)
		}
	}
}

// Taking over fields, and deleting objects that will be recreated, require separate confirmations.
func TestTakeOverAndReplaceAreAskedApart(t *testing.T) {
	m := &tunnel{items: conflicts("helm", "kubectl")}
	converse(t, m.options(t), func(k *talk) {
		k.says("a", "y")
		k.hears("Field .data.k0 of Secret tunnel/keys is set by helm.", "Take over fields of helm and kubectl? [y/N]")
		k.says("")
		k.hears("Nothing was changed.")
		k.says("a", "y", "y")
		k.hears("Done: 1 change")
	})
	m = &tunnel{items: []steps.Item{{Verb: steps.Replace, What: "Secret tunnel/keys", Hash: "1"}}}
	converse(t, m.options(t), func(k *talk) {
		k.says("a", "y")
		k.hears("These objects cannot be changed in place.", "Delete and recreate? [y/N]")
		k.says("n")
		k.hears("Nothing was changed.")
	})
}

// A long wait prints progress, and a request to a person gets separate lines.
func TestWaitingIsSaid(t *testing.T) {
	m := &tunnel{
		slow: 35 * time.Second,
		asks: []string{
			"log in at https://example.org/device?code=WDJB, or open https://example.org/device and type the code WDJB.",
		},
	}
	converse(t, m.options(t), func(k *talk) {
		k.says("a", "y")
		time.Sleep(40 * time.Second)
		k.settle()
		news := k.hears(
			"Your turn:\nlog in at:\nhttps://example.org/device?code=WDJB\nor "+
				"open:\nhttps://example.org/device\nand type the code WDJB.\n",
			"Still waiting for you, 10 seconds.", "Still waiting for you, 20 seconds.", "Still waiting for you, 30 seconds.",
			"Done: 1 change in 35 seconds.",
		)
		if strings.Count(news, "Still waiting") != 3 || strings.Contains(news, "making the keys") ||
			strings.Contains(news, "signed in to") {
			t.Errorf("it said:\n%s", news)
		}
	})
}

// Frequent messages of an action are not all printed. The latest message says what the action waits for.
func TestWordsAreNotAFlood(t *testing.T) {
	m := &tunnel{slow: 25 * time.Second, words: 50}
	converse(t, m.options(t), func(k *talk) {
		k.says("a", "y")
		time.Sleep(25 * time.Second)
		k.settle()
		news := k.hears(
			"step 2 of 3, provider: pod 1 of 50 is ready.", "Still waiting for making the keys, 10 seconds.", "Done: 1 change",
		)
		if strings.Count(news, " is ready") != 1 {
			t.Errorf("it said:\n%s", news)
		}
		k.says("l")
		k.hears("pod 50 of 50 is ready.")
	})
}

// After a run the wizard prints what the checks wait for, until they hold.
func TestChecksAreFollowedUntilTheyAreSettled(t *testing.T) {
	m := &tunnel{}
	converse(t, m.options(t), func(k *talk) {
		m.came = time.Now()
		k.says("a", "y")
		time.Sleep(30 * time.Second)
		k.settle()
		k.hears(
			"Still waiting for consumer: the gateway answers a handshake: sent, no answer yet, 10 seconds.", "20 seconds.",
			"consumer: ok: the gateway answers a handshake.",
		)
	})
}

func TestCtrlCStopsWhatRunsThenLeaves(t *testing.T) {
	m := &tunnel{slow: time.Hour}
	converse(t, m.options(t), func(k *talk) {
		k.says("a", "y")
		k.interrupts <- os.Interrupt
		k.settle()
		k.hears(
			"Stopping. Press ctrl+c again to quit immediately.", "Stopped by you: nothing was changed.", "Step 2, Tunnel keys:",
		)
		k.interrupts <- os.Interrupt
		if err := k.leaves(); !errors.Is(err, ErrInterrupted) {
			t.Fatalf("it ended with %v", err)
		}
		k.hears("Tunnel, link milan-rome: ")
	})
	if m.made() {
		t.Error("it was made")
	}
}

func TestItEndsWithItsContext(t *testing.T) {
	converse(t, (&tunnel{}).options(t), func(k *talk) {
		k.stop()
		if err := k.leaves(); !errors.Is(err, context.Canceled) {
			t.Fatalf("it ended with %v", err)
		}
	})
}

// The wizard prints nothing while it prompts. Enter prints what has changed, and r runs the checks again.
func TestWhatChangedMeanwhileIsSaidOnDemand(t *testing.T) {
	m := &tunnel{}
	converse(t, m.options(t), func(k *talk) {
		k.hears("Step 2 of 3")
		k.says("")
		k.hears("No check of this step has changed")
		m.set(true)
		time.Sleep(5 * time.Second)
		k.settle()
		if news := k.hears(); news != "" {
			t.Errorf("over the prompt it said %q", news)
		}
		k.says("")
		k.hears("provider: ok: the keys Secret holds one key pair.", "consumer: ok: the gateway answers a handshake.")
		m.set(false)
		k.says("r")
		k.hears("provider: FAIL: the keys Secret holds one key pair: there is no key pair.")
	})
}

func TestFaultsAreSaid(t *testing.T) {
	m := &tunnel{fault: errors.New("the disk \x1b[31mis full")}
	converse(t, m.options(t), func(k *talk) {
		k.says("f 1", "y")
		k.hears("Apply this change?", "Error: ", "the disk is full.")
		k.says("l")
		k.hears("the disk is full.")
	})
}

func TestChoices(t *testing.T) {
	converse(t, (&tunnel{}).options(t), func(k *talk) {
		k.hears("Step 2 of 3")
		k.says("nonsense")
		k.hears(`"nonsense" is not a choice or a step; ? lists them all.`)
		k.says("?")
		k.hears(
			"a: applies this step", "f N: fixes only check N.", "A number from 1 to 3, or the name of a step",
			"carrick prints nothing while it waits for you.", `For a check, "unknown" means`,
		)
		k.says("c")
		k.hears(
			"1, consumer: ok: the keys Secret holds one key pair: one pair.", "1, provider: FAIL: ", "3, provider: warning: ",
		)
		k.says("x 2")
		k.hears(
			"Check 2, handshake: the gateway answers a handshake.", "Checked from this machine.",
			"On the consumer this check requires: provider: the keys Secret holds one key pair, which is FAIL.",
			"References: https://example.org/tunnel",
		)
		k.says("x", "f 3", "f 9", "f nope")
		k.hears(
			"carrick has no action for this check", `"9" is not a check of this step`, `"nope" is not a check of this step`,
		)
		k.says("Sites")
		k.hears("Step 1 of 3: Sites.")
		k.says("b")
		k.hears("This is the first step")
		k.says("3", "b")
		k.hears("Step 3 of 3: Carry.", "Step 2 of 3: Tunnel keys.")
		k.says("keys", "summary", "n", "QUIT")
		if err := k.leaves(); err != nil {
			t.Fatal(err)
		}
	})
}
