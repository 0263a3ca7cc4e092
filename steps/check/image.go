package check

import "strings"

// SplitImage splits a container image into its repository and its tag. If the image has no tag, tag is "". A digest is
// dropped.
func SplitImage(image string) (repository, tag string) {
	image, _, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(image, ":"); i > strings.LastIndex(image, "/") {
		return image[:i], image[i+1:]
	}
	return image, ""
}
