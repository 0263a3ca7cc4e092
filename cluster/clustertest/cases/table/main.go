// Command table reads files of cases and prints how many cases of each kind ran and how many passed. Before that, it
// prints the names of the first failed cases, and of all tests that did not run for lack of time. Its exit code is 1 if
// a case failed, or if a kind has no case although all tests ran:
//
//	table [-want crash,fault] FILE...
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"

	"carrick/cluster/clustertest/cases"
)

// shownFailures is the maximum number of failed cases that are named for each kind. One failure can make a whole series
// of cases fail.
const shownFailures = 5

func main() {
	want := flag.String("want", "", "required kinds of cases, separated by commas")
	flag.Parse()
	tried, held, notRun, err := count(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, kind := range strings.FieldsFunc(*want, func(r rune) bool { return r == ',' }) {
		tried[kind] += 0 // a kind without cases gets a row, too
	}
	good := print(tried, held, notRun > 0)
	if notRun > 0 {
		fmt.Printf("not run for lack of time: %d tests\n", notRun)
	}
	if !good {
		os.Exit(1)
	}
}

// count counts the cases in files by kind. If a test ran more than once, only its last run counts. count prints the
// names of such tests, of the first failed cases of each kind, and of the tests that did not run.
func count(files []string) (tried, held map[string]int, notRun int, err error) {
	var all []cases.Case
	for _, path := range files {
		some, err := read(path)
		if err != nil {
			return nil, nil, 0, err
		}
		all = append(all, some...)
	}
	type test struct{ pkg, name string }
	last, again := map[test]int{}, map[test]bool{}
	for _, c := range all {
		at := test{c.Package, c.Test}
		if was, ok := last[at]; ok && was != c.Run && !again[at] {
			again[at] = true
			fmt.Printf("run again: %s in %s\n", c.Test, c.Package)
		}
		last[at] = c.Run
	}
	tried, held = map[string]int{}, map[string]int{}
	for _, c := range all {
		if last[test{c.Package, c.Test}] != c.Run {
			continue
		}
		if c.NotRun {
			notRun++
			fmt.Printf("not run: %s in %s\n", c.Name, c.Package)
			continue
		}
		tried[c.Kind]++
		if c.Held {
			held[c.Kind]++
		} else if failed := tried[c.Kind] - held[c.Kind]; failed <= shownFailures {
			fmt.Printf("failed: %s: %s\n", c.Kind, c.Name)
		}
	}
	return tried, held, notRun, nil
}

func read(path string) ([]cases.Case, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var out []cases.Case
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var c cases.Case
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		out = append(out, c)
	}
	return out, lines.Err()
}

// print prints the table. It reports whether all cases passed and, unless lacking is true, every kind has a case.
func print(tried, held map[string]int, lacking bool) bool {
	var kinds []string
	all, good, none := 0, 0, len(tried) == 0
	for k, n := range tried {
		none = none || n == 0 && !lacking
		kinds = append(kinds, k)
		all, good = all+n, good+held[k]
	}
	slices.Sort(kinds)
	row := func(kind string, tried, held int) { fmt.Printf("%-28s %6d %6d\n", kind, tried, held) }
	fmt.Printf("%-28s %6s %6s\n", "cases", "tried", "held")
	for _, k := range kinds {
		row(k, tried[k], held[k])
	}
	row("all", all, good)
	return !none && good == all
}
