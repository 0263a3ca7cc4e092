package ondemand

import (
	"errors"
	"path"
	"slices"
	"strings"

	sh "mvdan.cc/sh/v3/syntax"
)

// hookReading describes what a shell script does, as far as this can be determined without running it.
type hookReading struct {
	// words are the words of the commands and assignments that can run. They exclude code after an unconditional exit,
	// bodies of functions that are not called, and here-documents.
	words string
	// programs are the files that the script executes directly by path.
	programs []string
	// exits means that the script exits unconditionally before it runs any program, function or other file.
	exits bool
	// hides means that the script can continue, or exit with 0, after upstream's bootstrap has failed. Upstream logs
	// only the script's exit status (OSC/ondemand: nginx_stage/lib/nginx_stage/generators/pun_config_generator.rb).
	hides bool
}

// errNoShell means that a file is not a shell script.
var errNoShell = errors.New("not a shell script, so carrick cannot read what it does")

// bootstrapName is the file name of upstream's bootstrap.
var bootstrapName = path.Base(bootstrapHook)

// readHook analyzes a script.
func readHook(script string) (hookReading, error) {
	line, _, _ := strings.Cut(script, "\n")
	shell, strict := interpreter(line)
	if !slices.Contains([]string{"sh", "bash", "dash", "ksh"}, shell) {
		return hookReading{}, errNoShell
	}
	file, err := sh.NewParser(sh.Variant(sh.LangBash)).Parse(strings.NewReader(script), "")
	if err != nil {
		return hookReading{}, err
	}
	r := shellReader{vars: map[string]string{}, functions: map[string]*sh.Stmt{}, errexit: strict}
	hides := r.list(file.Stmts, false) == hidden
	if r.read > mostRead {
		return hookReading{}, errTooLong
	}
	return hookReading{hides: hides, exits: r.exited && !r.ran, programs: r.programs, words: r.words.String()}, nil
}

// interpreter returns the program that a #! line names, and reports whether the line sets errexit.
func interpreter(line string) (name string, errexit bool) {
	rest, ok := strings.CutPrefix(line, "#!")
	if !ok {
		return "", false
	}
	for _, w := range strings.Fields(rest) {
		switch base := path.Base(w); {
		case strings.HasPrefix(w, "-"):
			errexit = errexit || name != "" && !strings.HasPrefix(w, "--") && strings.Contains(w, "e")
		case name == "" && base != "env":
			name = base
		}
	}
	return name, errexit
}

type shellReader struct {
	vars              map[string]string
	functions         map[string]*sh.Stmt
	words             strings.Builder
	programs          []string
	errexit, pipefail bool
	exited            bool // the statements that follow do not run
	ran               bool // a program, a function or another file has run
	depth             int
	read              int // number of statements read, counting a function's at each call
}

// mostRead is the maximum number of statements that are read. Functions that call each other would make a script
// endless.
const mostRead = 10000

var errTooLong = errors.New("too many statements to read")

// list reads consecutive statements. guarded means that errexit does not apply to them, as in conditions.
func (r *shellReader) list(stmts []*sh.Stmt, guarded bool) fate {
	out := absent
	for i, s := range stmts {
		if r.exited || r.read > mostRead {
			break
		}
		f := r.stmt(s, guarded)
		if f == fails && i+1 < len(stmts) {
			f = judged(stmts[i+1:])
		}
		out = max(out, f)
	}
	return out
}

func (r *shellReader) stmt(s *sh.Stmt, guarded bool) fate {
	if r.read++; r.read > mostRead {
		return absent
	}
	f := r.command(s.Cmd, guarded || s.Negated)
	if f == fails && s.Negated || f != absent && (s.Background || s.Coprocess) {
		return hidden
	}
	return f
}

