package rendezvous

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// A mac is an HMAC-SHA256 under the key derived from the secret. It proves that its sender knows
// the secret, and that the messages on the connection were not changed.
type mac [sha256.Size]byte

// nonce makes each connection's macs different, so that none can be replayed.
type nonce [32]byte

func newNonce() (n nonce) {
	rand.Read(n[:])
	return n
}

// A speaker names the sender and the message of a mac. A mac of one message is not valid for
// another.
type speaker string

const (
	ofReply speaker = "reply" // from rank 0
	ofProof speaker = "proof" // from a rank other than 0
	ofID    speaker = "id"    // from rank 0
)

// A transcript collects all messages of a connection.
type transcript struct {
	key  [sha256.Size]byte
	said []byte
}

func (t *transcript) add(b []byte) { t.said = append(t.said, b...) }

// mac returns the mac of the messages.
func (t *transcript) mac(who speaker) (m mac) {
	h := hmac.New(sha256.New, t.key[:])
	fmt.Fprintf(h, "puregpu rendezvous %s %d\n", who, len(t.said))
	h.Write(t.said)
	h.Sum(m[:0])
	return m
}

// errSecret is the error for a wrong mac. It says nothing about the secret.
var errSecret = errors.New("another secret, or none: set the same " + secretVariable + " or TCP.Secret on all ranks")

// check compares a mac with the right one in constant time.
func (t *transcript) check(who speaker, got mac) error {
	if want := t.mac(who); !hmac.Equal(got[:], want[:]) {
		return errSecret
	}
	return nil
}
