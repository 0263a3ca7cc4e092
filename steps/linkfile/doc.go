// Package linkfile reads and writes the file of a link. A link file contains the guide, the two sides and the answers.
// A [FileError] reports a fault with its file, line and key.
package linkfile
