// Command table reads the file of cases and prints how many were tried and held,
// by kind, after the first few that did not hold. Its exit code is 1 if one did not
// hold, or if none of a kind was tried:
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

// shownFailures is how many cases of a kind that did not hold are named: one failure of a chain fails all cases in it.
const shownFailures = 5

func main() {
	want := flag.String("want", "", "kinds of which cases are to be there, with commas")
	flag.Parse()
	tried, held, err := count(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	for _, kind := range strings.FieldsFunc(*want, func(r rune) bool { return r == ',' }) {
		tried[kind] += 0 // none is a line, too
	}
	if !print(tried, held) {
		os.Exit(1)
	}
}

// count reads the files that are named.
func count(files []string) (tried, held map[string]int, err error) {
	tried, held = map[string]int{}, map[string]int{}
	for _, path := range files {
		f, err := os.Open(path)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			var c cases.Case
			if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
				return nil, nil, fmt.Errorf("%s: %w", path, err)
			}
			tried[c.Kind]++
			if c.Held {
				held[c.Kind]++
			} else if failed := tried[c.Kind] - held[c.Kind]; failed <= shownFailures {
				fmt.Printf("did not hold: %s: %s\n", c.Kind, c.Name)
			}
		}
		if err := lines.Err(); err != nil {
			return nil, nil, err
		}
	}
	return tried, held, nil
}

// print prints the table, and tells whether all held.
func print(tried, held map[string]int) bool {
	var kinds []string
	all, good, none := 0, 0, len(tried) == 0
	for k, n := range tried {
		none = none || n == 0
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
