//go:build !linux

package carricktest

func (p *Terminal) taken() {}
