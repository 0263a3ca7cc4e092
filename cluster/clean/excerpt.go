package clean

import "strconv"

// Excerpt returns the first 120 bytes of body as a quoted string that is safe to display.
func Excerpt(body []byte) string {
	const most = 120
	text := Text(string(body[:min(len(body), most)]))
	if len(body) > most {
		text += "…"
	}
	return strconv.Quote(text)
}