func (r *shellReader) command(c sh.Command, guarded bool) fate {
	switch c := c.(type) {
	case *sh.CallExpr:
		return r.call(c, guarded)
	case *sh.BinaryCmd:
		return r.binary(c, guarded)
	case *sh.Block:
		return r.list(c.Stmts, guarded)
	case *sh.Subshell:
		return r.raised(r.apart(func() fate { return r.list(c.Stmts, guarded) }), guarded)
	case *sh.IfClause:
		return r.conditional(c, guarded)
	case *sh.WhileClause:
		return max(looped(r.list(c.Cond, true)), looped(r.perhaps(func() fate { return r.list(c.Do, guarded) })))
	case *sh.ForClause:
		if each, ok := c.Loop.(*sh.WordIter); ok {
			r.vars[each.Name.Value] = r.literals(each.Items)
		}
		return looped(r.perhaps(func() fate { return r.list(c.Do, guarded) }))
	case *sh.CaseClause:
		out := absent
		for _, item := range c.Items {
			out = max(out, r.perhaps(func() fate { return r.list(item.Stmts, guarded) }))
		}
		return out
	case *sh.FuncDecl:
		r.functions[c.Name.Value] = c.Body
	case *sh.DeclClause: // its status is not that of a command substitution in it
		if f := r.assign(c.Args); f != absent {
			return hidden
		}
	case *sh.TimeClause:
		if c.Stmt != nil {
			return r.stmt(c.Stmt, guarded)
		}
	}
	return absent
}

func (r *shellReader) binary(c *sh.BinaryCmd, guarded bool) fate {
	if c.Op == sh.Pipe || c.Op == sh.PipeAll {
		x := r.apart(func() fate { return r.stmt(c.X, guarded) })
		if x == fails && !r.pipefail {
			x = hidden
		}
		return r.raised(max(x, r.apart(func() fate { return r.stmt(c.Y, guarded) })), guarded)
	}
	x := r.stmt(c.X, true)
	if c.Op == sh.OrStmt && x == fails {
		x = r.otherwise([]*sh.Stmt{c.Y})
	}
	return max(x, r.perhaps(func() fate { return r.stmt(c.Y, guarded) }))
}

func (r *shellReader) conditional(c *sh.IfClause, guarded bool) fate {
	cond := absent
	if n := len(c.Cond); n > 0 {
		last := c.Cond[n-1]
		cond = max(r.list(c.Cond[:n-1], true), r.command(last.Cmd, true))
		switch {
		case cond == fails && last.Negated:
			cond = r.otherwise(c.Then)
		case cond == fails && c.Else != nil && len(c.Else.Cond) == 0:
			cond = r.otherwise(c.Else.Then)
		case cond == fails:
			cond = hidden
		}
	}
	out := max(cond, r.perhaps(func() fate { return r.list(c.Then, guarded) }))
	if c.Else != nil {
		out = max(out, r.perhaps(func() fate { return r.conditional(c.Else, guarded) }))
	}
	return out
}

// quiet are commands that do not execute the files in their arguments.
var quiet = []string{":", "[", "echo", "logger", "ls", "printf", "stat", "test", "true"}

func (r *shellReader) call(c *sh.CallExpr, guarded bool) fate {
	inner := r.assign(c.Assigns)
	if len(c.Args) == 0 {
		return r.raised(inner, guarded)
	}
	for _, w := range c.Args {
		inner = max(inner, r.substituted(w))
	}
	if inner != absent {
		inner = hidden
	}
	words := strings.Fields(r.literals(c.Args))
	if len(words) == 0 {
		r.ran = true
		return inner
	}
	name := path.Base(words[0])
	body, isFunction := r.functions[name]
	switch {
	case name == "exit":
		r.exited = true
	case name == "set":
		r.set(words[1:])
	case name == "trap" && slices.Contains(words, "ERR"):
		r.errexit = r.errexit ||
			slices.ContainsFunc(words, func(w string) bool { return strings.TrimRight(w, ";") == "exit" })
	case isFunction && r.depth < 16:
		r.ran = true
		r.words.WriteString(strings.Join(words[1:], " ") + "\n") // its arguments can contain a command
		r.depth++
		defer func() { r.depth-- }()
		return max(inner, r.raised(r.stmt(body, guarded), guarded))
	case !slices.Contains(quiet, name):
		return max(inner, r.run(name, words, guarded))
	}
	return inner
}

