// Command budgets copies the output of go test -bench from stdin to stdout, and adds a table of the figures that have a
// budget. Each line has the figure, the budget and a verdict. A figure over its budget is reported but is not an error,
// because the machine might be slow. A budget without a figure is an error, unless -skip matches its benchmark.
package main

import (
	"bufio"
	"flag"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// budget is the limit for a figure.
type budget struct {
	what      string
	benchmark string // name of the benchmark, without the -N suffix for the number of processors
	unit      string // unit of the figure, without a bracket and the text after it
	limit     float64
	atLeast   bool // the figure should be at least the limit; else at most
	guides    bool // measured once per guide
}

var budgets = []budget{
	{"all checks once, 50 ms latency: sequential round trips", "BenchmarkPass/once", "chain", 5, false, true},
	{"all checks once: wall time in round trips", "BenchmarkPass/once", "rtt", 5, false, true},
	{"speed-up over sequential kubectl calls", "BenchmarkPass/once", "kubectl/carrick", 40, true, true},
	{"requests per distinct read", "BenchmarkPass/once", "requests/read", 1, false, true},
	{"time from a change to its verdict, median in ms", "BenchmarkChange", "median-ms", 50, false, true},
	{"time from a change to its verdict, p99 in ms", "BenchmarkChange", "p99-ms", 150, false, true},
	{"CPU use when idle, percent of a core", "BenchmarkIdle", "%core", 1, false, true},
	{"resident memory with both sides live, MB", "BenchmarkMemory", "MB-resident", 120, false, true},
	{"time for carrick --help, ms", "BenchmarkHelp", "median-ms", 50, false, false},
	{"time to the first frame, ms", "BenchmarkFirstFrame", "median-ms", 150, false, false},
}

// figures maps package, benchmark and unit to the measured figure.
type figures map[[3]string]float64

// packages returns the packages that have figures, sorted.
func (f figures) packages() []string {
	var out []string
	for key := range f {
		out = append(out, key[0])
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func main() {
	skip := flag.String("skip", "^$", "regular expression of the skipped benchmarks, as in go test -skip")
	flag.Parse()
	left, err := regexp.Compile(*skip)
	if err != nil {
		fmt.Fprintln(os.Stderr, "-skip:", err)
		os.Exit(2)
	}
	got, err := read(bufio.NewScanner(os.Stdin), os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	all := table(got, left)
	growth(got)
	if !all {
		os.Exit(1)
	}
}

// read writes each line to on, and returns the figures in the lines.
func read(lines *bufio.Scanner, on *os.File) (figures, error) {
	out, in := figures{}, ""
	failed := false
	for lines.Scan() {
		line := lines.Text()
		fmt.Fprintln(on, line)
		failed = failed || strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL")
		if pkg, ok := strings.CutPrefix(line, "pkg: "); ok {
			in = path.Base(pkg)
			continue
		}
		words := strings.Fields(line)
		if len(words) < 4 || !strings.HasPrefix(words[0], "Benchmark") {
			continue
		}
		name := words[0]
		if i := strings.LastIndex(name, "-"); i > 0 {
			name = name[:i]
		}
		for i := 2; i+1 < len(words); i += 2 {
			n, err := strconv.ParseFloat(words[i], 64)
			if err != nil {
				break
			}
			unit, _, _ := strings.Cut(words[i+1], "(")
			out[[3]string{in, name, unit}] = n
		}
		if reads := out[[3]string{in, name, "distinct-reads"}]; reads > 0 {
			out[[3]string{in, name, "requests/read"}] = out[[3]string{in, name, "requests"}] / reads
		}
	}
	if failed {
		return nil, fmt.Errorf("a benchmark failed; its output is above")
	}
	return out, lines.Err()
}

// table prints every budget with its figures. It reports whether every budget has a figure, except budgets whose
// benchmark matches the regular expression left.
func table(got figures, left *regexp.Regexp) bool {
	all := true
	row := func(what, where, figure, wanted, verdict string) {
		fmt.Printf("%-58s %-10s %8s %9s  %s\n", what, where, figure, wanted, verdict)
	}
	fmt.Println()
	row("what", "guide", "figure", "budget", "verdict")
	for _, b := range budgets {
		found := false
		for _, in := range got.packages() {
			n, ok := got[[3]string{in, b.benchmark, b.unit}]
			if !ok {
				continue
			}
			found = true
			where, wanted, good := "", "<= ", n <= b.limit
			if b.guides {
				where = in
			}
			if b.atLeast {
				wanted, good = ">= ", n >= b.limit
			}
			verdict := "ok"
			if !good {
				verdict = "OVER"
			}
			row(b.what, where, fmt.Sprintf("%.4g", n), wanted+fmt.Sprint(b.limit), verdict)
		}
		switch {
		case found:
		case left.MatchString(b.benchmark):
			row(b.what, "", "", "", "skipped")
		default:
			row(b.what, "", "", "", "not measured")
			all = false
		}
	}
	return all
}

// grown lists units that are measured for different numbers of links, each with its label. These figures have no
// budget, but the cost per link should not grow with the number of links.
var grown = [][2]string{
	{"s/link", "seconds per link"}, {"MB/link", "MB per link"}, {"unknown/link", "unknown checks per link"},
}

// growth prints the cost per link for different numbers of links, one line per guide and unit.
func growth(got figures) {
	many := map[[2]string]map[int]float64{} // by guide and unit, then by number of links
	for key, n := range got {
		words := strings.Split(key[1], "/")
		if len(words) != 3 || words[0] != "BenchmarkGrowth" {
			continue
		}
		links, err := strconv.Atoi(words[2])
		if err != nil {
			continue
		}
		at := [2]string{words[1], key[2]}
		if many[at] == nil {
			many[at] = map[int]float64{}
		}
		many[at][links] = n
	}
	fmt.Println()
	for _, unit := range grown {
		for _, at := range slices.SortedFunc(maps.Keys(many), func(a, b [2]string) int { return strings.Compare(a[0], b[0]) }) {
			if at[1] != unit[0] {
				continue
			}
			line := fmt.Sprintf("%-38s %-10s", "many links at the same time: "+unit[1], at[0])
			for _, links := range slices.Sorted(maps.Keys(many[at])) {
				line += fmt.Sprintf("  %d: %.3g", links, many[at][links])
			}
			fmt.Println(line)
		}
	}
}
