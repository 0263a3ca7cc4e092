//go:build !unix

package steps

const noFollow = 0
