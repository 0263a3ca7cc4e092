package ui

import (
	"io"
	"strconv"
	"strings"

	"github.com/muesli/termenv"
)

// environment reads an environment variable, as os.Getenv does.
type environment func(name string) string

// Getenv implements termenv.Environ.
func (env environment) Getenv(name string) string { return env(name) }

// Environ implements termenv.Environ. termenv does not need the result.
func (env environment) Environ() []string { return nil }

// colours reports whether the screen uses colors. The flag has precedence over NO_COLOR, then CLICOLOR_FORCE, then
// CLICOLOR=0. By default colors are on, unless TERM has no colors.
func colours(flag string, env environment) bool {
	switch {
	case flag == "always":
		return true
	case flag == "never":
		return false
	case env("NO_COLOR") != "":
		return false
	case env("CLICOLOR_FORCE") != "" && env("CLICOLOR_FORCE") != "0":
		return true
	}
	return env("CLICOLOR") != "0" && env.profile() != termenv.Ascii
}

// profile derives the color profile of the terminal from TERM and COLORTERM.
func (env environment) profile() termenv.Profile {
	return termenv.NewOutput(io.Discard, termenv.WithTTY(true), termenv.WithEnvironment(env)).ColorProfile()
}

// skin returns what is known about the terminal before it is queried.
func (o *Options) skin(env environment) skin {
	s := skin{colour: colours(o.Color, env), profile: env.profile(), theme: o.Theme, ground: env.ground()}
	switch {
	case o.ASCII || env.plainLocale():
		s.letters = ascii
	case env.wideLocale():
		s.letters = plainLine
	}
	return s
}

// ground returns the background color that the environment specifies. On the Linux console it is black. Otherwise the
// last number in COLORFGBG selects one of 16 colors.
func (env environment) ground() termenv.Color {
	if env("TERM") == "linux" {
		return termenv.ANSIBlack
	}
	said := env("COLORFGBG")
	n, err := strconv.Atoi(said[strings.LastIndex(said, ";")+1:])
	if err != nil || n < 0 || n > 15 {
		return nil
	}
	if n == 8 { // a gray that counts as dark
		return termenv.ANSIBlack
	}
	return termenv.ANSIColor(n)
}

// askable reports whether the terminal can be queried for its background color. Such a terminal is known to reply to
// the query or to ignore it.
func (env environment) askable() bool {
	term := env("TERM")
	return term != "" && term != "linux" && !strings.HasPrefix(term, "vt") && (env("STY") == "" || env("TMUX") != "")
}

// locale returns the value of the first variable that is set: LC_ALL, LC_CTYPE or LANG.
func (env environment) locale() string {
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := env(name); v != "" {
			return v
		}
	}
	return ""
}

// plainLocale reports whether only ASCII can be shown. This is the case if there is no locale, or if its character set
// is not Unicode.
func (env environment) plainLocale() bool {
	l := env.locale()
	_, set, named := strings.Cut(l, ".")
	set, _, _ = strings.Cut(strings.ReplaceAll(strings.ToLower(set), "-", ""), "@")
	return l == "" || l == "C" || l == "POSIX" || (named && set != "utf8")
}

// wideLocale reports whether lines, dots and arrows are two columns wide.
func (env environment) wideLocale() bool {
	for _, lang := range []string{"ja", "ko", "zh"} {
		if strings.HasPrefix(env.locale(), lang) {
			return true
		}
	}
	return false
}
