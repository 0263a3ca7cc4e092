package nfs

import (
	"encoding/binary"
	"io"
	"net"
)

// Parts of an ONC RPC message (RFC 5531).
const (
	lastFragment = 1 << 31
	call         = 0
	rpcVersion   = 2
	program      = 100003 // NFS
	firstVersion = 3
	lastVersion  = 4

	accepted        = 0
	success         = 0
	programUnknown  = 1
	versionMismatch = 2
	procUnknown     = 3

	headerWords = 6       // 32-bit words in a call up to the procedure
	callAtMost  = 1 << 16 // bytes
)

// answer answers calls until the client disconnects or sends anything other than a call.
func answer(conn net.Conn) {
	defer conn.Close()
	for {
		var mark uint32
		if binary.Read(conn, binary.BigEndian, &mark) != nil {
			return
		}
		size := mark &^ lastFragment
		if mark&lastFragment == 0 || size < headerWords*4 || size > callAtMost {
			return
		}
		message := make([]byte, size)
		if _, err := io.ReadFull(conn, message); err != nil {
			return
		}
		said := reply(message)
		if said == nil {
			return
		}
		if _, err := conn.Write(said); err != nil {
			return
		}
	}
}

// reply returns the reply to a call. It returns nil if message is not a call.
func reply(message []byte) []byte {
	word := func(i int) uint32 { return binary.BigEndian.Uint32(message[4*i:]) }
	if word(1) != call || word(2) != rpcVersion {
		return nil
	}
	words := []uint32{word(0), 1, accepted, 0, 0} // a reply with an empty verifier
	switch {
	case word(3) != program:
		words = append(words, programUnknown)
	case word(4) < firstVersion || word(4) > lastVersion:
		words = append(words, versionMismatch, firstVersion, lastVersion)
	case word(5) != 0: // not the procedure NULL
		words = append(words, procUnknown)
	default:
		words = append(words, success)
	}
	out := binary.BigEndian.AppendUint32(nil, lastFragment|uint32(4*len(words)))
	for _, w := range words {
		out = binary.BigEndian.AppendUint32(out, w)
	}
	return out
}
