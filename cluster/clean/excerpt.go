package clean

import "strconv"

// Excerpt is the start of a text from outside, fit to be shown.
func Excerpt(body []byte) string {
	const most = 120
	text := Text(string(body[:min(len(body), most)]))
	if len(body) > most {
		text += "…"
	}
	return strconv.Quote(text)
}