// run reads a command that runs a program.
func (r *shellReader) run(name string, words []string, guarded bool) fate {
	r.ran = true
	r.words.WriteString(strings.Join(words, " ") + "\n")
	replaced := name == "exec" && len(words) > 1
	r.exited = r.exited || replaced
	if replaced {
		r.programs = append(r.programs, words[1])
	}
	r.programs = append(r.programs, words[0])
	switch {
	case !strings.Contains(strings.Join(words, " "), bootstrapName):
		return absent
	case replaced || name == "." || name == "source":
		return ends
	}
	return r.raised(fails, guarded)
}

// set reads the options of the builtin set.
func (r *shellReader) set(options []string) {
	for i, o := range options {
		if o == "--" {
			break
		}
		if len(o) < 2 || o[0] != '-' && o[0] != '+' || strings.HasPrefix(o, "--") {
			continue
		}
		on, long := o[0] == '-', ""
		if strings.HasSuffix(o, "o") && i+1 < len(options) {
			long = options[i+1]
		}
		if strings.Contains(o, "e") || long == "errexit" {
			r.errexit = on
		}
		if long == "pipefail" {
			r.pipefail = on
		}
	}
}

// assign reads assignments and the command substitutions in them.
func (r *shellReader) assign(all []*sh.Assign) fate {
	out := absent
	for _, a := range all {
		if a.Name != nil && a.Array != nil {
			var all []*sh.Word
			for _, one := range a.Array.Elems {
				if one.Value != nil {
					all = append(all, one.Value)
				}
			}
			r.vars[a.Name.Value] = r.literals(all)
			r.words.WriteString(r.vars[a.Name.Value] + "\n")
		}
		if a.Name == nil || a.Value == nil {
			continue
		}
		out = max(out, r.substituted(a.Value))
		r.vars[a.Name.Value] = r.literal(a.Value)
		r.words.WriteString(r.vars[a.Name.Value] + "\n")
	}
	return out
}

// substituted reads the command substitutions in a word.
func (r *shellReader) substituted(w *sh.Word) fate {
	out := absent
	sh.Walk(w, func(n sh.Node) bool {
		s, ok := n.(*sh.CmdSubst)
		if ok {
			out = max(out, r.apart(func() fate { return r.list(s.Stmts, false) }))
		}
		return !ok
	})
	return out
}

// perhaps reads code that runs only under a condition, so an exit in it does not end the script for certain.
func (r *shellReader) perhaps(read func() fate) fate {
	exited := r.exited
	defer func() { r.exited = exited }()
	return read()
}

// apart reads code that runs in a subshell. An exit in it only sets the subshell's status.
func (r *shellReader) apart(read func() fate) fate {
	exited, errexit, pipefail := r.exited, r.errexit, r.pipefail
	defer func() { r.exited, r.errexit, r.pipefail = exited, errexit, pipefail }()
	if f := read(); f != ends {
		return f
	}
	return fails
}

func (r *shellReader) literals(words []*sh.Word) string {
	var out []string
	for _, w := range words {
		out = append(out, r.literal(w))
	}
	return strings.Join(out, " ")
}

// literal returns a word with its known variables expanded.
func (r *shellReader) literal(w *sh.Word) string {
	var b strings.Builder
	r.expand(&b, w.Parts)
	return b.String()
}

func (r *shellReader) expand(b *strings.Builder, parts []sh.WordPart) {
	for _, p := range parts {
		switch p := p.(type) {
		case *sh.Lit:
			b.WriteString(strings.ReplaceAll(p.Value, `\`, ""))
		case *sh.SglQuoted:
			b.WriteString(p.Value)
		case *sh.DblQuoted:
			r.expand(b, p.Parts)
		case *sh.ParamExp:
			value, known := r.vars[p.Param.Value]
			switch {
			case known:
				b.WriteString(value)
			case p.Exp != nil && p.Exp.Word != nil:
				r.expand(b, p.Exp.Word.Parts)
			default:
				b.WriteString("$" + p.Param.Value)
			}
		}
	}
}
