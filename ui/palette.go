package ui

import (
	"github.com/charmbracelet/lipgloss"
	"github.com/muesli/termenv"
)

// Names of themes for --theme. The empty name means auto.
const (
	themeAuto     = "auto"
	themeDark     = "dark"
	themeLight    = "light"
	themeContrast = "high-contrast"
)

// Themes lists the valid values of Options.Theme.
var Themes = []string{themeAuto, themeDark, themeLight, themeContrast}

// palette contains the colors of a theme, each in true color, 256 and 16 colors. An empty color is the terminal's own.
// Tests check that each color is readable.
type palette struct{ good, bad, warn, unknown, todo, accent, faint lipgloss.CompleteColor }

func paint(full, of256, of16 string) lipgloss.CompleteColor {
	return lipgloss.CompleteColor{TrueColor: full, ANSI256: of256, ANSI: of16}
}

// palettes maps each theme to its colors. The auto theme is for a terminal whose background is unknown. Its colors are
// readable on black and on white. It has no 16-color values, because none is readable in every terminal.
var palettes = map[string]palette{
	themeAuto: {
		good: paint("#0b8916", "29", ""), bad: paint("#e02e27", "131", ""), warn: paint("#a56800", "", ""),
		unknown: paint("#b63ecf", "98", ""), todo: paint("#2d74d8", "63", ""),
		accent: paint("#00809a", "63", ""), faint: paint("#757575", "243", ""),
	},
	themeDark: {
		good: paint("#87d787", "114", "10"), bad: paint("#ff8787", "210", "9"), warn: paint("#ffd75f", "221", "11"),
		unknown: paint("#d7afff", "183", "13"), todo: paint("#87afff", "111", "14"),
		accent: paint("#5fd7d7", "80", "14"), faint: paint("#a8a8a8", "248", "7"),
	},
	themeLight: {
		good: paint("#005f00", "22", ""), bad: paint("#af0000", "124", "1"), warn: paint("#875f00", "94", ""),
		unknown: paint("#8700af", "91", "5"), todo: paint("#0000d7", "20", "4"),
		accent: paint("#005faf", "25", "4"), faint: paint("#585858", "240", ""),
	},
	themeContrast: {},
}

// black and white are the colors of the high-contrast theme.
var (
	black = paint("#000000", "16", "0")
	white = paint("#ffffff", "231", "15")
)

// enough is the minimum contrast ratio of text, as WCAG 2 level AA requires.
const enough = 4.5

// contrast returns the contrast ratio of two colors as defined by WCAG, from 1 to 21.
func contrast(a, b termenv.Color) float64 {
	x, y := luminance(a), luminance(b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

func luminance(c termenv.Color) float64 {
	r, g, b := termenv.ConvertToRGB(c).LinearRgb()
	return 0.2126*r + 0.7152*g + 0.0722*b
}

// dark reports whether white has more contrast with a color than black has.
func dark(c termenv.Color) bool {
	return contrast(c, termenv.RGBColor("#ffffff")) > contrast(c, termenv.RGBColor("#000000"))
}
